import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isMainThread } from 'node:worker_threads';
import type { ProbeSample } from './probed.ts';

// Loaded by `--import` into every process and thread of a server, before its modules. Only the main
// thread of src/main.js is sampled.
const port = Number(process.env['PROBE_PORT']);
if (isMainThread && port > 0 && /\bsrc\/main\.js$/.test(process.argv[1] ?? '')) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  createServer((_req, res) => {
    const lagP99 = lag.percentile(99) / 1e6;
    collect();
    lag.reset();
    const { heapUsed, rss } = process.memoryUsage();
    const probed: ProbeSample = {
      heap: heapUsed / 2 ** 20,
      rss: rss / 2 ** 20,
      files: readdirSync('/proc/self/fd').length,
      resources: process.getActiveResourcesInfo().length,
      lagP99,
    };
    res.setHeader('Connection', 'close').end(JSON.stringify(probed));
  })
    .listen(port, '127.0.0.1')
    .unref();
}
