import { memberOf, type Answer } from '../answer.ts';
import { isEan13 } from '../barcode.ts';
import type { Deployment } from '../deployment.ts';
import { beginningOf, expectOf, hasOnly, hasStatus, isExactly, isRefused, isTextOrNull, listOf } from '../expectations.ts';
import { NotTried, section } from '../promised.ts';
import {
  aProduct,
  askAsUser,
  askPage,
  BLOG,
  create,
  firstPage,
  ITEMS,
  ME,
  newProduct,
  PROTECTED,
  rightForm,
  rightSessionLogin,
  USERS,
  V1_PRODUCT,
  V1_PRODUCTS,
  V2_PRODUCTS,
  wholeList,
  wrongLogout,
  wrongSessionLogin,
} from './common.ts';

const LISTS = [
  { name: 'v1', path: V1_PRODUCTS, entries: async (at: Deployment) => [await wholeList(at), beginningOf(await wholeList(at))] as const },
  { name: 'v2', path: V2_PRODUCTS, entries: async (at: Deployment) => [await firstPage(at), listOf(await firstPage(at))] as const },
];

/** What the resources are made of. */
export const resources = section('2', 'Resources and their fields', [
  ...LISTS.flatMap(({ name, path, entries }) => [
    {
      id: `product-${name}`,
      row: `GET ${path}`,
      level: 'interface' as const,
      needs: [],
      says: 'Each product of the list carries name and barcode as text, and a price.',
      check: async (at: Deployment) => {
        const [answer, products] = await entries(at);
        someOf(products, 'the catalogue is empty');
        for (const product of products)
          expectOf(answer, 'name and barcode as text, and a price', isProduct(product), shown(answer, product));
      },
    },
    {
      id: `barcode-${name}`,
      row: `GET ${path}`,
      level: 'interface' as const,
      needs: [],
      says: 'Each barcode of the list is in EAN-13 format.',
      check: async (at: Deployment) => {
        const [answer, products] = await entries(at);
        someOf(products, 'the catalogue is empty');
        for (const product of products) {
          expectOf(
            answer,
            'a barcode of thirteen digits whose check digit holds',
            isEan13(memberOf(product, 'barcode')),
            shown(answer, product),
          );
        }
      },
    },
    {
      id: `product-exact-${name}`,
      row: `GET ${path}`,
      level: 'decision' as const,
      needs: [],
      says: 'Each product of the list has pk, a whole number, name, barcode and price, a JSON number, and nothing else.',
      check: async (at: Deployment) => {
        const [answer, products] = await entries(at);
        someOf(products, 'the catalogue is empty');
        for (const product of products) isExactProduct(answer, product);
      },
    },
  ]),
  {
    id: 'product-exact-detail',
    row: `GET ${V1_PRODUCT}{pk}`,
    level: 'decision',
    needs: [],
    says: 'The details of a product are the pk, name, barcode and price that the list has.',
    check: async (at) => {
      const listed = await aProduct(at);
      const answer = await at.ask('GET', V1_PRODUCT + listed.pk);
      hasStatus(answer, 200);
      isExactProduct(answer, answer.body);
      isExactly(answer, listed);
    },
  },
  ...(['name', 'barcode', 'price'] as const).map((field) => ({
    id: `required-${field}`,
    row: `POST ${V1_PRODUCT}`,
    level: 'interface' as const,
    needs: ['user', 'write'] as const,
    says: `A product without ${field} is refused.`,
    check: async (at: Deployment) => isRefused(await create(at, { ...newProduct(), [field]: undefined })),
  })),
  {
    id: 'user',
    row: `GET ${ME}`,
    level: 'interface',
    needs: ['user'],
    says: 'A user has a username; email, full_name and disabled may be missing.',
    check: async (at) => {
      const answer = await askAsUser(at, ME);
      hasStatus(answer, 200);
      expectOf(answer, 'a user', isUser(answer.body));
    },
  },
  {
    id: 'user-exact',
    row: `GET ${ME}`,
    level: 'decision',
    needs: ['user'],
    says: 'A user leaves with username, email, full_name and disabled, and nothing else.',
    check: async (at) => {
      const answer = await askAsUser(at, ME);
      hasOnly(answer, answer.body, 'username', 'email', 'full_name', 'disabled');
    },
  },
  {
    id: 'users-listed',
    row: `GET ${USERS}`,
    level: 'interface',
    needs: ['user'],
    says: 'Each user of a page is a user of the same kind.',
    check: async (at) => {
      const answer = await askPage(at, USERS, 'page=1');
      for (const user of listOf(answer)) expectOf(answer, 'users', isUser(user), shown(answer, user));
    },
  },
  ...PROTECTED.map((path) => ({
    id: `no-hash-${path.replaceAll('/', ' ').trim().replaceAll(' ', '-')}`,
    row: `GET ${path}`,
    level: 'interface' as const,
    needs: ['user'] as const,
    says: 'The stored hash of a password is never returned.',
    check: async (at: Deployment) => {
      const answer = await askAsUser(at, path);
      hasStatus(answer, 200);
      const isClean = !/hashed_?password|\$2[abxy]\$\d\d\$/i.test(JSON.stringify([...answer.headers]) + answer.text);
      expectOf(answer, 'no hash of a password', isClean, 'an answer that has one');
    },
  })),
  {
    id: 'token',
    row: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'A token response has access_token, a JWT, and token_type bearer.',
    check: async (at) => {
      const answer = await rightForm(at, '/token');
      hasStatus(answer, 200);
      const token = answer.member('access_token');
      expectOf(answer, 'access_token, a JWT', typeof token === 'string' && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token));
      expectOf(answer, 'token_type bearer', answer.member('token_type') === 'bearer');
    },
  },
  {
    id: 'token-exact',
    row: 'POST /token',
    level: 'decision',
    needs: ['user'],
    says: 'A token response has nothing else.',
    check: async (at) => {
      const answer = await rightForm(at, '/token');
      hasOnly(answer, answer.body, 'access_token', 'token_type');
    },
  },
  {
    id: 'login-response',
    row: 'POST {session}/login',
    level: 'interface',
    needs: ['user'],
    says: 'A login response has session_key, a text.',
    check: async (at) => {
      const answer = await rightSessionLogin(at);
      hasStatus(answer, 200);
      expectOf(answer, 'session_key, a text', isFilled(answer.member('session_key')));
    },
  },
  {
    id: 'login-response-exact',
    row: 'POST {session}/login',
    level: 'decision',
    needs: ['user'],
    says: 'A login response has nothing else.',
    check: async (at) => {
      const answer = await rightSessionLogin(at);
      hasOnly(answer, answer.body, 'session_key');
    },
  },
  {
    id: 'unauthorized-login',
    row: 'POST {session}/login',
    level: 'interface',
    needs: [],
    says: 'The response to an unauthorized login has data, a text.',
    check: async (at) => hasData(await wrongSessionLogin(at)),
  },
  {
    id: 'unauthorized-logout',
    row: 'POST {session}/logout',
    level: 'interface',
    needs: [],
    says: 'The response to an unauthorized logout has data, a text.',
    check: async (at) => hasData(await wrongLogout(at)),
  },
  {
    id: 'ok-response',
    row: 'POST {session}/logout',
    level: 'interface',
    needs: ['user'],
    says: 'The response to a logout has data, a text.',
    check: async (at) => hasData(await at.ask('POST', at.session('logout'), { json: { session_key: await at.newSessionKey() } })),
  },
  {
    id: 'item',
    row: `GET ${ITEMS}`,
    level: 'interface',
    needs: ['user'],
    says: 'An item has item_id, a text, and owner, the username.',
    check: async (at) => {
      const answer = await askAsUser(at, ITEMS);
      const items = someOf(listOf(answer), 'the user has no items');
      for (const item of items) {
        const isItem = isFilled(memberOf(item, 'item_id')) && memberOf(item, 'owner') === at.user.username;
        expectOf(answer, 'item_id, a text, and owner, the username', isItem, shown(answer, item));
      }
    },
  },
  {
    id: 'blog-entry',
    row: `GET ${BLOG}`,
    level: 'interface',
    needs: ['user'],
    says: 'A blog entry has title and body as text, published, true or false, and a creator with username and email.',
    check: async (at) => {
      const answer = await askAsUser(at, BLOG);
      for (const entry of someOf(listOf(answer), 'there are no blog entries')) {
        expectOf(answer, 'title, body, published and a creator with username and email', isEntry(entry), shown(answer, entry));
      }
    },
  },
]);

