import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { postForm } from '../support/post-form.ts';
import { startServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { makePlace } from './place.ts';

/** Which signal has it throw what (throw-on-signal.ts). */
const FAULTS = { 'an exception': 'SIGUSR2', 'a rejection': 'SIGWINCH' } as const;
const LOGINS = 4;
const LOGIN = 'username=alice&password=alice-demo-1';
/** Hashing at this cost takes long enough to be under way. */
const COST = '12';

export const uncaught: Fault = {
  name: 'uncaught',
  promise:
    'An exception or a rejection that nobody catches is logged, what has come in is answered, and the server ends with 1 within 10 s, for whoever watches it to start it anew.',
  rows: ['F12'],
  on: ['embedded'],
  async run(world) {
    const place = await makePlace(world);
    const thrower = pathToFileURL(join(import.meta.dirname, 'throw-on-signal.js')).href;
    const env = { ...place.env, LOG_LEVEL: 'fatal', BCRYPT_COST: COST, NODE_OPTIONS: `--import=${thrower}` };
    let slowest = 0;
    for (const [what, signal] of Object.entries(FAULTS)) {
      const server = await startServer(env);
      world.atEnd(() => server.child.kill('SIGKILL'));
      const logins = Array.from({ length: LOGINS }, () => postForm(`${server.url}/token`, LOGIN));
      await Promise.all(logins.map(({ sent }) => sent));
      // Connections are taken in their order, so once this one is served the logins are with the server.
      await fetch(`${server.url}/livez`);
      const begun = performance.now();
      server.child.kill(signal);
      assert.deepEqual(await Promise.all(logins.map(({ status }) => status)), Array(LOGINS).fill(200), `what had come in before ${what}`);
      const { code, stderr } = await server.ended;
      slowest = Math.max(slowest, performance.now() - begun);
      assert.equal(code, 1);
      assert.match(stderr, /"msg":"an error was caught by nobody"/);
      assert.match(stderr, /by nobody in particular/);
    }
    return {
      'ended after at most': `${(slowest / 1000).toFixed(1)} s`,
      'to end within': '10 s',
      'requests in flight, all answered': LOGINS,
    };
  },
};
