import { ApolloServerErrorCode } from '@apollo/server/errors';
import {
  GraphQLError,
  parse,
  specifiedRules,
  validate,
  visit,
  type DocumentNode,
  type GraphQLSchema,
  type Location,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Config } from '../core/config.ts';
import { limitRules, MAX_VALIDATION_ERRORS } from './limits.ts';

/** Approximate number of bytes of a node of a parsed document. */
const NODE_BYTES = 300;
/** Maximum number of bytes of cached documents. */
const MAX_BYTES = 16_000_000;

const { GRAPHQL_PARSE_FAILED, GRAPHQL_VALIDATION_FAILED } = ApolloServerErrorCode;

/**
 * Parses and validates documents, and caches valid ones, bounded by their memory. Apollo Server
 * uses it as its document store, and the subscription transports call `read`.
 */
export class Documents {
  /** Rules and limits, as options of Apollo Server. */
  readonly options;
  private readonly cache = new LRUCache<string, DocumentNode>({
    maxSize: MAX_BYTES,
    sizeCalculation: sizeOf,
  });

  constructor(
    private readonly schema: GraphQLSchema,
    config: Config,
  ) {
    this.options = {
      parseOptions: { maxTokens: config.graphqlMaxTokens },
      validationRules: limitRules(config),
      validationOptions: { maxErrors: MAX_VALIDATION_ERRORS },
    };
  }

  async get(key: string): Promise<DocumentNode | undefined> {
    return this.cache.get(key);
  }

  async set(key: string, document: DocumentNode): Promise<void> {
    // The linked tokens are unused after validation, and much larger than the text.
    visit(document, { enter: ({ loc }) => loc && removeTokens(loc) });
    this.cache.set(key, document);
  }

  async delete(key: string): Promise<boolean> {
    return this.cache.delete(key);
  }

  /** Returns the parsed and validated document of this text, or its errors. */
  read(text: string): DocumentNode | readonly GraphQLError[] {
    const cached = this.cache.get(text);
    if (cached) return cached;
    const { schema, options } = this;
    let document: DocumentNode;
    try {
      document = parse(text, options.parseOptions);
    } catch (error) {
      return [withCode(error as GraphQLError, GRAPHQL_PARSE_FAILED)];
    }
    const rules = [...specifiedRules, ...options.validationRules];
    const errors = validate(schema, document, rules, options.validationOptions);
    if (errors.length > 0) return errors.map((error) => withCode(error, GRAPHQL_VALIDATION_FAILED));
    void this.set(text, document);
    return document;
  }
}

/** Adds the code to an error that has none. */
function withCode(error: GraphQLError, code: ApolloServerErrorCode): GraphQLError {
  error.extensions['code'] ??= code;
  return error;
}

/** Returns the approximate number of bytes of a document: its text and its nodes. */
export function sizeOf(document: DocumentNode): number {
  let nodes = 0;
  visit(document, { enter: () => void nodes++ });
  return (document.loc?.source.body.length ?? 0) + nodes * NODE_BYTES;
}

function removeTokens(location: Location): void {
  Object.assign(location, { startToken: undefined, endToken: undefined });
}