function isProduct(value: unknown): boolean {
  const price = memberOf(value, 'price');
  const isPrice = typeof price === 'number' || (typeof price === 'string' && /^\d+(\.\d+)?$/.test(price));
  return isFilled(memberOf(value, 'name')) && isFilled(memberOf(value, 'barcode')) && isPrice;
}

function isExactProduct(answer: Answer, product: unknown): void {
  hasOnly(answer, product, 'pk', 'name', 'barcode', 'price');
  const isTyped = Number.isInteger(memberOf(product, 'pk')) && typeof memberOf(product, 'price') === 'number';
  expectOf(answer, 'pk, a whole number, and price, a number', isTyped, shown(answer, product));
}

function isUser(value: unknown): boolean {
  const isFlag = [undefined, null, true, false].includes(memberOf(value, 'disabled') as boolean | null | undefined);
  return (
    isFilled(memberOf(value, 'username')) && isTextOrNull(memberOf(value, 'email')) && isTextOrNull(memberOf(value, 'full_name')) && isFlag
  );
}

function isEntry(value: unknown): boolean {
  const creator = memberOf(value, 'creator');
  return (
    typeof memberOf(value, 'title') === 'string' &&
    typeof memberOf(value, 'body') === 'string' &&
    typeof memberOf(value, 'published') === 'boolean' &&
    isFilled(memberOf(creator, 'username')) &&
    isTextOrNull(memberOf(creator, 'email') ?? null)
  );
}

function isFilled(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function hasData(answer: Answer): void {
  expectOf(answer, 'data, a text', isFilled(answer.member('data')));
}

function someOf(entries: readonly unknown[], otherwise: string): readonly unknown[] {
  if (entries.length === 0) throw new NotTried(otherwise);
  return entries;
}

function shown({ status }: Answer, value: unknown): string {
  return `${status} with ${JSON.stringify(value)}`;
}
