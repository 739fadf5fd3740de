import type { ApolloServerPlugin } from '@apollo/server';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError, OperationTypeNode } from 'graphql';
import type { Context } from '../../request/context.ts';

/** Tells who asks for a subscription by an ordinary request how to ask for it. */
export const subscriptionsPlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    didResolveOperation: async ({ operation }) => {
      if (operation?.operation !== OperationTypeNode.SUBSCRIPTION) return;
      throw new GraphQLError('Subscriptions are served as server-sent events, to Accept: text/event-stream, and by WebSocket', {
        extensions: { code: ApolloServerErrorCode.BAD_REQUEST, http: { status: 400 } },
      });
    },
  }),
};
