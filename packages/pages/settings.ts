import type { Correspondence } from './correspondence.ts';

/** A user of the demo data, whose password is public. */
export interface DemoUser {
  username: string;
  password: string;
  scopes: readonly string[];
  disabled: boolean;
}

/** Settings that the server passes to the scripts of a page. */
export interface PageSettings {
  /** BASE_PATH. */
  base: string;
  /** Users offered for sign-in with their passwords. Empty unless on the embedded default. */
  demoUsers: readonly { username: string; password: string }[];
}

/** A REST endpoint with its GraphQL equivalent, which the home page runs and compares. */
export interface Comparison {
  method: string;
  /** Path under BASE_PATH, with example parameters. */
  path: string;
  summary: string;
  /** What a request does. */
  kind: 'read' | 'create' | 'login' | 'logout';
  /** Who may call the endpoint: `public`, `signed-in`, `login` or a scope. */
  access: string;
  /** Where the REST request has the variables of the operation, if not in the path. */
  body?: 'form' | 'json' | 'basic';
  operation: Selection;
  /** The fields of the REST response. */
  response: Selection;
  variables: Readonly<Record<string, unknown>>;
  correspondences: readonly Correspondence[];
}

/** The fields of an operation or response, or subfields of a field. */
export interface Selection {
  /** Text before the fields, for example `query ($first: Int) {`. */
  open: string;
  fields: readonly Field[];
  close: string;
}

/** A field of an operation or response. */
interface Field {
  /** The field with its alias and arguments. */
  text: string;
  /** Name in the response. */
  name: string;
  selection?: Selection;
}
