import { join } from 'node:path';
import { freePort } from './process.ts';

/** Metrics of a server after a garbage collection. Sizes are in MiB, times in ms. */
export interface ProbeSample {
  heap: number;
  rss: number;
  /** Open file descriptors. */
  files: number;
  /** Number of active resources of its event loop. */
  resources: number;
  /** 99th percentile of the event loop delay since the last sample. */
  lagP99: number;
}

/** Samples a server that was started with these settings. */
export interface Probe {
  env: Record<string, string>;
  sample(): Promise<ProbeSample>;
}

/** Returns a probe on a free port of the loopback interface. */
export async function makeProbe(): Promise<Probe> {
  const port = await freePort();
  return {
    env: {
      PROBE_PORT: String(port),
      NODE_OPTIONS: `--import=${join(import.meta.dirname, 'probe.js')}`,
    },
    sample: async () => (await (await fetch(`http://127.0.0.1:${port}`)).json()) as ProbeSample,
  };
}
