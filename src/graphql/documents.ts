import { ApolloServerErrorCode } from '@apollo/server/errors';
import {
  GraphQLError,
  parse,
  specifiedRules,
  validate,
  visit,
  type DocumentNode,
  type GraphQLFormattedError,
  type GraphQLSchema,
  type Location,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Dependencies } from '../http/dependencies.ts';
import { formatErrors, graphqlErrorOf } from './errors.ts';
import { withInputErrors } from './input-errors.plugin.ts';
import { MAX_VALIDATION_ERRORS, noConditionsRule, validationRules } from './limits.ts';

/** Approximate number of bytes of a node of a parsed document. */
const NODE_BYTES = 300;
/** Maximum number of bytes of cached documents, and of compiled operations. */
export const MAX_DOCUMENTS_BYTES = 16_000_000;
/**
 * Maximum number of bytes of a cached document. Larger ones are parsed for each request: they are
 * rare, or sent to fill the memory.
 */
const MAX_DOCUMENT_BYTES = 200_000;
/** Maximum number of characters of documents and errors in a cache of refusals, and in one entry. */
const MAX_REFUSALS_SIZE = 2_000_000;
const MAX_REFUSAL_SIZE = 100_000;
/** Number of characters that an entry counts there, beside its JSON. */
const REFUSAL_OVERHEAD = 2_000;

const { BAD_REQUEST, GRAPHQL_PARSE_FAILED, GRAPHQL_VALIDATION_FAILED } = ApolloServerErrorCode;

/**
 * Errors of an invalid document, formatted, because an Error would retain what its stack references:
 * the connection.
 */
export interface Refusal {
  /** Errors for subscription transports. */
  readonly errors: readonly GraphQLFormattedError[];
  /** Errors for POST and GET. */
  readonly httpErrors: readonly GraphQLFormattedError[];
  /** Whether the document is a subscription with a condition. */
  readonly isConditional?: true;
}

/**
 * Parses and validates the documents of all transports. Caches the results, bounded by their
 * memory.
 */
export class Documents {
  private readonly valid = new LRUCache<string, DocumentNode>({
    maxSize: MAX_DOCUMENTS_BYTES,
    maxEntrySize: MAX_DOCUMENT_BYTES,
    sizeCalculation: sizeOf,
  });
  private readonly refused = createRefusalCache<Refusal>();
  private readonly rules;

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly dependencies: Dependencies,
  ) {
    this.rules = [...specifiedRules, ...validationRules(dependencies.config)];
  }

  /** Returns the parsed and validated document of this text, or its errors. */
  read(text: string): DocumentNode | Refusal {
    const known = this.valid.get(text) ?? this.refused.get(text);
    if (known) return known;
    const result = this.validate(text);
    if ('kind' in result) this.valid.set(text, result);
    else this.refused.set(text, result);
    return result;
  }

  private validate(text: string): DocumentNode | Refusal {
    const { schema, dependencies } = this;
    let document: DocumentNode;
    try {
      document = parse(text, { maxTokens: dependencies.config.graphqlMaxTokens });
    } catch (error) {
      const errors = formatErrors(dependencies, [graphqlErrorOf(error)], GRAPHQL_PARSE_FAILED);
      return { errors, httpErrors: errors };
    }
    const conditions = text.includes('subscription')
      ? validate(schema, document, [noConditionsRule])
      : [];
    const causes =
      conditions.length > 0
        ? conditions
        : validate(schema, document, this.rules, { maxErrors: MAX_VALIDATION_ERRORS });
    const [first] = causes;
    if (!first) return withoutTokens(document);
    const errors = formatErrors(dependencies, causes, GRAPHQL_VALIDATION_FAILED);
    if (conditions.length > 0) {
      const httpErrors = [{ message: first.message, extensions: { code: BAD_REQUEST } }];
      return { errors, httpErrors, isConditional: true };
    }
    const request = { schema, document, now: dependencies.now(), variables: {} };
    return { errors, httpErrors: withInputErrors(request, causes, errors) };
  }
}

/** Creates a bounded cache of refusals by document. */
export function createRefusalCache<T extends object>(): LRUCache<string, T> {
  return new LRUCache({
    maxSize: MAX_REFUSALS_SIZE,
    maxEntrySize: MAX_REFUSAL_SIZE,
    sizeCalculation: (refusal, document) =>
      document.length + JSON.stringify(refusal).length + REFUSAL_OVERHEAD,
  });
}

/** Returns formatted errors as errors. */
export function toErrors(errors: readonly GraphQLFormattedError[]): readonly GraphQLError[] {
  return errors.map(({ message, locations, extensions }) =>
    Object.assign(new GraphQLError(message, { extensions }), { locations }),
  );
}

/** Returns the approximate number of bytes of a parsed document: its text and its nodes. */
export function sizeOf(document: DocumentNode): number {
  let nodes = 0;
  visit(document, { enter: () => void nodes++ });
  return (document.loc?.source.body.length ?? 0) + nodes * NODE_BYTES;
}

// Removes the linked tokens, which are unused after parsing and much larger than the text.
function withoutTokens(document: DocumentNode): DocumentNode {
  visit(document, { enter: ({ loc }) => loc && removeTokens(loc) });
  return document;
}

function removeTokens(location: Location): void {
  Object.assign(location, { startToken: undefined, endToken: undefined });
}
