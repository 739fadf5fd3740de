import { afterAll, beforeEach, test } from '../support/jest.ts';
import bcrypt from 'bcrypt';
import { Agent } from 'node:http';
import { PASSWORD, useShop } from '../support/shop.ts';
import {
  compare,
  expectAlike,
  expectVerdict,
  timeOf,
  verdictOf,
  type Comparison,
  type TimedRequest,
} from '../support/timing.ts';

// The time of a rejection must not reveal whether the name exists. Two names alternate on one
// connection, and the two samples are compared. Endpoints that are missing here share a handler
// with one of these; logins.test.ts counts the work of each.

const WRONG = 'wrong password';
/** Maximum time of 600 hashes on a busy machine, in ms. */
const TIMEOUT_MS = 1_200_000;

// The test measures failures, so the throttle must not reject any.
const shop = useShop(
  {
    LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '1000000',
    LOG_LEVEL: 'warn',
  },
  { bcryptCost: 10 },
);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

afterAll(() => agent.destroy());

/** Builds the request for a name and password. */
type Login = (username: string, password: string) => TimedRequest;

const LOGIN =
  'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { sessionKey } }';
const form = (path: string): Login => {
  return (username, password) => ({
    method: 'POST',
    path,
    type: 'application/x-www-form-urlencoded',
    body: new URLSearchParams({ username, password }).toString(),
  });
};
const basic: Login = (username, password) => ({
  method: 'GET',
  path: '/api/v2/auth/login',
  authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
});
const session: Login = (username, password) => ({
  method: 'POST',
  path: '/session/login',
  type: 'application/json',
  body: JSON.stringify({ username, password }),
});
const graphql: Login = (username, password) => ({
  method: 'POST',
  path: '/graphql',
  type: 'application/json',
  body: JSON.stringify({ query: LOGIN, variables: { username, password } }),
});

// Names of equal length, so that requests have equal sizes.
const KNOWN = 'alice';
const OLDER = 'elder';
const SLOWER = 'dearr';
const UNKNOWN = 'nobod';

beforeEach(async () => {
  await shop.makeUser({ username: KNOWN });
  await shop.makeUser({ username: OLDER, hashedPassword: bcrypt.hashSync(PASSWORD, 8) });
  await shop.makeUser({ username: SLOWER, hashedPassword: bcrypt.hashSync(PASSWORD, 11) });
});

test.each<[string, Login]>([
  ['POST /token', form('/token')],
  ['POST /login', form('/login')],
  ['POST /session/login', session],
  ['GET /api/v2/auth/login', basic],
  ['login of GraphQL', graphql],
])(
  'E2 an unknown name is rejected in the same time as a wrong password: %s',
  async (_name, login) => {
    expectAlike(await compared(login(UNKNOWN, WRONG), login(KNOWN, WRONG)));
  },
  TIMEOUT_MS,
);

test(
  'E3 an unknown name is rejected in the same time as a wrong password for an older hash',
  async () => {
    expectAlike(await compared(form('/token')(UNKNOWN, WRONG), form('/token')(OLDER, WRONG)));
  },
  TIMEOUT_MS,
);

test(
  'E2 the measurement detects a hash that takes twice as long',
  async () => {
    const token = form('/token');
    const comparison = await compared(token(UNKNOWN, WRONG), token(SLOWER, WRONG));
    expectVerdict(comparison, verdictOf(comparison, 1.3), 'different');
  },
  TIMEOUT_MS,
);

function compared(one: TimedRequest, other: TimedRequest): Promise<Comparison> {
  return compare(
    () => timeOf(agent, shop.port, one),
    () => timeOf(agent, shop.port, other),
  );
}
