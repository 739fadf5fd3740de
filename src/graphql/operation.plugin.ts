import type { ApolloServerPlugin } from '@apollo/server';
import type { Context } from '../request/context.ts';
import { seenOf } from '../http/dependencies.ts';
import type { Operations } from '../telemetry/operations.ts';
import { noteErrors } from '../telemetry/request-record.ts';

/** Notes which operation a request runs, who turns out to make it, and the codes of what goes wrong with it. */
export function operationPlugin(operations: Operations): ApolloServerPlugin<Context> {
  return {
    requestDidStart: async ({ contextValue }) => {
      const seen = seenOf(contextValue);
      if (!seen) return {};
      return {
        didResolveOperation: async ({ operation }) => {
          if (operation) seen.operation = operations.of(operation);
        },
        willSendResponse: async ({ response: { body } }) => {
          const user = contextValue.caller?.username;
          if (user !== undefined) seen.user = user;
          if (body.kind === 'single' && body.singleResult.errors) noteErrors(seen, body.singleResult.errors);
        },
      };
    },
  };
}
