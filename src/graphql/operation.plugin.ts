import type { ApolloServerPlugin } from '@apollo/server';
import type { Context } from '../request/context.ts';
import { recordOf } from '../http/dependencies.ts';
import type { Operations } from '../telemetry/operations.ts';
import { recordErrors } from '../telemetry/request-record.ts';

/** Adds the operation, the user and the error codes to the request record. */
export function operationPlugin(operations: Operations): ApolloServerPlugin<Context> {
  return {
    requestDidStart: async ({ contextValue }) => {
      const record = recordOf(contextValue);
      if (!record) return {};
      return {
        didResolveOperation: async ({ operation }) => {
          if (operation) record.operation = operations.of(operation);
        },
        willSendResponse: async ({ response: { body } }) => {
          const user = contextValue.caller?.username;
          if (user !== undefined) record.user = user;
          if (body.kind === 'single' && body.singleResult.errors)
            recordErrors(record, body.singleResult.errors);
        },
      };
    },
  };
}
