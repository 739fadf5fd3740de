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
import { formLogin, LOGIN_REQUESTS } from './login-requests.ts';

// The time of a rejection must not reveal whether the name exists. Two names alternate on one
// connection, and the two samples are compared. logins.test.ts counts the work of each endpoint.

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

/** Their handlers have another endpoint, too. */
const OTHERS = new Set(['GET /api/v2/auth/login by query', 'POST /api/v2/auth/login']);
const token = formLogin('/token');

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

test.each(LOGIN_REQUESTS.filter(([name]) => !OTHERS.has(name)))(
  'E2 an unknown name is rejected in the same time as a wrong password: %s',
  async (_name, login) => {
    expectAlike(await compared(login(UNKNOWN, WRONG), login(KNOWN, WRONG)));
  },
  TIMEOUT_MS,
);

test(
  'E3 an unknown name is rejected in the same time as a wrong password for an older hash',
  async () => {
    expectAlike(await compared(token(UNKNOWN, WRONG), token(OLDER, WRONG)));
  },
  TIMEOUT_MS,
);

test(
  'E2 the measurement detects a hash that takes twice as long',
  async () => {
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
