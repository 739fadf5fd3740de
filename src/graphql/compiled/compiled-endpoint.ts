import type { ApolloServerPlugin } from '@apollo/server';
import type { IncomingMessage } from 'node:http';
import type { Context } from '../../request/context.ts';
import { isAnonymous } from '../../http/credentials.ts';
import type { GraphqlRequest, CompiledOperations } from './compiled-operations.ts';
import type { CachedResponse, ResponseCache } from '../../http/response-cache.ts';

/** Response of a compiled operation or of the response cache, with its operation. */
export type CompiledResponse = Pick<CachedResponse, 'body' | 'forms' | 'operation'>;

/**
 * Responses without Apollo Server: compiled operations and the response cache. They return the same
 * bytes, and only successful responses; Apollo Server does the rest.
 */
export interface CompiledEndpoint {
  /** Compiles the documents that Apollo Server has parsed, validated and begun to execute. */
  plugin: ApolloServerPlugin<Context>;
  /** Returns the cached response to this body for requests without credentials. */
  cached(
    ctx: Pick<Context, 'statements'>,
    req: IncomingMessage,
    text: string,
  ): CompiledResponse | undefined;
  /** Runs the compiled operation of the request, if any. `text` is the body, `parsed` its value. */
  compiled(
    ctx: Context,
    req: IncomingMessage,
    text: string,
    parsed: unknown,
  ): Promise<CompiledResponse | undefined> | undefined;
}

/** Creates the compiled endpoint. Without a cache, Apollo Server runs every request. */
export function createCompiledEndpoint(
  operations: CompiledOperations,
  cache: ResponseCache | undefined,
): CompiledEndpoint {
  return {
    plugin: {
      requestDidStart: async () => ({
        executionDidStart: async ({ request, source, document, operation }) => {
          if (cache) operations.add(source, request.operationName, document, operation);
        },
      }),
    },
    cached: (ctx, req, text) =>
      cache && isPlain(req) && isAnonymous(req) ? cache.find(ctx, keyOf(text)) : undefined,
    compiled(ctx, req, text, parsed) {
      if (!isPlain(req)) return undefined;
      const request = requestOf(parsed);
      const operation = request && operations.of(request);
      if (!operation || !operation.allows(request.variables)) return undefined;
      const run = async () => {
        const body = await operation.run(ctx, request.variables);
        return body === undefined ? undefined : { body, operation: operation.operation };
      };
      const [rowCounts, ...others] = operation.rowCounts;
      if (!cache || rowCounts === undefined || others.length > 0 || !isAnonymous(req)) return run();
      return cache.getOrMake(ctx, keyOf(text), rowCounts, run);
    },
  };
}

// The prefix separates the keys from those of the REST API in the same cache.
function keyOf(text: string): string {
  return `POST ${text}`;
}

// Other media types have other rules for status and errors (GraphQL over HTTP, 6).
function isPlain({ headers: { accept } }: IncomingMessage): boolean {
  return accept === undefined || accept === '*/*' || accept === 'application/json';
}

function requestOf(parsed: unknown): GraphqlRequest | undefined {
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const { query, operationName, variables, extensions, ...rest } = parsed as Record<
    string,
    unknown
  >;
  if (typeof query !== 'string' || Object.keys(rest).length > 0 || !hasNoEffect(extensions))
    return undefined;
  if (operationName != null && typeof operationName !== 'string') return undefined;
  if (variables != null && (typeof variables !== 'object' || Array.isArray(variables)))
    return undefined;
  return {
    query,
    ...(operationName != null && { operationName }),
    variables: (variables ?? {}) as Record<string, unknown>,
  };
}

// Apollo Client sends its library in each request.
function hasNoEffect(extensions: unknown): boolean {
  if (extensions == null) return true;
  return (
    typeof extensions === 'object' &&
    !Array.isArray(extensions) &&
    Object.keys(extensions).every((name) => name === 'clientLibrary')
  );
}
