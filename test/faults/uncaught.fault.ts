import assert from 'node:assert/strict';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { postForm } from '../support/post-form.ts';
import type { Fault } from './fault.ts';
import { makeDatabase, startShop } from './place.ts';

/** Errors by the signal that triggers them (throw-on-signal.ts). */
const FAULTS = { 'an exception': 'SIGUSR2', 'a rejection': 'SIGWINCH' } as const;
const LOGINS = 4;
const LOGIN = 'username=alice&password=alice-demo-1';
/** A cost at which hashing takes long enough to be in flight. */
const COST = '12';

export const uncaught: Fault = {
  name: 'uncaught',
  promise:
    'An uncaught exception or rejection is logged, received requests are completed, and the server exits with 1 within 10 s for its supervisor to restart it.',
  on: ['embedded'],
  async run(context) {
    const database = await makeDatabase(context);
    const thrower = pathToFileURL(join(import.meta.dirname, 'throw-on-signal.js')).href;
    const env = {
      ...database.env,
      LOG_LEVEL: 'fatal',
      BCRYPT_COST: COST,
      NODE_OPTIONS: `--import=${thrower}`,
    };
    let slowest = 0;
    for (const [what, signal] of Object.entries(FAULTS)) {
      const server = await startShop(context, env);
      const logins = Array.from({ length: LOGINS }, () => postForm(`${server.url}/token`, LOGIN));
      await Promise.all(logins.map(({ sent }) => sent));
      // Connections are accepted in order, so after this response the server has received the
      // logins.
      await fetch(`${server.url}/livez`);
      const begun = performance.now();
      server.child.kill(signal);
      assert.deepEqual(
        await Promise.all(logins.map(({ status }) => status)),
        Array(LOGINS).fill(200),
        `requests received before ${what}`,
      );
      const { code, stderr } = await server.ended;
      slowest = Math.max(slowest, performance.now() - begun);
      assert.equal(code, 1);
      assert.match(stderr, /"msg":"Uncaught exception"/);
      assert.match(stderr, /(exception|rejection) of the test/);
    }
    return {
      'ended after at most': `${(slowest / 1000).toFixed(1)} s`,
      'to end within': '10 s',
      'received requests, all completed': LOGINS,
    };
  },
};
