import bcrypt from 'bcrypt';
import { setTimeout } from 'node:timers/promises';
import { hashingChannel } from '../../src/core/tracing-channels.ts';
import { expect, test } from '../support/jest.ts';
import { PASSWORD, useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop({}, { passwordHashThreads: 1 });

test('B7 a login whose client disconnects while it is hashed holds up no other', async () => {
  const hashedPassword = bcrypt.hashSync(PASSWORD, 13);
  const { username } = await shop.makeUser({ hashedPassword });
  const login = (name: string, signal = new AbortController().signal) =>
    fetch(`${shop.url}/token`, {
      method: 'POST',
      body: new URLSearchParams({ username: name, password: 'wrong password' }),
      signal,
    });
  // Starts the thread.
  await login('nobody');
  let started = 0;
  const count = () => void started++;
  hashingChannel.start.subscribe(count);
  try {
    const leaving = new AbortController();
    const left = login(username, leaving.signal).catch(({ name }: Error) => name);
    await until(() => started === 1);
    const waiting = login('nobody');
    await until(() => started === 2);
    await setTimeout(100);
    leaving.abort();
    expect([await left, (await waiting).status]).toEqual(['AbortError', 401]);
  } finally {
    hashingChannel.start.unsubscribe(count);
  }
});
