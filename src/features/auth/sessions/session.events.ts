import type { EventSerializer } from '../../../api/event-serializer.ts';
import { globalId } from '../../../api/node.ts';
import { User } from '../../users/user.entity.ts';
import { Session } from './session.entity.ts';

/** Serializes session events for webhooks: the GraphQL ids of the session and its user. */
export const sessionEvents: Readonly<Record<string, EventSerializer>> = {
  'session.ended': ({ subject, state }) => ({
    sessionId: globalId(Session.name, String(subject)),
    userId: globalId(User.name, String(state?.['userPk'])),
  }),
};
