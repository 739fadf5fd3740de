/** Which of the two doors a request came to: `other` are the pages, the health endpoints and paths that there are none of. */
export type Door = 'graphql' | 'rest' | 'other';

/** A GraphQL operation, as the log and the metrics name it. */
export interface Operation {
  /** Absent where it has none. */
  name?: string;
  type: string;
  /** Its name in metrics, which tell only so many apart. */
  label: string;
}

/** What is known of a request, all of it once it is over. Nothing of it is a secret, or text of the client's choosing without bounds. */
export interface Seen {
  requestId: string;
  /** The id of its trace, where traces are sent. */
  traceId?: string;
  method: string;
  door: Door;
  /** Method and path of its row, parameters in braces; the path alone where there is no row for the method, or for OPTIONS. */
  row?: string;
  operation?: Operation;
  /** The username of who made it. */
  user?: string;
  /** Absent where nothing was answered. */
  status?: number;
  /** The codes of what was refused. */
  errors?: readonly string[];
  /** Of the answer's body, as far as it was sent. */
  bytes: number;
  /** How it ended: with an answer, with a client that left before it had it all, or with an answer that we broke off. */
  end: 'answered' | 'aborted' | 'broken';
}

/** Notes the codes of what a client of GraphQL is told is wrong, each once. */
export function noteErrors(seen: Seen, errors: readonly { readonly extensions?: Readonly<Record<string, unknown>> }[]): void {
  seen.errors = [...new Set([...(seen.errors ?? []), ...errors.map(({ extensions }) => String(extensions?.['code']))])];
}

/** Is told of a request when it is over, and how long it took in ms. */
export type Observer = (seen: Seen, ms: number) => void;
