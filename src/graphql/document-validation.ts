import {
  GraphQLError,
  Kind,
  parse,
  specifiedRules,
  validate,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import type { Config } from '../core/config.ts';
import { Cost } from './cost.ts';
import { limitRules } from './limits.ts';

/**
 * Returns the errors for which a document would be rejected: by the schema, and by the limits. The
 * cost is computed with the default values of its variables.
 */
export function validateDocument(
  schema: GraphQLSchema,
  config: Config,
  text: string,
): readonly GraphQLError[] {
  let document: DocumentNode;
  try {
    document = parse(text, { maxTokens: config.graphqlMaxTokens });
  } catch (error) {
    if (error instanceof GraphQLError) return [error];
    throw error;
  }
  const errors = validate(schema, document, [...specifiedRules, ...limitRules(config)]);
  if (errors.length > 0) return errors;
  return document.definitions
    .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
    .flatMap((operation) => {
      const error = new Cost(schema, document, operation, config.graphqlMaxCost).errorFor({});
      return error ? [new GraphQLError(error.message, { nodes: operation })] : [];
    });
}
