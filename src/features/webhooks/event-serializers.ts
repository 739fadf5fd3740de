import { globalId } from '../../api/node.ts';
import { Session } from '../auth/sessions/session.entity.ts';
import type { ChangeKind } from '../change-log/change-log.ts';
import { mapFields } from '../products/product.columns.ts';
import { productFromRow } from '../products/product.entity.ts';
import { User } from '../users/user.entity.ts';

/** Kind of the event that tests a webhook. */
export const TEST_EVENT = 'webhook.test';

/** An event for one webhook: a change (features/change-log/change-log.ts) or a test. */
export interface QueuedEvent {
  kind: ChangeKind | typeof TEST_EVENT;
  at: string;
  subject: string | null;
  state: Readonly<Record<string, unknown>> | null;
}

const product = ({ state }: QueuedEvent) => {
  const found = productFromRow(state ?? {});
  return {
    pk: found.pk,
    ...mapFields(found, ({ form }, value) => (form === 'number' ? Number(value) : value)),
  };
};

/**
 * Serializers by event kind: the fields of a product; for a bulk change, the count if it is known;
 * the GraphQL ids of a session and its user.
 */
export const eventSerializers: Record<QueuedEvent['kind'], (event: QueuedEvent) => object> = {
  'product.created': product,
  'product.changed': product,
  'product.deleted': product,
  'products.changed': ({ state }) => ({ count: state?.['count'] ?? null }),
  'session.ended': ({ subject, state }) => ({
    sessionId: globalId(Session.name, String(subject)),
    userId: globalId(User.name, String(state?.['userPk'])),
  }),
  [TEST_EVENT]: ({ subject }) => ({ webhook: subject }),
};
