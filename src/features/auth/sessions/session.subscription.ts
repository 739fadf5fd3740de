import { Resolver, Root, Subscription } from 'type-graphql';
import type { Context } from '../../../request/context.ts';
import { awaitOwnEnd } from './credential-expiry.service.ts';
import { SessionEnd } from './session-end.ts';

@Resolver()
export class SessionSubscription {
  @Subscription(() => SessionEnd, {
    subscribe: ({ context }: { context: Context }) => awaitOwnEnd(context),
    description:
      "The end of the caller's own session, whoever ends it, within a second. With it end all other subscriptions that were begun with the same credentials.",
  })
  sessionEnded(@Root() end: SessionEnd): SessionEnd {
    return end;
  }
}
