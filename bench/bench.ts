import { Client } from 'pg';
import { prepare, tidy, type Size } from './catalogue.ts';
import { median } from './measure.ts';
import { startBaseline, startOurs, type MeasuredServer } from './processes.ts';

/** Number and length of measurements. */
export interface Pace {
  rounds: number;
  /** Length of one load of one server. */
  seconds: number;
}

/** The result of one benchmark. */
export interface Result {
  name: string;
  what: string;
  goal: string;
  reached: string;
  met: boolean;
  /** Further figures. */
  beside: string;
  /** Raw measurements of each round. */
  rounds: unknown[];
}

/** Returns the result of times in ms whose median must be within a limit. */
export function withinLimit(
  name: string,
  what: string,
  limit: number,
  times: readonly number[],
): Result {
  return {
    name,
    what,
    goal: `at most ${limit} ms`,
    reached: `${median(times).toFixed(1)} ms`,
    met: median(times) <= limit,
    beside: `${times.length} times, the longest ${Math.max(...times).toFixed(1)} ms`,
    rounds: [...times],
  };
}

/** The databases and servers of a run, created on demand. */
export class Bench {
  private readonly urls = new Map<Size, Promise<string>>();
  private readonly running: MeasuredServer[] = [];

  constructor(
    readonly server: string,
    readonly pace: Pace,
    /** The folder of another built checkout to compare with. */
    readonly other?: string,
  ) {}

  url(size: Size): Promise<string> {
    const known = this.urls.get(size) ?? prepare(this.server, size);
    this.urls.set(size, known);
    return known;
  }

  /** Our server on the database of this size. */
  async ours(size: Size, env?: Record<string, string>): Promise<MeasuredServer> {
    return this.stopAtEnd(await startOurs(await this.url(size), env));
  }

  /** The server of the other checkout on the database of this size, if there is one. */
  async otherCheckout(size: Size): Promise<MeasuredServer | undefined> {
    if (this.other === undefined) return undefined;
    return this.stopAtEnd(await startOurs(await this.url(size), {}, this.other));
  }

  /** The baseline on the database of this size. */
  async baseline(size: Size): Promise<MeasuredServer> {
    return this.stopAtEnd(await startBaseline(await this.url(size)));
  }

  /**
   * Stops the servers, and then deletes the data that the benchmark added to the database of this
   * size.
   */
  async tidy(size: Size): Promise<void> {
    // Pending writes complete before the servers exit.
    await this.clear();
    const client = new Client({ connectionString: await this.url(size) });
    await client.connect();
    await tidy(client, size).finally(() => client.end());
  }

  /** Registers a server to stop at the end of the benchmark. */
  stopAtEnd(server: MeasuredServer): MeasuredServer {
    this.running.push(server);
    return server;
  }

  /** Stops the servers of the last benchmark. */
  async clear(): Promise<void> {
    for (const server of this.running.splice(0)) await server.stop();
  }
}
