/** Work that can be cancelled. Lighter than an AbortSignal, because cancellation is rare. */
export interface Cancellable {
  readonly isCancelled: boolean;
  /** Called when the database starts the work. */
  begin?(): void;
  /** The work that this work is a part of. */
  readonly parent?: Cancellable | undefined;
  /** Adds a listener. A listener added after cancellation runs immediately. */
  onCancel(listener: () => void): void;
  offCancel(listener: () => void): void;
}

/** Error of cancelled work. */
export class AbortError extends Error {
  override readonly name = 'AbortError';
}

/** Cancels work, and notifies its listeners and its AbortSignal. */
export class Cancellation implements Cancellable {
  private cancelled = false;
  private listeners: Set<() => void> | undefined;
  private controller: AbortController | undefined;

  constructor(readonly parent?: Cancellable) {}

  get isCancelled(): boolean {
    return this.cancelled;
  }

  /** Aborted on cancellation. Created on first use, because few requests need it. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.cancelled) this.controller.abort();
    return this.controller.signal;
  }

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    this.controller?.abort();
    for (const listener of this.listeners ?? []) listener();
  }

  onCancel(listener: () => void): void {
    if (this.cancelled) listener();
    else (this.listeners ??= new Set()).add(listener);
  }

  offCancel(listener: () => void): void {
    this.listeners?.delete(listener);
  }
}

/**
 * Runs work that is cancelled with the request or `ms` after the database started it. Returns
 * undefined when the time limit cancelled it.
 */
export async function withTimeLimit<T>(
  request: Cancellable | undefined,
  ms: number,
  work: (cancellation: Cancellable) => Promise<T>,
): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const cancellation: Cancellation & Cancellable = new Cancellation(request);
  const cancel = () => cancellation.cancel();
  cancellation.begin = () => {
    clearTimeout(timer);
    timer = setTimeout(cancel, ms);
  };
  request?.onCancel(cancel);
  try {
    return await work(cancellation);
  } catch (error) {
    if (cancellation.isCancelled && request?.isCancelled !== true) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
    request?.offCancel(cancel);
  }
}
