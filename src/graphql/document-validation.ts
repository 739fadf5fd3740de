import { GraphQLError, Kind, specifiedRules, validate, type DocumentNode, type GraphQLSchema } from 'graphql';
import type { Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { Cost } from './cost.ts';
import { limitRules } from './limits.ts';
import { wordsOf } from './document-tokens.ts';

/**
 * Why a document would be refused: what the schema has no place for, and the limits that it exceeds. Its cost is looked at with the
 * defaults of its variables, where it has no others.
 */
export function faultsOf(
  schema: GraphQLSchema,
  limits: Config['graphqlLimits'],
  text: string,
  document: DocumentNode,
): readonly GraphQLError[] {
  if (wordsOf(text, limits.tokens) === undefined) return [new GraphQLError(`The query has more than ${limits.tokens} tokens`)];
  const faults = validate(schema, document, [...specifiedRules, ...limitRules(limits)]);
  return faults.length > 0 ? faults : costFaults(schema, limits, document);
}

function costFaults(schema: GraphQLSchema, limits: Config['graphqlLimits'], document: DocumentNode): GraphQLError[] {
  return document.definitions
    .filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
    .flatMap((operation) => {
      try {
        new Cost(schema, document, operation, limits.cost).refuseDear({});
        return [];
      } catch (error) {
        if (!(error instanceof GraphQLError || error instanceof DomainError)) throw error;
        return [new GraphQLError(error.message, { nodes: operation })];
      }
    });
}
