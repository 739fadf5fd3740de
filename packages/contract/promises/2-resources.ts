import { memberOf, type HttpResponse } from '../response.ts';
import { isEan13 } from '../barcode.ts';
import type { Deployment } from '../deployment.ts';
import {
  firstEntries,
  expectOf,
  hasOnly,
  hasStatus,
  isExactly,
  isRejected,
  isTextOrNull,
  listOf,
} from '../expectations.ts';
import { Skipped, section } from '../promised.ts';
import {
  aProduct,
  getAsUser,
  getPage,
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
  {
    name: 'v1',
    path: V1_PRODUCTS,
    entries: async (at: Deployment) =>
      [await wholeList(at), firstEntries(await wholeList(at))] as const,
  },
  {
    name: 'v2',
    path: V2_PRODUCTS,
    entries: async (at: Deployment) => [await firstPage(at), listOf(await firstPage(at))] as const,
  },
];

/** The fields of resources. */
export const resources = section('2', 'Resources and their fields', [
  ...LISTS.flatMap(({ name, path, entries }) => [
    {
      id: `product-${name}`,
      endpoint: `GET ${path}`,
      level: 'interface' as const,
      needs: [],
      says: 'Each product of the list has name and barcode as text, and a price.',
      check: async (at: Deployment) => {
        const [response, products] = await entries(at);
        nonEmpty(products, 'the catalogue is empty');
        for (const product of products)
          expectOf(
            response,
            'name and barcode as text, and a price',
            isProduct(product),
            withStatus(response, product),
          );
      },
    },
    {
      id: `barcode-${name}`,
      endpoint: `GET ${path}`,
      level: 'interface' as const,
      needs: [],
      says: 'Each barcode of the list is in EAN-13 format.',
      check: async (at: Deployment) => {
        const [response, products] = await entries(at);
        nonEmpty(products, 'the catalogue is empty');
        for (const product of products) {
          expectOf(
            response,
            'a barcode of thirteen digits with a valid check digit',
            isEan13(memberOf(product, 'barcode')),
            withStatus(response, product),
          );
        }
      },
    },
    {
      id: `product-exact-${name}`,
      endpoint: `GET ${path}`,
      level: 'decision' as const,
      needs: [],
      says: 'Each product of the list has exactly pk (an integer), name, barcode and price (a JSON number).',
      check: async (at: Deployment) => {
        const [response, products] = await entries(at);
        nonEmpty(products, 'the catalogue is empty');
        for (const product of products) isExactProduct(response, product);
      },
    },
  ]),
  {
    id: 'product-exact-detail',
    endpoint: `GET ${V1_PRODUCT}{pk}`,
    level: 'decision',
    needs: [],
    says: 'The details of a product equal its entry in the list.',
    check: async (at) => {
      const listed = await aProduct(at);
      const response = await at.send('GET', V1_PRODUCT + listed.pk);
      hasStatus(response, 200);
      isExactProduct(response, response.body);
      isExactly(response, listed);
    },
  },
  ...(['name', 'barcode', 'price'] as const).map((field) => ({
    id: `required-${field}`,
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'interface' as const,
    needs: ['user', 'write'] as const,
    says: `A product without ${field} is rejected.`,
    check: async (at: Deployment) =>
      isRejected(await create(at, { ...newProduct(), [field]: undefined })),
  })),
  {
    id: 'user',
    endpoint: `GET ${ME}`,
    level: 'interface',
    needs: ['user'],
    says: 'A user has a username; email, full_name and disabled may be missing.',
    check: async (at) => {
      const response = await getAsUser(at, ME);
      hasStatus(response, 200);
      expectOf(response, 'a user', isUser(response.body));
    },
  },
  {
    id: 'user-exact',
    endpoint: `GET ${ME}`,
    level: 'decision',
    needs: ['user'],
    says: 'A user has exactly username, email, full_name and disabled.',
    check: async (at) => {
      const response = await getAsUser(at, ME);
      hasOnly(response, response.body, 'username', 'email', 'full_name', 'disabled');
    },
  },
  {
    id: 'users-listed',
    endpoint: `GET ${USERS}`,
    level: 'interface',
    needs: ['user'],
    says: 'Each user of a page has the same fields.',
    check: async (at) => {
      const response = await getPage(at, USERS, 'page=1');
      for (const user of listOf(response))
        expectOf(response, 'users', isUser(user), withStatus(response, user));
    },
  },
  ...PROTECTED.map((path) => ({
    id: `no-hash-${path.replaceAll('/', ' ').trim().replaceAll(' ', '-')}`,
    endpoint: `GET ${path}`,
    level: 'interface' as const,
    needs: ['user'] as const,
    says: 'Password hashes are never returned.',
    check: async (at: Deployment) => {
      const response = await getAsUser(at, path);
      hasStatus(response, 200);
      const isClean = !/hashed_?password|\$2[abxy]\$\d\d\$/i.test(
        JSON.stringify([...response.headers]) + response.text,
      );
      expectOf(response, 'no password hash', isClean, 'a response with one');
    },
  })),
  {
    id: 'token',
    endpoint: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'A token response has access_token, a JWT, and token_type bearer.',
    check: async (at) => {
      const response = await rightForm(at, '/token');
      hasStatus(response, 200);
      const token = response.member('access_token');
      expectOf(
        response,
        'access_token, a JWT',
        typeof token === 'string' && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token),
      );
      expectOf(response, 'token_type bearer', response.member('token_type') === 'bearer');
    },
  },
  {
    id: 'token-exact',
    endpoint: 'POST /token',
    level: 'decision',
    needs: ['user'],
    says: 'A token response has no other members.',
    check: async (at) => {
      const response = await rightForm(at, '/token');
      hasOnly(response, response.body, 'access_token', 'token_type');
    },
  },
  {
    id: 'login-response',
    endpoint: 'POST {session}/login',
    level: 'interface',
    needs: ['user'],
    says: 'A login response has session_key as text.',
    check: async (at) => {
      const response = await rightSessionLogin(at);
      hasStatus(response, 200);
      expectOf(response, 'session_key as text', isFilled(response.member('session_key')));
    },
  },
  {
    id: 'login-response-exact',
    endpoint: 'POST {session}/login',
    level: 'decision',
    needs: ['user'],
    says: 'A login response has no other members.',
    check: async (at) => {
      const response = await rightSessionLogin(at);
      hasOnly(response, response.body, 'session_key');
    },
  },
  {
    id: 'unauthorized-login',
    endpoint: 'POST {session}/login',
    level: 'interface',
    needs: [],
    says: 'The response to an unauthorized login has data as text.',
    check: async (at) => hasData(await wrongSessionLogin(at)),
  },
  {
    id: 'unauthorized-logout',
    endpoint: 'POST {session}/logout',
    level: 'interface',
    needs: [],
    says: 'The response to an unauthorized logout has data as text.',
    check: async (at) => hasData(await wrongLogout(at)),
  },
  {
    id: 'ok-response',
    endpoint: 'POST {session}/logout',
    level: 'interface',
    needs: ['user'],
    says: 'The response to a logout has data as text.',
    check: async (at) =>
      hasData(
        await at.send('POST', at.session('logout'), {
          json: { session_key: await at.newSessionKey() },
        }),
      ),
  },
  {
    id: 'item',
    endpoint: `GET ${ITEMS}`,
    level: 'interface',
    needs: ['user'],
    says: 'An item has item_id as text, and the username as owner.',
    check: async (at) => {
      const response = await getAsUser(at, ITEMS);
      const items = nonEmpty(listOf(response), 'the user has no items');
      for (const item of items) {
        const isItem =
          isFilled(memberOf(item, 'item_id')) && memberOf(item, 'owner') === at.user.username;
        expectOf(
          response,
          'item_id as text, and the username as owner',
          isItem,
          withStatus(response, item),
        );
      }
    },
  },
  {
    id: 'blog-entry',
    endpoint: `GET ${BLOG}`,
    level: 'interface',
    needs: ['user'],
    says: 'A blog entry has title and body as text, published as a boolean, and a creator with username and email.',
    check: async (at) => {
      const response = await getAsUser(at, BLOG);
      for (const entry of nonEmpty(listOf(response), 'there are no blog entries')) {
        expectOf(
          response,
          'title, body, published and a creator with username and email',
          isEntry(entry),
          withStatus(response, entry),
        );
      }
    },
  },
]);

