import { afterAll, beforeEach, test } from '../support/jest.ts';
import { Agent } from 'node:http';
import { useShop } from '../support/shop.ts';
import { compare, expectAlike, timeOf, type TimedRequest } from '../support/timing.ts';

// The time of a mail request must not reveal an account, as for logins (logins.timing.test.ts).
// Each attempt names another user or none, because a repeated request takes another time anyway.

/** One user for each attempt, three attempts a round. */
const USERS = 3 * Number(process.env['TIMING_PAIRS'] || 200) + 100;

const shop = useShop(
  {
    REGISTRATION: 'on',
    PASSWORD_RESET: 'on',
    SMTP_URL: 'smtp://127.0.0.1:1',
    MAIL_FROM: 'shop@shop.example',
    LOG_LEVEL: 'warn',
  },
  { mailRequestsPerAddressPerHour: 1_000_000 },
);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

afterAll(() => agent.destroy());

const graphql = (query: string, value: string): TimedRequest => ({
  method: 'POST',
  path: '/graphql',
  type: 'application/json',
  body: JSON.stringify({ query, variables: { value } }),
});
const register = (value: string) =>
  graphql('mutation ($value: String!) { register(input: { email: $value }) }', value);
const requestReset = (value: string) =>
  graphql('mutation ($value: String!) { requestPasswordReset(user: $value) }', value);

const NAMES = { known: 'user', unknown: 'none' };
const nameOf = (kind: keyof typeof NAMES, attempt: number) =>
  NAMES[kind] + String(attempt).padStart(6, '0');
const addressOf = (kind: keyof typeof NAMES, attempt: number) =>
  `${nameOf(kind, attempt)}@shop.example`;

beforeEach(async () => {
  await shop.sql(`
    insert into "user" (username, email, hashed_password)
    select name, name || '@shop.example', 'x' from (select 'user' || lpad((n - 1)::text, 6, '0') as name from generate_series(1, ${USERS}) n) as names`);
});

test.each<[string, (kind: keyof typeof NAMES, attempt: number) => TimedRequest]>([
  ['register', (kind, attempt) => register(addressOf(kind, attempt))],
  ['requestPasswordReset by name', (kind, attempt) => requestReset(nameOf(kind, attempt))],
  ['requestPasswordReset by address', (kind, attempt) => requestReset(addressOf(kind, attempt))],
])('E2 the response takes the same time with and without an account: %s', async (_name, ask) => {
  const comparison = await compare(
    (attempt) => timeOf(agent, shop.port, ask('known', attempt)),
    (attempt) => timeOf(agent, shop.port, ask('unknown', attempt)),
  );
  expectAlike(comparison);
});
