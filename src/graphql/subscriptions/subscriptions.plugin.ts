import type { ApolloServerPlugin } from '@apollo/server';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError, OperationTypeNode } from 'graphql';
import type { Context } from '../../request/context.ts';

/** Rejects subscriptions in ordinary requests with an error that names the transports. */
export const subscriptionsPlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    didResolveOperation: async ({ operation }) => {
      if (operation?.operation !== OperationTypeNode.SUBSCRIPTION) return;
      throw new GraphQLError(
        'Subscriptions need server-sent events (Accept: text/event-stream) or a WebSocket',
        {
          extensions: { code: ApolloServerErrorCode.BAD_REQUEST, http: { status: 400 } },
        },
      );
    },
  }),
};
