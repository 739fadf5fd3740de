import type { Abortable } from '../database/sql.ts';

/** What somebody waits for, until it is given up. Who asks too late to be told of that is told at once. */
export class GivingUp implements Abortable {
  private givenUp = false;
  private ends: Set<() => void> | undefined;
  private controller: AbortController | undefined;

  constructor(readonly whole?: Abortable) {}

  /** Whether nobody waits for it any longer. */
  get isGivenUp(): boolean {
    return this.givenUp;
  }

  /** Aborted when it is given up. Made when it is asked for: few requests take long enough. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.givenUp) this.controller.abort();
    return this.controller.signal;
  }

  /** Stops what is being done for it. */
  giveUp(): void {
    if (this.givenUp) return;
    this.givenUp = true;
    this.controller?.abort();
    for (const end of this.ends ?? []) end();
  }

  onGiveUp(end: () => void): void {
    if (this.givenUp) end();
    else (this.ends ??= new Set()).add(end);
  }

  offGiveUp(end: () => void): void {
    this.ends?.delete(end);
  }
}

/** Does work that is given up with the request, or so many ms after the database has begun with it: then returns undefined. */
export async function withinTime<T>(
  request: Abortable | undefined,
  ms: number,
  work: (own: Abortable) => Promise<T>,
): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const own: GivingUp & Abortable = new GivingUp(request);
  const end = () => own.giveUp();
  own.begin = () => {
    clearTimeout(timer);
    timer = setTimeout(end, ms);
  };
  request?.onGiveUp(end);
  try {
    return await work(own);
  } catch (error) {
    if (own.isGivenUp && request?.isGivenUp !== true) return undefined;
    throw error;
  } finally {
    clearTimeout(timer);
    request?.offGiveUp(end);
  }
}
