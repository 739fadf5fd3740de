import type { ApolloServerPlugin } from '@apollo/server';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { getOperationAST } from 'graphql';
import type { Context } from '../../kit/context.ts';
import type { FieldError } from '../../kit/errors.ts';
import { badInputs, MAX_MISTAKES } from '../../kit/validation.ts';
import { graphqlExtensions } from '../error-map.ts';
import { scalarFaults } from './scalar-faults.ts';

const { BAD_USER_INPUT, GRAPHQL_VALIDATION_FAILED } = ApolloServerErrorCode;

/**
 * Adds to a refusal by graphql-js, such as one of a missing field, what the rules of scalars refuse in the same request: the services,
 * which check them, are not reached. The refusal of a document is the same whatever its variables are (refused-documents.ts).
 */
export const scalarFaultsPlugin: ApolloServerPlugin<Context> = {
  requestDidStart: async () => ({
    willSendResponse: async ({ schema, document, request, response: { body } }) => {
      if (body.kind !== 'single' || body.singleResult.data !== undefined || !document) return;
      const { errors = [] } = body.singleResult;
      const code = errors[0]?.extensions?.['code'];
      if (code !== BAD_USER_INPUT && code !== GRAPHQL_VALIDATION_FAILED) return;
      const operation = code === BAD_USER_INPUT ? getOperationAST(document, request.operationName) : undefined;
      const added: FieldError[] = [];
      for (const fault of scalarFaults(schema, document, operation, request.variables ?? {})) {
        if (errors.length + added.length >= MAX_MISTAKES) break;
        added.push(fault);
      }
      if (added.length === 0) return;
      const refusal = badInputs(added);
      body.singleResult.errors = [...errors, { message: refusal.message, extensions: graphqlExtensions(refusal) }];
    },
  }),
};
