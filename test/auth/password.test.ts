import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import bcrypt from 'bcrypt';
import type { User } from '../../src/features/users/user.entity.ts';
import { LOGIN_ENDPOINTS } from '../support/logins.ts';
import { PASSWORD, Shop, useShop, type Answer } from '../support/shop.ts';
const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

/** One above the lowest cost, which the older hashes of these tests have. */
const COST = 5;
const shop = useShop({}, { bcryptCost: COST });
/** A second instance on the same database. */
const secondShop = new Shop({}, { bcryptCost: COST });

beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());

const P = { status: 401, challenge: 'Bearer', text: '{"detail":"Incorrect username or password"}' };
const L = { status: 401, challenge: null, text: '{"data":"Incorrect login and/or password"}' };
const INACTIVE = { status: 400, challenge: null, text: '{"detail":"Inactive user"}' };
const INACTIVE_DATA = { status: 401, challenge: null, text: '{"data":"Inactive user"}' };

/** The response of each login endpoint to a wrong password, and to a disabled user. */
const REJECTIONS: Record<string, [Rejection, Rejection]> = {
  'POST /token': [P, INACTIVE],
  'POST /login': [P, INACTIVE],
  'POST /session/login': [L, INACTIVE_DATA],
  'GET /api/v2/auth/login by Basic': [L, INACTIVE_DATA],
  'GET /api/v2/auth/login by query': [L, INACTIVE_DATA],
  'POST /api/v2/auth/login': [L, INACTIVE_DATA],
  'login of GraphQL': [
    graphqlRejection('Incorrect username or password', 'INVALID_CREDENTIALS'),
    graphqlRejection('Inactive user', 'INACTIVE_USER'),
  ],
};

const token = (username: string, password: string): Promise<Answer> =>
  shop.rest('POST', '/token', { form: { username, password } });

describe('user enumeration', () => {
  test.each(LOGIN_ENDPOINTS)(
    'E4 a wrong password never reveals that the user is disabled: %s',
    async (name, login) => {
      const enter = (as: string, password: string) => login(shop, as, password);
      const [wrong, inactive] = REJECTIONS[name] ?? [];
      const { username } = await shop.makeUser({ disabled: true });
      const [disabled, unknown] = await Promise.all([
        enter(username, 'wrong password'),
        enter('nobody', 'wrong password'),
      ]);
      expect(rejection(disabled)).toEqual(wrong);
      expect(whole(disabled)).toEqual(whole(unknown));
      expect(rejection(await enter(username, PASSWORD))).toEqual(inactive);
      expect(await shop.sql('select * from session')).toEqual([]);
    },
  );
});

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

interface Rejection {
  status: number;
  challenge: string | null;
  text: string;
}

function rejection({ status, headers, text, body }: Answer): Rejection {
  // The location in the document is not compared.
  const shown = body?.errors
    ? JSON.stringify({
        message: body.errors[0].message,
        extensions: body.errors[0].extensions,
        data: body.data,
      })
    : text;
  return { status, challenge: headers.get('WWW-Authenticate'), text: shown };
}

function graphqlRejection(message: string, code: string): Rejection {
  return {
    status: 200,
    challenge: null,
    text: JSON.stringify({ message, extensions: { code }, data: null }),
  };
}

/** The response without the values that differ each time. */
function whole({ status, headers, text }: Answer): unknown {
  const compared = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id');
  return { status, headers: compared, text };
}

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
