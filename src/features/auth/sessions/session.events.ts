import type { TellEvent } from '../../../api/event-serializer.ts';
import { globalId } from '../../../api/node.ts';
import { User } from '../../users/user.entity.ts';
import { Session } from './session.entity.ts';

/** What webhooks tell of sessions: the ids by which the GraphQL door knows them and their users. */
export const sessionEvents: Readonly<Record<string, TellEvent>> = {
  'session.ended': ({ subject, state }) => ({
    sessionId: globalId(Session.name, String(subject)),
    userId: globalId(User.name, String(state?.['userPk'])),
  }),
};
