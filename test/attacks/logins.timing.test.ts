import { afterAll, beforeEach, test } from '../support/jest.ts';
import bcrypt from 'bcrypt';
import { Agent } from 'node:http';
import { PASSWORD, useShop } from '../support/shop.ts';
import { compare, expectAlike, expectVerdict, timeOf, verdictOf, type Comparison, type Timed } from '../support/timing.ts';

// The time that a refusal takes must not tell whether the name is somebody's. Two names are tried in turn on one connection,
// and the two samples compared. The doors that are not here share their handler with one that is; logins.test.ts counts what each of them does.

const WRONG = 'wrong password';
/** Six hundred hashes on a busy machine, in ms. */
const PATIENCE_MS = 1_200_000;

// Failures are what is measured here, so none may be refused for their number.
const shop = useShop({ LOGIN_FAILURES_PER_ACCOUNT: '1000000', LOGIN_FAILURES_PER_ADDRESS: '1000000', LOG_LEVEL: 'warn' }, 10);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

afterAll(() => agent.destroy());

/** A request as it is sent, for this name and password. */
type Door = (username: string, password: string) => Timed;

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
const DEARER = 'dearr';
const UNKNOWN = 'nobod';

beforeEach(async () => {
  await shop.makeUser({ username: KNOWN });
  await shop.makeUser({ username: OLDER, hashedPassword: bcrypt.hashSync(PASSWORD, 8) });
  await shop.makeUser({ username: DEARER, hashedPassword: bcrypt.hashSync(PASSWORD, 11) });
});

test.each<[string, Door]>([
  ['POST /token', form('/token')],
  ['POST /login', form('/login')],
  ['POST /session/login', session],
  ['GET /api/v2/auth/login', basic],
  ['login of GraphQL', graphql],
])(
  'E2 a name that nobody has is refused in the time that a wrong password takes: %s',
  async (_door, door) => {
    expectAlike(await compared(door(UNKNOWN, WRONG), door(KNOWN, WRONG)));
  },
  PATIENCE_MS,
);

test(
  'E3 a name that nobody has is refused in the time that a wrong password for an older hash takes',
  async () => {
    expectAlike(await compared(form('/token')(UNKNOWN, WRONG), form('/token')(OLDER, WRONG)));
  },
  PATIENCE_MS,
);

test(
  'E2 the measure sees a hash that takes twice as long',
  async () => {
    const token = form('/token');
    const comparison = await compared(token(UNKNOWN, WRONG), token(DEARER, WRONG));
    expectVerdict(comparison, verdictOf(comparison, 1.3), 'different');
  },
  PATIENCE_MS,
);

function compared(one: Timed, other: Timed): Promise<Comparison> {
  return compare(
    () => timeOf(agent, shop.port, one),
    () => timeOf(agent, shop.port, other),
  );
}
