import { isDeepStrictEqual } from 'node:util';
import { memberOf } from '../response.ts';
import { withWrongCheckDigit } from '../barcode.ts';
import type { Deployment } from '../deployment.ts';
import {
  firstEntries,
  expectOf,
  hasHeader,
  hasOnly,
  hasStatus,
  isError,
  isExactly,
  isRejected,
  listOf,
  hasFieldErrors,
  pageOf,
  hasMessage,
  isSuccess,
} from '../expectations.ts';
import { section } from '../promised.ts';
import {
  aProduct,
  create,
  created,
  firstPage,
  needsEntries,
  newProduct,
  MESSAGES,
  V1_PRODUCT,
  V1_PRODUCTS,
  V2_PRODUCTS,
  wholeList,
} from './common.ts';

/** A pk that does not exist in a shop of this size. */
const NO_PK = '2147483646';
const FORGED_HOST = 'forged.example';

/** The catalogue: the whole list, details, creation, and pages. */
export const catalogue = section('4.3', 'Catalogue', [
  {
    id: 'v1-list',
    endpoint: `GET ${V1_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The list of products is public.',
    check: async (at) => {
      const response = await wholeList(at);
      hasStatus(response, 200);
      if (!response.text.trimStart().startsWith('[')) listOf(response);
    },
  },
  {
    id: 'v1-list-array',
    endpoint: `GET ${V1_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'The list is one JSON array.',
    check: async (at) => {
      firstEntries(await wholeList(at));
    },
  },
  {
    id: 'v1-list-order',
    endpoint: `GET ${V1_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'The list is ordered by pk.',
    check: async (at) => {
      const response = await wholeList(at);
      expectOf(
        response,
        'products ordered by pk',
        isAscending(firstEntries(response)),
        'another order',
      );
    },
  },
  ...[
    { name: 'v1-list', endpoint: V1_PRODUCTS, path: V1_PRODUCTS },
    { name: 'detail', endpoint: `${V1_PRODUCT}{pk}`, path: V1_PRODUCT + NO_PK },
  ].map(({ name, endpoint, path }) => ({
    id: `${name}-only-get`,
    endpoint: `GET ${endpoint}`,
    level: 'interface' as const,
    needs: [],
    says: 'Only GET is allowed: PUT and PATCH are rejected.',
    check: async (at: Deployment) => {
      for (const method of ['PUT', 'PATCH']) isRejected(await at.send(method, path));
    },
  })),
  {
    id: 'detail',
    endpoint: `GET ${V1_PRODUCT}{pk}`,
    level: 'interface',
    needs: [],
    says: 'The details of a product are found by its pk.',
    check: async (at) => {
      const { pk, name } = await aProduct(at);
      const response = await at.send('GET', V1_PRODUCT + pk);
      hasStatus(response, 200);
      expectOf(
        response,
        `the details of ${JSON.stringify(name)}`,
        response.member('name') === name,
      );
    },
  },
  ...[NO_PK, 'none', '1.5', '-1'].map((pk) => ({
    id: `detail-${pk === NO_PK ? 'unknown' : pk}`,
    endpoint: `GET ${V1_PRODUCT}{pk}`,
    level: 'decision' as const,
    needs: [],
    says: `The unknown pk ${pk} returns 404 with detail only.`,
    check: async (at: Deployment) => {
      const response = await at.send('GET', V1_PRODUCT + pk);
      hasStatus(response, 404);
      hasMessage(response, 'detail', /./, 'any message');
      hasOnly(response, response.body, 'detail');
    },
  })),
  {
    id: 'create',
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'interface',
    needs: ['user', 'write'],
    says: 'A product with name, barcode and price is created.',
    check: async (at) => {
      const { sent, response } = await created(at);
      isSuccess(response);
      const pk = response.member('pk');
      if (typeof pk !== 'number' && typeof pk !== 'string') return;
      const found = await at.send('GET', V1_PRODUCT + pk);
      hasStatus(found, 200);
      expectOf(found, `the product ${sent.name}`, found.member('name') === sent.name);
    },
  },
  {
    id: 'create-201',
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'The response is 201 with the product and its Location.',
    check: async (at) => {
      const { sent, response } = await created(at);
      hasStatus(response, 201);
      isExactly(response, { pk: response.member('pk'), ...sent });
      const location = response.headers.get('Location');
      hasHeader(response, 'Location', /./);
      isExactly(await at.followLink(location ?? ''), response.body);
    },
  },
  {
    id: 'create-decimal-text',
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'A price may be sent as decimal text, and is returned as a number.',
    check: async (at) => {
      const response = await create(at, { ...newProduct(), price: '12.50' });
      hasStatus(response, 201);
      expectOf(response, 'the price 12.5', response.member('price') === 12.5);
    },
  },
  {
    id: 'create-trims',
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'Space around a name is removed; pk and unknown fields are ignored.',
    check: async (at) => {
      const product = newProduct();
      const response = await create(at, {
        ...product,
        name: `  ${product.name} `,
        pk: Number(NO_PK),
        colour: 'red',
      });
      hasStatus(response, 201);
      const pk = response.member('pk');
      isExactly(response, { pk, ...product });
      expectOf(response, 'a pk that the service assigned', pk !== Number(NO_PK));
    },
  },
  ...(
    [
      {
        name: 'digits',
        field: 'price',
        says: 'A price with three decimal places',
        change: () => ({ price: 0.005 }),
      },
      {
        name: 'negative',
        field: 'price',
        says: 'A negative price',
        change: () => ({ price: -1 }),
      },
      {
        name: 'check-digit',
        field: 'barcode',
        says: 'A barcode with a wrong check digit',
        change: (code: string) => ({ barcode: withWrongCheckDigit(code) }),
      },
      { name: 'empty-name', field: 'name', says: 'An empty name', change: () => ({ name: ' ' }) },
    ] as const
  ).map(({ name, field, says: input, change }) => ({
    id: `create-${name}`,
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'decision' as const,
    needs: ['user', 'write'] as const,
    says: `${input} returns 422.`,
    check: async (at: Deployment) => {
      const product = newProduct();
      hasFieldErrors(await create(at, { ...product, ...change(product.barcode) }), ['body', field]);
    },
  })),
  {
    id: 'create-same-barcode',
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'An existing barcode returns 409.',
    check: async (at) => {
      const { sent } = await created(at);
      hasStatus(await create(at, { ...newProduct(), barcode: sent.barcode }), 409);
    },
  },
  {
    id: 'create-idempotent',
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'The same Idempotency-Key and body return the first response; another body returns 422.',
    check: async (at) => {
      const product = newProduct();
      const headers = { 'Idempotency-Key': `contract-${product.barcode}` };
      const first = await create(at, product, headers);
      const second = await create(at, product, headers);
      hasStatus(second, first.status);
      isExactly(second, first.body);
      hasStatus(await create(at, newProduct(), headers), 422);
    },
  },
  {
    id: 'create-anonymous',
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['write'],
    says: 'Creating a product without credentials returns 401.',
    check: async (at) => {
      const response = await at.send('POST', V1_PRODUCT, { json: newProduct() });
      isError(response, 401, { detail: 'Not authenticated' });
      hasHeader(response, 'WWW-Authenticate', 'Bearer');
    },
  },
  {
    id: 'create-without-scope',
    endpoint: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'A token without the scope returns 403, and detail names the scope.',
    check: async (at) => {
      const response = await at.send('POST', V1_PRODUCT, {
        token: await at.newToken('contract:none'),
        json: newProduct(),
      });
      hasStatus(response, 403);
      hasMessage(response, 'detail', /products:write/, 'products:write');
      hasOnly(response, response.body, 'detail');
    },
  },
  {
    id: 'v2-pages',
    endpoint: `GET ${V2_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The products are listed in pages, without overlap.',
    check: async (at) => {
      await needsEntries(at, V2_PRODUCTS, 11);
      const first = listOf(await firstPage(at));
      const response = await at.send('GET', `${V2_PRODUCTS}?page=2`);
      const codes = new Set(first.map((product) => memberOf(product, 'barcode')));
      const second = listOf(response);
      const isNew =
        second.length > 0 && second.every((product) => !codes.has(memberOf(product, 'barcode')));
      expectOf(response, 'other products than on the first page', isNew);
    },
  },
  {
    id: 'v2-envelope',
    endpoint: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'A page has items, count, next and previous; the links are URLs or null.',
    check: async (at) => {
      pageOf(await firstPage(at));
    },
  },
  {
    id: 'v2-default',
    endpoint: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'Without parameters, the response is the first page, with its links.',
    check: async (at) => {
      const { items, next, previous } = pageOf(await firstPage(at));
      const response = await at.send('GET', V2_PRODUCTS);
      const { count: _count, ...page } = pageOf(response);
      expectOf(response, 'the first page', isDeepStrictEqual(page, { items, next, previous }));
    },
  },
  {
    id: 'v2-order',
    endpoint: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'Pages are ordered by pk.',
    check: async (at) => {
      const response = await firstPage(at);
      expectOf(response, 'products ordered by pk', isAscending(listOf(response)));
    },
  },
  {
    id: 'v2-links',
    endpoint: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'next and previous link to the adjacent pages, in the body and in the header Link.',
    check: async (at) => {
      await needsEntries(at, V2_PRODUCTS, 11);
      const first = await firstPage(at);
      const { items, next, previous } = pageOf(first);
      expectOf(first, 'a next and no previous', next !== null && previous === null);
      const second = await at.followLink(next ?? '');
      const { previous: back } = pageOf(second);
      expectOf(second, 'a previous', back !== null);
      expectOf(
        second,
        'the header Link with previous',
        (second.headers.get('Link') ?? '').includes(`<${back}>; rel="prev"`),
      );
      const again = await at.followLink(back ?? '');
      expectOf(again, 'the first page', isDeepStrictEqual(pageOf(again).items, items));
    },
  },
  {
    id: 'v2-parts',
    endpoint: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'Page numbers and offsets select from the same list; links use the style of the request.',
    check: async (at) => {
      await needsEntries(at, V2_PRODUCTS, 11);
      const { items } = pageOf(await firstPage(at));
      const response = await at.send('GET', `${V2_PRODUCTS}?limit=3&offset=4`);
      const part = pageOf(response);
      expectOf(
        response,
        'the fifth to the seventh product',
        isDeepStrictEqual(part.items, items.slice(4, 7)),
      );
      expectOf(
        response,
        'a next of limit=3&offset=7',
        part.next?.endsWith('?limit=3&offset=7') === true,
      );
    },
  },
  {
    id: 'v2-forged-host',
    endpoint: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'A forged Host or X-Forwarded-Host does not change the links.',
    check: async (at) => {
      for (const name of ['Host', 'X-Forwarded-Host']) {
        const response = await at.sendRaw('GET', `${V2_PRODUCTS}?page=2`, { [name]: FORGED_HOST });
        const linked = response.text + (response.headers.get('Link') ?? '');
        expectOf(response, 'links that lead to the deployment', !linked.includes(FORGED_HOST));
      }
    },
  },
  ...[
    { name: 'v1-list', path: V1_PRODUCTS },
    { name: 'v2', path: V2_PRODUCTS },
  ].map(({ name, path }) => ({
    id: `${name}-wrong-credentials`,
    endpoint: `GET ${path}`,
    level: 'decision' as const,
    needs: [],
    says: 'The endpoint is public, but wrong credentials return 401.',
    check: async (at: Deployment) => {
      const response = await at.send('GET', path, { token: 'wrong' });
      hasStatus(response, 401);
      hasMessage(
        response,
        'detail',
        MESSAGES.badToken,
        'that the credentials could not be validated',
      );
    },
  })),
]);

function isAscending(products: readonly unknown[]): boolean {
  const pks = products.map((product) => Number(memberOf(product, 'pk')));
  return pks.every((pk, index) => index === 0 || pk > (pks[index - 1] ?? Number.NaN));
}
