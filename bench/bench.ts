import { Client } from 'pg';
import { prepare, tidy, type Size } from './catalogue.ts';
import { median } from './measure.ts';
import { startBare, startOurs, type Measured } from './processes.ts';

/** How long is measured, and how often. */
export interface Pace {
  rounds: number;
  /** Of one load of one server. */
  seconds: number;
}

/** What came of measuring one row of the table. */
export interface Result {
  name: string;
  what: string;
  goal: string;
  reached: string;
  met: boolean;
  /** Figures beside the one that counts. */
  beside: string;
  /** What was measured, round by round. */
  rounds: unknown[];
}

/** What came of times in ms whose median is to be within a limit. */
export function withinLimit(name: string, what: string, limit: number, times: readonly number[]): Result {
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

/** The databases and servers of a run, made when they are first asked for. */
export class Bench {
  private readonly urls = new Map<Size, Promise<string>>();
  private readonly running: Measured[] = [];

  constructor(
    readonly server: string,
    readonly pace: Pace,
  ) {}

  url(size: Size): Promise<string> {
    const known = this.urls.get(size) ?? prepare(this.server, size);
    this.urls.set(size, known);
    return known;
  }

  /** Our server on the database of this size. */
  async ours(size: Size, env?: Record<string, string>): Promise<Measured> {
    return this.keep(await startOurs(await this.url(size), env));
  }

  /** The bare twin on the database of this size. */
  async bare(size: Size): Promise<Measured> {
    return this.keep(await startBare(await this.url(size)));
  }

  /** Stops the row's servers, and then takes out of the database of this size what the row has put in. */
  async tidy(size: Size): Promise<void> {
    // What the load has left on its way is written until then.
    await this.clear();
    const client = new Client({ connectionString: await this.url(size) });
    await client.connect();
    await tidy(client, size).finally(() => client.end());
  }

  /** Has the server stopped at the end of the row at the latest. */
  keep(server: Measured): Measured {
    this.running.push(server);
    return server;
  }

  /** Stops the servers that the last row has started. */
  async clear(): Promise<void> {
    for (const server of this.running.splice(0)) await server.stop();
  }
}
