/** Work that can be aborted. */
export interface Abortable {
  readonly signal: AbortSignal;
  /** Called when the database starts the work. */
  begin?(): void;
  /** The work that this work is a part of. */
  readonly parent?: Abortable | undefined;
}

/** Calls the listener when the signal is aborted; at once if it already is. */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): void {
  if (signal?.aborted) listener();
  else signal?.addEventListener('abort', listener, { once: true });
}

/**
 * Runs work that is aborted with the request or `ms` after the database started it. Returns
 * undefined when the time limit aborted it.
 */
export async function withTimeLimit<T>(
  request: Abortable | undefined,
  ms: number,
  work: (part: Abortable) => Promise<T>,
): Promise<T | undefined> {
  const limit = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = () => {
    request?.begin?.();
    clearTimeout(timer);
    timer = setTimeout(() => limit.abort(), ms);
  };
  const signal = AbortSignal.any([limit.signal, ...(request ? [request.signal] : [])]);
  try {
    return await work({ signal, begin, parent: request?.parent ?? request });
  } catch (error) {
    if (limit.signal.aborted && request?.signal.aborted !== true) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the result of the work, or throws the reason of the signal if it is aborted first. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason as Error);
  onAbort(signal, abort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    // Otherwise the signal would keep the result.
    signal.removeEventListener('abort', abort);
  }
}
