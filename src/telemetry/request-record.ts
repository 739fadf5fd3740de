/** API of a request. `other`: pages, health endpoints and unknown paths. */
export type Api = 'graphql' | 'rest' | 'other';

/** A GraphQL operation, as the log and the metrics name it. */
export interface Operation {
  /** Absent for an anonymous operation. */
  name?: string;
  type: string;
  /** Name in metrics, which distinguish a limited number of names. */
  label: string;
}

/**
 * Facts of a request, complete when the request is over. Never contains secrets or unbounded text
 * chosen by the client.
 */
export interface RequestRecord {
  requestId: string;
  /** Trace id, if traces are sent. */
  traceId?: string;
  method: string;
  api: Api;
  /**
   * Method and path of the endpoint, with parameters in braces. Only the path for OPTIONS and for
   * methods without an endpoint.
   */
  endpoint?: string;
  operation?: Operation;
  /** Username of the caller. */
  user?: string;
  /** Absent without a response. */
  status?: number;
  /** Error codes. */
  errors?: readonly string[];
  /** Number of sent bytes of the response body. */
  bytes: number;
  /**
   * `answered`: the response was sent. `aborted`: the client disconnected before. `broken`: the
   * server interrupted the response.
   */
  end: 'answered' | 'aborted' | 'broken';
}

/** Adds the distinct codes of GraphQL errors to the record. */
export function recordErrors(
  record: RequestRecord,
  errors: readonly { readonly extensions?: Readonly<Record<string, unknown>> }[],
): void {
  record.errors = [
    ...new Set([
      ...(record.errors ?? []),
      ...errors.map(({ extensions }) => String(extensions?.['code'])),
    ]),
  ];
}

/** Called with each completed request and its duration in ms. */
export type Observer = (record: RequestRecord, ms: number) => void;
