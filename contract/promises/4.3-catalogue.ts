import { isDeepStrictEqual } from 'node:util';
import { memberOf } from '../answer.ts';
import { misread } from '../barcode.ts';
import type { Deployment } from '../deployment.ts';
import {
  beginningOf,
  expectOf,
  hasHeader,
  hasOnly,
  hasStatus,
  isError,
  isExactly,
  isRefused,
  listOf,
  namesFields,
  pageOf,
  says,
  succeeds,
} from '../expectations.ts';
import { section } from '../promised.ts';
import {
  aProduct,
  create,
  created,
  firstPage,
  needsEntries,
  newProduct,
  SPEAKS,
  V1_PRODUCT,
  V1_PRODUCTS,
  V2_PRODUCTS,
  wholeList,
} from './common.ts';

/** A pk that no product of a shop of this size has. */
const NO_PK = '2147483646';
const FORGED_HOST = 'forged.example';

/** The catalogue: the whole list, one product, a new product, and pages. */
export const catalogue = section('4.3', 'Catalogue', [
  {
    id: 'v1-list',
    row: `GET ${V1_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The products are listed to everyone.',
    check: async (at) => {
      const answer = await wholeList(at);
      hasStatus(answer, 200);
      if (!answer.text.trimStart().startsWith('[')) listOf(answer);
    },
  },
  {
    id: 'v1-list-array',
    row: `GET ${V1_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'The list is one JSON array.',
    check: async (at) => {
      beginningOf(await wholeList(at));
    },
  },
  {
    id: 'v1-list-order',
    row: `GET ${V1_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'The list is in the order of pk.',
    check: async (at) => {
      const answer = await wholeList(at);
      expectOf(answer, 'products in the order of pk', isAscending(beginningOf(answer)), 'another order');
    },
  },
  ...[
    { name: 'v1-list', row: V1_PRODUCTS, path: V1_PRODUCTS },
    { name: 'detail', row: `${V1_PRODUCT}{pk}`, path: V1_PRODUCT + NO_PK },
  ].map(({ name, row, path }) => ({
    id: `${name}-only-get`,
    row: `GET ${row}`,
    level: 'interface' as const,
    needs: [],
    says: 'Only GET is handled: PUT and PATCH are refused.',
    check: async (at: Deployment) => {
      for (const method of ['PUT', 'PATCH']) isRefused(await at.ask(method, path));
    },
  })),
  {
    id: 'detail',
    row: `GET ${V1_PRODUCT}{pk}`,
    level: 'interface',
    needs: [],
    says: 'The pk of a product leads to its details.',
    check: async (at) => {
      const { pk, name } = await aProduct(at);
      const answer = await at.ask('GET', V1_PRODUCT + pk);
      hasStatus(answer, 200);
      expectOf(answer, `the details of ${JSON.stringify(name)}`, answer.member('name') === name);
    },
  },
  ...[NO_PK, 'none', '1.5', '-1'].map((pk) => ({
    id: `detail-${pk === NO_PK ? 'unknown' : pk}`,
    row: `GET ${V1_PRODUCT}{pk}`,
    level: 'decision' as const,
    needs: [],
    says: `The pk ${pk}, which no product has, is answered 404 with detail and nothing else.`,
    check: async (at: Deployment) => {
      const answer = await at.ask('GET', V1_PRODUCT + pk);
      hasStatus(answer, 404);
      says(answer, 'detail', /./, 'something');
      hasOnly(answer, answer.body, 'detail');
    },
  })),
  {
    id: 'create',
    row: `POST ${V1_PRODUCT}`,
    level: 'interface',
    needs: ['user', 'write'],
    says: 'A record with name, barcode and price is added to the database.',
    check: async (at) => {
      const { sent, answer } = await created(at);
      succeeds(answer);
      const pk = answer.member('pk');
      if (typeof pk !== 'number' && typeof pk !== 'string') return;
      const found = await at.ask('GET', V1_PRODUCT + pk);
      hasStatus(found, 200);
      expectOf(found, `the product ${sent.name}`, found.member('name') === sent.name);
    },
  },
  {
    id: 'create-201',
    row: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'The answer is 201 with the product, and Location leads to it.',
    check: async (at) => {
      const { sent, answer } = await created(at);
      hasStatus(answer, 201);
      isExactly(answer, { pk: answer.member('pk'), ...sent });
      const location = answer.headers.get('Location');
      hasHeader(answer, 'Location', /./);
      isExactly(await at.follow(location ?? ''), answer.body);
    },
  },
  {
    id: 'create-decimal-text',
    row: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'A price may be sent as decimal text, and comes as a number.',
    check: async (at) => {
      const answer = await create(at, { ...newProduct(), price: '12.50' });
      hasStatus(answer, 201);
      expectOf(answer, 'the price 12.5', answer.member('price') === 12.5);
    },
  },
  {
    id: 'create-trims',
    row: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'Space around a name is not kept; a pk, and fields that a product has not, are ignored.',
    check: async (at) => {
      const product = newProduct();
      const answer = await create(at, { ...product, name: `  ${product.name} `, pk: Number(NO_PK), colour: 'red' });
      hasStatus(answer, 201);
      const pk = answer.member('pk');
      isExactly(answer, { pk, ...product });
      expectOf(answer, 'a pk that the service assigned', pk !== Number(NO_PK));
    },
  },
  ...(
    [
      { name: 'digits', field: 'price', says: 'A price with three digits after the point', change: () => ({ price: 0.005 }) },
      { name: 'negative', field: 'price', says: 'A price below zero', change: () => ({ price: -1 }) },
      {
        name: 'check-digit',
        field: 'barcode',
        says: 'A barcode whose check digit does not hold',
        change: (code: string) => ({ barcode: misread(code) }),
      },
      { name: 'empty-name', field: 'name', says: 'An empty name', change: () => ({ name: ' ' }) },
    ] as const
  ).map(({ name, field, says: what, change }) => ({
    id: `create-${name}`,
    row: `POST ${V1_PRODUCT}`,
    level: 'decision' as const,
    needs: ['user', 'write'] as const,
    says: `${what} is answered 422.`,
    check: async (at: Deployment) => {
      const product = newProduct();
      namesFields(await create(at, { ...product, ...change(product.barcode) }), ['body', field]);
    },
  })),
  {
    id: 'create-same-barcode',
    row: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'The barcode of another product is answered 409.',
    check: async (at) => {
      const { sent } = await created(at);
      hasStatus(await create(at, { ...newProduct(), barcode: sent.barcode }), 409);
    },
  },
  {
    id: 'create-idempotent',
    row: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'The same Idempotency-Key and body are answered as the first time; with another body, 422.',
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
    row: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['write'],
    says: 'Without credentials a product is refused with 401.',
    check: async (at) => {
      const answer = await at.ask('POST', V1_PRODUCT, { json: newProduct() });
      isError(answer, 401, { detail: 'Not authenticated' });
      hasHeader(answer, 'WWW-Authenticate', 'Bearer');
    },
  },
  {
    id: 'create-without-scope',
    row: `POST ${V1_PRODUCT}`,
    level: 'decision',
    needs: ['user', 'write'],
    says: 'With a token that lacks the scope a product is refused with 403, and detail names the scope.',
    check: async (at) => {
      const answer = await at.ask('POST', V1_PRODUCT, { token: await at.newToken('contract:none'), json: newProduct() });
      hasStatus(answer, 403);
      says(answer, 'detail', /products:write/, 'products:write');
      hasOnly(answer, answer.body, 'detail');
    },
  },
  {
    id: 'v2-pages',
    row: `GET ${V2_PRODUCTS}`,
    level: 'interface',
    needs: [],
    says: 'The products are listed in pages: the second begins where the first ends.',
    check: async (at) => {
      await needsEntries(at, V2_PRODUCTS, 11);
      const first = listOf(await firstPage(at));
      const answer = await at.ask('GET', `${V2_PRODUCTS}?page=2`);
      const codes = new Set(first.map((product) => memberOf(product, 'barcode')));
      const second = listOf(answer);
      const isNew = second.length > 0 && second.every((product) => !codes.has(memberOf(product, 'barcode')));
      expectOf(answer, 'other products than on the first page', isNew);
    },
  },
  {
    id: 'v2-envelope',
    row: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'A page is items, count, next and previous, of which the links are addresses or null.',
    check: async (at) => {
      pageOf(await firstPage(at));
    },
  },
  {
    id: 'v2-default',
    row: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'Without parameters the first page comes, with its links.',
    check: async (at) => {
      const { items, next, previous } = pageOf(await firstPage(at));
      const answer = await at.ask('GET', V2_PRODUCTS);
      const { count: _count, ...page } = pageOf(answer);
      expectOf(answer, 'the first page', isDeepStrictEqual(page, { items, next, previous }));
    },
  },
  {
    id: 'v2-order',
    row: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'Pages are in the order of pk.',
    check: async (at) => {
      const answer = await firstPage(at);
      expectOf(answer, 'products in the order of pk', isAscending(listOf(answer)));
    },
  },
  {
    id: 'v2-links',
    row: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'next leads to the page that follows and previous back, in the body and in the header Link.',
    check: async (at) => {
      await needsEntries(at, V2_PRODUCTS, 11);
      const first = await firstPage(at);
      const { items, next, previous } = pageOf(first);
      expectOf(first, 'a next and no previous', next !== null && previous === null);
      const second = await at.follow(next ?? '');
      const { previous: back } = pageOf(second);
      expectOf(second, 'a previous', back !== null);
      expectOf(second, 'the header Link with previous', (second.headers.get('Link') ?? '').includes(`<${back}>; rel="prev"`));
      const again = await at.follow(back ?? '');
      expectOf(again, 'the first page', isDeepStrictEqual(pageOf(again).items, items));
    },
  },
  {
    id: 'v2-parts',
    row: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'Pages by number and parts by limit and offset are of one list, and their links keep their kind.',
    check: async (at) => {
      await needsEntries(at, V2_PRODUCTS, 11);
      const { items } = pageOf(await firstPage(at));
      const answer = await at.ask('GET', `${V2_PRODUCTS}?limit=3&offset=4`);
      const part = pageOf(answer);
      expectOf(answer, 'the fifth to the seventh product', isDeepStrictEqual(part.items, items.slice(4, 7)));
      expectOf(answer, 'a next of limit=3&offset=7', part.next?.endsWith('?limit=3&offset=7') === true);
    },
  },
  {
    id: 'v2-forged-host',
    row: `GET ${V2_PRODUCTS}`,
    level: 'decision',
    needs: [],
    says: 'A forged Host or X-Forwarded-Host does not get into the links.',
    check: async (at) => {
      for (const name of ['Host', 'X-Forwarded-Host']) {
        const answer = await at.askPlainly('GET', `${V2_PRODUCTS}?page=2`, { [name]: FORGED_HOST });
        const told = answer.text + (answer.headers.get('Link') ?? '');
        expectOf(answer, 'links that lead to the deployment', !told.includes(FORGED_HOST));
      }
    },
  },
  ...[
    { name: 'v1-list', path: V1_PRODUCTS },
    { name: 'v2', path: V2_PRODUCTS },
  ].map(({ name, path }) => ({
    id: `${name}-wrong-credentials`,
    row: `GET ${path}`,
    level: 'decision' as const,
    needs: [],
    says: 'The row is public, but credentials that are wrong are refused with 401 all the same.',
    check: async (at: Deployment) => {
      const answer = await at.ask('GET', path, { token: 'wrong' });
      hasStatus(answer, 401);
      says(answer, 'detail', SPEAKS.ofBadToken, 'that the credentials could not be validated');
    },
  })),
]);

function isAscending(products: readonly unknown[]): boolean {
  const pks = products.map((product) => Number(memberOf(product, 'pk')));
  return pks.every((pk, index) => index === 0 || pk > (pks[index - 1] ?? Number.NaN));
}
