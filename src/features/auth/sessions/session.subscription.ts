import { Resolver, Root, Subscription } from 'type-graphql';
import type { Context } from '../../../request/context.ts';
import { onSessionEnded } from './credential-expiry.service.ts';
import { SessionEnd } from './session-end.ts';

@Resolver()
export class SessionSubscription {
  @Subscription(() => SessionEnd, {
    subscribe: ({ context }: { context: Context }) => onSessionEnded(context),
    description:
      "The end of the caller's session, within a second. It also ends all other subscriptions with the same credentials.",
  })
  sessionEnded(@Root() end: SessionEnd): SessionEnd {
    return end;
  }
}
