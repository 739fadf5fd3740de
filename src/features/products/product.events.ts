import type { ChangeKind } from '../change-log/change-log.ts';
import type { EventSerializer } from '../../api/event-serializer.ts';
import { productFromRow } from './product.entity.ts';
import { productJson } from './product.routes.ts';

const product: EventSerializer = ({ state }) => productJson(productFromRow(state ?? {}));

/** Webhook events: a product as in the REST API; for a bulk change, the count if it is known. */
export const productEvents: Partial<Record<ChangeKind, EventSerializer>> = {
  'product.created': product,
  'product.changed': product,
  'product.deleted': product,
  'products.changed': ({ state }) => ({ count: state?.['count'] ?? null }),
};
