import type { ChangeKind } from '../change-log/change-log.ts';
import type { EventSerializer } from '../../api/event-serializer.ts';
import { mapFields } from './product.columns.ts';
import { productFromRow } from './product.entity.ts';

const product: EventSerializer = ({ state }) => {
  const found = productFromRow(state ?? {});
  return { pk: found.pk, ...mapFields(found, ({ jsonValue }, value) => jsonValue(value)) };
};

/** Webhook events: the fields of a product; for a bulk change, the count if it is known. */
export const productEvents: Partial<Record<ChangeKind, EventSerializer>> = {
  'product.created': product,
  'product.changed': product,
  'product.deleted': product,
  'products.changed': ({ state }) => ({ count: state?.['count'] ?? null }),
};
