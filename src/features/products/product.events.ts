import type { ChangeKind } from '../change-log/change-log.ts';
import type { TellEvent } from '../../api/event-serializer.ts';
import type { Product } from './product.entity.ts';
import { productJson } from './product.routes.ts';

// The trigger puts in all that a product is read with.
const product: TellEvent = ({ state }) => productJson(state as unknown as Product);

/** What webhooks tell of products: one as the REST door gives it, and of many how many, where that is known. */
export const productEvents: Partial<Record<ChangeKind, TellEvent>> = {
  'product.created': product,
  'product.changed': product,
  'product.deleted': product,
  'products.changed': ({ state }) => ({ count: state?.['count'] ?? null }),
};
