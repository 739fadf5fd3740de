import type { z } from 'zod';
import type { Config } from '../core/config.ts';
import type { Context } from '../request/context.ts';
import type { DomainError } from '../core/errors.ts';
import type { Scope } from '../core/scopes.ts';

/** The methods there are, in the interface's order (section 4.5). */
export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'TRACE'] as const;

export type Method = (typeof METHODS)[number];

/**
 * Who may call a row. `public`: everyone; `signed-in`: a caller with credentials; a scope: who holds it; `login`: everyone,
 * and credentials on the request are not looked at, for it is there to get new ones.
 */
export type Access = 'public' | 'signed-in' | 'login' | Scope;

/** Where a row's input comes from. A part without a schema is not read. */
interface InputSchemas {
  path?: z.ZodType;
  query?: z.ZodType;
  form?: z.ZodType;
  json?: z.ZodType;
  headers?: z.ZodType;
}

type Output<Schema> = Schema extends z.ZodType ? z.output<Schema> : undefined;

/** The input of a row, each part as its schema reads it. */
export type Input<Schemas extends InputSchemas> = { [Part in keyof InputSchemas]-?: Output<Schemas[Part]> };

/** What does the same as a row at the GraphQL door: a client that moves takes this in its place. */
interface Twin {
  /** A document of one operation. */
  operation: string;
  /** Its variables, for the examples of the row. */
  variables?: Readonly<Record<string, unknown>>;
}

/** A REST endpoint as data: routing, OPTIONS, 405, validation and the documents all follow from it. */
export interface Route<Schemas extends InputSchemas = InputSchemas, Body = unknown> {
  method: Method;
  /** Path under BASE_PATH, parameters in braces, written as the interface writes it. */
  path: string;
  /** A few words for the documents. */
  summary: string;
  /** What it does, needs and returns, for the documents: two or three sentences of Markdown. */
  description: string;
  /** Where it depends on what is asked, from the JSON body as it came. */
  access: Access | ((json: object | undefined) => Access);
  input?: Schemas;
  /** What the documents show of a part of the input that the row reads more loosely. */
  documented?: InputSchemas;
  /** Bodies of requests for the documents, by name. Without them, the documents have one, made of the examples of the schema. */
  examples?: Readonly<Record<string, unknown>>;
  /** Errors of this endpoint, as examples for the documents. They replace those of the same status that every endpoint has. */
  refusals?: readonly DomainError[];
  /** A request without a body is not refused. */
  bodyOptional?: true;
  success: {
    status: number;
    /** What leaves: only what the schema names. */
    body: z.ZodType<unknown, Body>;
    /** The handler answers its text, in pieces. */
    stream?: true;
    headers?: (ctx: Context, body: Body) => Record<string, string>;
    /** Those of them that there may be, and what they say. */
    documentedHeaders?: Readonly<Record<string, string>>;
  };
  /** The member that holds the text of an error: `data` in the session router, `detail` elsewhere. */
  errorKey?: 'detail' | 'data';
  /** Where its form has a `grant_type`, errors also have `error` and `error_description` (RFC 6749, 5.2). */
  oauth?: true;
  /** The answer holds a key or a token: nobody may keep it. */
  secret?: true;
  /** Without credentials, its answer is the same for everyone until this table changes (tally.ts), and may be kept by whoever gets it. */
  tally?: string;
  /** The path of the row that took over from this one (interface, section 9). */
  successor?: string;
  /** A test runs both and compares. */
  twin: Twin;
  handle(ctx: Context, input: Input<Schemas>): Promise<Body> | AsyncIterable<string>;
}

/** The rows of a feature, which may depend on the configuration. */
export type Routes = (config: Config) => Route[];

/** A row, with the types of its input and body checked against its handler. */
export function route<const Schemas extends InputSchemas, Body>(row: Route<Schemas, Body>): Route {
  // Inside, all rows are alike: the adapter reads the input by the row's own schemas before it calls the handler.
  return row as unknown as Route;
}

/** The text of a JSON array, a piece for each batch of its elements. */
export async function* jsonArray(batches: AsyncIterable<readonly unknown[]>): AsyncGenerator<string> {
  let before = '[';
  for await (const batch of batches) {
    if (batch.length === 0) continue;
    yield before + batch.map((element) => JSON.stringify(element)).join();
    before = ',';
  }
  yield before === '[' ? '[]' : ']';
}
