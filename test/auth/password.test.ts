import { describe, expect, test } from '../support/jest.ts';
import bcrypt from 'bcrypt';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

/** One above the lowest cost, which the older hashes of these tests have. */
const COST = 5;
const shop = useShop({}, { bcryptCost: COST });

const token = (username: string, password: string): Promise<Answer> =>
  shop.rest('POST', '/token', { form: { username, password } });

describe('the hash', () => {
  test('E3 a hash of a higher cost stays', async () => {
    const hashedPassword = bcrypt.hashSync(PASSWORD, 6);
    const user = await shop.makeUser({ hashedPassword });
    expect((await token(user.username, PASSWORD)).status).toBe(200);
    expect(await hashOf(user)).toBe(hashedPassword);
  });

  test('C4 two concurrent logins that replace the hash both succeed, and one hash stays', async () => {
    const user = await shop.makeUser({ hashedPassword: bcrypt.hashSync(PASSWORD, 4) });
    const answers = await Promise.all([
      token(user.username, PASSWORD),
      shop.rest('POST', '/session/login', {
        json: { username: user.username, password: PASSWORD },
      }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(await hashOf(user)).toMatch(/^\$2b\$05\$/);
    expect((await token(user.username, PASSWORD)).status).toBe(200);
  });
});

describe('changePassword', () => {
  test('Decisions, changePassword: of several concurrent changes exactly one succeeds, and its password signs in', async () => {
    const user = await shop.makeUser();
    const wanted = ['first new password', 'second new password', 'third new password'];
    const answers = await Promise.all(wanted.map((next) => change(user, PASSWORD, next)));
    const won = answers.map(({ body }) => body.errors?.[0].extensions.code ?? 'changed');
    expect(won.filter((outcome) => outcome === 'changed')).toHaveLength(1);
    expect(won.filter((outcome) => outcome === 'INVALID_CREDENTIALS')).toHaveLength(2);
    const logins = await Promise.all(
      [...wanted, PASSWORD].map((password) => token(user.username, password)),
    );
    expect(logins.map(({ status }) => status)).toEqual([
      ...won.map((outcome) => (outcome === 'changed' ? 200 : 401)),
      401,
    ]);
  });
});

function change(as: User, current: string, next: string): Promise<Answer> {
  return shop.graphql(CHANGE, { current, new: next }, { as });
}

async function hashOf({ pk }: User): Promise<string> {
  const [row] = await shop.sql(`select hashed_password from "user" where pk = ${pk}`);
  return String(row?.['hashed_password']);
}

test.each(['2a', '2y'])('a hash written by another bcrypt as $%s$ is accepted', async (version) => {
  const hashedPassword = bcrypt.hashSync(PASSWORD, 5).replace(/^\$2b/, `$${version}`);
  const { username } = await shop.makeUser({ hashedPassword });
  expect((await token(username, PASSWORD)).status).toBe(200);
  expect((await token(username, 'wrong')).status).toBe(401);
});
