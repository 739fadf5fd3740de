import { afterAll, beforeEach, test } from '../support/jest.ts';
import { Agent } from 'node:http';
import { useShop } from '../support/shop.ts';
import { compare, expectAlike, timeOf, type Timed } from '../support/timing.ts';

// The time that a request for a mail takes must not tell whether there is an account, as that of a login must not (logins.timing.test.ts). Each
// attempt asks for another user, or for nobody: who was asked for before is told apart by that, not by having an account.

/** One for each attempt: three in a round. */
const USERS = 3 * Number(process.env['TIMING_PAIRS'] || 200) + 100;

const shop = useShop({
  REGISTRATION: 'on',
  PASSWORD_RESET: 'on',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'shop@shop.example',
  MAIL_REQUESTS_PER_ADDRESS: '1000000',
  LOG_LEVEL: 'warn',
});
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

afterAll(() => agent.destroy());

const graphql = (query: string, asked: string): Timed => ({
  method: 'POST',
  path: '/graphql',
  type: 'application/json',
  body: JSON.stringify({ query, variables: { asked } }),
});
const register = (asked: string) => graphql('mutation ($asked: String!) { register(input: { email: $asked }) }', asked);
const forgotten = (asked: string) => graphql('mutation ($asked: String!) { requestPasswordReset(user: $asked) }', asked);

const NAMES = { known: 'user', unknown: 'none' };
const nameOf = (kind: keyof typeof NAMES, attempt: number) => NAMES[kind] + String(attempt).padStart(6, '0');
const addressOf = (kind: keyof typeof NAMES, attempt: number) => `${nameOf(kind, attempt)}@shop.example`;

beforeEach(async () => {
  await shop.sql(`
    insert into "user" (username, email, hashed_password)
    select name, name || '@shop.example', 'x' from (select 'user' || lpad((n - 1)::text, 6, '0') as name from generate_series(1, ${USERS}) n) as names`);
});

test.each<[string, (kind: keyof typeof NAMES, attempt: number) => Timed]>([
  ['register', (kind, attempt) => register(addressOf(kind, attempt))],
  ['requestPasswordReset by name', (kind, attempt) => forgotten(nameOf(kind, attempt))],
  ['requestPasswordReset by address', (kind, attempt) => forgotten(addressOf(kind, attempt))],
])('E2 whether there is such an account, the answer takes the same time: %s', async (_door, ask) => {
  const comparison = await compare(
    (attempt) => timeOf(agent, shop.port, ask('known', attempt)),
    (attempt) => timeOf(agent, shop.port, ask('unknown', attempt)),
  );
  expectAlike(comparison);
});
