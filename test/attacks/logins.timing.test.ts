import { afterAll, beforeEach, expect, jest, test } from '@jest/globals';
import bcrypt from 'bcrypt';
import { Agent, request } from 'node:http';
import { mannWhitneyP, median } from '../support/medians.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

// The time that a refusal takes must not tell whether the name is somebody's. Two names are tried in turn on one connection,
// and the two samples compared. Whatever else the machine does may tip one round, so only what shows in each of them is a
// difference. The doors that are not here share their handler with one that is; logins.test.ts counts what each of them does.

const PAIRS = 200;
const ROUNDS = 3;
const WRONG = 'wrong password';

// Failures are what is measured here, so none may be refused for their number.
const shop = useShop({ LOGIN_FAILURES_PER_ACCOUNT: '1000000', LOGIN_FAILURES_PER_ADDRESS: '1000000', LOG_LEVEL: 'warn' }, true);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

jest.setTimeout(300_000);
afterAll(() => agent.destroy());

/** A request as it is sent, for this name and password. */
type Door = (username: string, password: string) => { method: string; path: string; type?: string; authorization?: string; body?: string };

const LOGIN = 'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { sessionKey } }';
const form = (path: string): Door => {
  return (username, password) => ({
    method: 'POST',
    path,
    type: 'application/x-www-form-urlencoded',
    body: new URLSearchParams({ username, password }).toString(),
  });
};
const basic: Door = (username, password) => ({
  method: 'GET',
  path: '/api/v2/auth/login',
  authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
});
const session: Door = (username, password) => ({
  method: 'POST',
  path: '/session/login',
  type: 'application/json',
  body: JSON.stringify({ username, password }),
});
const graphql: Door = (username, password) => ({
  method: 'POST',
  path: '/graphql',
  type: 'application/json',
  body: JSON.stringify({ query: LOGIN, variables: { username, password } }),
});

// Names of one length: a longer one would be longer on its way.
const KNOWN = 'alice';
const OLDER = 'elder';
const UNKNOWN = 'nobod';

beforeEach(async () => {
  await shop.makeUser({ username: KNOWN });
  await shop.makeUser({ username: OLDER, hashedPassword: bcrypt.hashSync(PASSWORD, 8) });
});

test.each<[string, Door]>([
  ['POST /token', form('/token')],
  ['POST /login', form('/login')],
  ['POST /session/login', session],
  ['GET /api/v2/auth/login', basic],
  ['login of GraphQL', graphql],
])('E2 a name that nobody has is refused in the time that a wrong password takes: %s', async (_door, door) => {
  const rounds = await differences(PAIRS, door(UNKNOWN, WRONG), door(KNOWN, WRONG));
  expect(rounds).toContainEqual(expect.objectContaining({ alike: true }));
});

test('E3 a name that nobody has is refused in the time that a wrong password for an older hash takes', async () => {
  const rounds = await differences(PAIRS, form('/token')(UNKNOWN, WRONG), form('/token')(OLDER, WRONG));
  expect(rounds).toContainEqual(expect.objectContaining({ alike: true }));
});

test('E2 the measure sees what takes a few statements longer: the right password', async () => {
  const token = form('/token');
  const rounds = await differences(PAIRS, token(UNKNOWN, WRONG), token(KNOWN, PASSWORD), ({ alike }) => !alike);
  expect(rounds).toContainEqual(expect.objectContaining({ alike: false }));
});

interface Difference {
  /** How much longer the one takes than the other, by their medians. */
  ratio: number;
  p: number;
  alike: boolean;
}

/** Measures the two against each other, round after round until one is as is hoped for. Returns what each round found. */
async function differences(
  pairs: number,
  one: ReturnType<Door>,
  other: ReturnType<Door>,
  isHopedFor = ({ alike }: Difference) => alike,
): Promise<Difference[]> {
  const found: Difference[] = [];
  for (const attempt of [one, other, other, one]) await timeOf(attempt);
  for (let round = 0; round < ROUNDS && !found.some(isHopedFor); round++) {
    const times: [number[], number[]] = [[], []];
    for (let pair = 0; pair < pairs; pair++) {
      // By turns, each is the first of its pair.
      const isFirst = pair % 2 === 0;
      const [first, second] = isFirst ? times : times.toReversed();
      first?.push(await timeOf(isFirst ? one : other));
      second?.push(await timeOf(isFirst ? other : one));
    }
    const ratio = median(times[0]) / median(times[1]);
    const p = mannWhitneyP(...times);
    found.push({ ratio, p, alike: Math.abs(ratio - 1) <= 0.05 && p > 0.01 });
  }
  return found;
}

/** Milliseconds from the request to the end of its answer. */
function timeOf({ method, path, type, authorization, body = '' }: ReturnType<Door>): Promise<number> {
  const headers = {
    'Content-Length': Buffer.byteLength(body),
    ...(type !== undefined && { 'Content-Type': type }),
    ...(authorization !== undefined && { Authorization: authorization }),
  };
  return new Promise((done, fail) => {
    const start = performance.now();
    const sent = request({ agent, host: '127.0.0.1', port: shop.port, method, path, headers }, (answer) => {
      answer.resume().once('end', () => done(performance.now() - start));
    });
    sent.once('error', fail).end(body);
  });
}
