import { join } from 'node:path';
import { freePort } from './process.ts';

/** What a server says of itself, after it has collected its garbage. Sizes are in MiB, times in ms. */
export interface Probed {
  heap: number;
  rss: number;
  /** Open file descriptors. */
  files: number;
  /** What keeps its event loop alive, or could. */
  resources: number;
  /** How late the event loop was at most in 99 of 100 cases, since the last look. */
  lagP99: number;
}

/** Looks into a server that was started with these settings. */
export interface Probe {
  env: Record<string, string>;
  look(): Promise<Probed>;
}

/** Makes the settings that let a server be looked into, on a port of loopback, and what looks. */
export async function makeProbe(): Promise<Probe> {
  const port = await freePort();
  return {
    env: { PROBE_PORT: String(port), NODE_OPTIONS: `--import=${join(import.meta.dirname, 'probe.js')}` },
    look: async () => (await (await fetch(`http://127.0.0.1:${port}`)).json()) as Probed,
  };
}