function isProduct(value: unknown): boolean {
  const price = memberOf(value, 'price');
  const isPrice =
    typeof price === 'number' || (typeof price === 'string' && /^\d+(\.\d+)?$/.test(price));
  return isFilled(memberOf(value, 'name')) && isFilled(memberOf(value, 'barcode')) && isPrice;
}

function isExactProduct(response: HttpResponse, product: unknown): void {
  hasOnly(response, product, 'pk', 'name', 'barcode', 'price');
  const isTyped =
    Number.isInteger(memberOf(product, 'pk')) && typeof memberOf(product, 'price') === 'number';
  expectOf(response, 'an integer pk and a number as price', isTyped, withStatus(response, product));
}

function isUser(value: unknown): boolean {
  const isFlag = [undefined, null, true, false].includes(
    memberOf(value, 'disabled') as boolean | null | undefined,
  );
  return (
    isFilled(memberOf(value, 'username')) &&
    isTextOrNull(memberOf(value, 'email')) &&
    isTextOrNull(memberOf(value, 'full_name')) &&
    isFlag
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

function hasData(response: HttpResponse): void {
  expectOf(response, 'data as text', isFilled(response.member('data')));
}

function nonEmpty(entries: readonly unknown[], otherwise: string): readonly unknown[] {
  if (entries.length === 0) throw new Skipped(otherwise);
  return entries;
}

function withStatus({ status }: HttpResponse, value: unknown): string {
  return `${status} with ${JSON.stringify(value)}`;
}
