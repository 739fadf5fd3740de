import type { z } from 'zod';
import type { Config } from '../core/config.ts';
import type { Context } from '../request/context.ts';
import type { DomainError } from '../core/errors.ts';
import type { Scope } from '../core/scopes.ts';
import type { Correspondence } from '../../packages/pages/index.ts';

/** All methods, in the interface's order (section 4.5). */
export const METHODS = [
  'GET',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'TRACE',
] as const;

export type Method = (typeof METHODS)[number];

/**
 * Who may call an endpoint. `public`: everyone; `signed-in`: authenticated callers; a scope:
 * callers with the scope; `login`: everyone, and the request's credentials are ignored, because it
 * issues new ones.
 */
type Access = 'public' | 'signed-in' | 'login' | Scope;

/** Schemas of an endpoint's input. A part without a schema is not read. */
interface InputSchemas {
  path?: z.ZodType;
  query?: z.ZodType;
  form?: z.ZodType;
  json?: z.ZodType;
  headers?: z.ZodType;
}

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

/** Input of an endpoint, parsed by its schemas. */
export type Input<Schemas extends InputSchemas> = {
  [Part in keyof InputSchemas]-?: Output<Schemas[Part]>;
};

/** GraphQL operation that replaces an endpoint when a client migrates. */
interface GraphqlEquivalent {
  /** Document with one operation. */
  operation: string;
  /** Variables of the operation for the endpoint's examples. */
  variables?: Readonly<Record<string, unknown>>;
  /** Parts with the same values. The home page compares the responses by them. */
  correspondences: readonly Correspondence[];
}

/** A REST endpoint as data. Routing, OPTIONS, 405, validation and the documents derive from it. */
export interface Route<Schemas extends InputSchemas = InputSchemas, Body = unknown> {
  method: Method;
  /** Path under BASE_PATH as in the interface, with parameters in braces. */
  path: string;
  /** Summary for the documents, a few words. */
  summary: string;
  /** Description for the documents: two or three sentences of Markdown. */
  description: string;
  /** A function determines the access from the unvalidated JSON body. */
  access: Access | ((json: object | undefined) => Access);
  input?: Schemas;
  /** Schemas for the documents, where the endpoint accepts more than it documents. */
  documented?: InputSchemas;
  /** Example request bodies for the documents, by name. Default: one from the schema's examples. */
  examples?: Readonly<Record<string, unknown>>;
  /** Example errors for the documents. They replace the general examples of the same status. */
  errors?: readonly DomainError[];
  /** Requests without a body are accepted. */
  bodyOptional?: true;
  success: {
    status: number;
    /** Only members that the schema names are sent. */
    body: z.ZodType<unknown, Body>;
    /** The handler returns the text of the body in chunks. */
    stream?: true;
    headers?: (ctx: Context, body: Body) => Record<string, string>;
  };
  /** Member with the error message: `data` in the session router, `detail` elsewhere. */
  errorKey?: 'detail' | 'data';
  /** With a `grant_type`, errors also have `error` and `error_description` (RFC 6749, 5.2). */
  oauth?: true;
  /** The response contains a key or a token and must not be stored. */
  secret?: true;
  /**
   * Without credentials, the response is the same for everyone and may be cached until this table
   * changes (pagination/row-counts.ts).
   */
  rowCounts?: string;
  /** Path of the endpoint that replaces this one (interface, section 9). */
  successor?: string;
  /** A test compares the results of both. */
  graphqlEquivalent: GraphqlEquivalent;
  handle(ctx: Context, input: Input<Schemas>): Promise<Body> | AsyncIterable<string>;
}

/** Endpoints of a feature, which may depend on the configuration. */
export type Routes = (config: Config) => Route[];

/** Checks the types of an endpoint's input and body against its handler. */
export function route<const Schemas extends InputSchemas, Body>(
  endpoint: Route<Schemas, Body>,
): Route {
  // Safe, because the adapter parses the input by the endpoint's schemas before it calls the
  // handler.
  return endpoint as unknown as Route;
}

/** Yields the text of a JSON array, one chunk for each batch of elements. */
export async function* jsonArray(
  batches: AsyncIterable<readonly unknown[]>,
): AsyncGenerator<string> {
  let prefix = '[';
  for await (const batch of batches) {
    if (batch.length === 0) continue;
    yield prefix + batch.map((element) => JSON.stringify(element)).join();
    prefix = ',';
  }
  yield prefix === '[' ? '[]' : ']';
}
