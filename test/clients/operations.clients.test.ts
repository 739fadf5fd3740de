import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '../support/jest.ts';
import { withDirectory } from '../support/directories.ts';
import { GRAPHQL_CLIENTS } from '../support/graphql-clients.ts';
import { Shop, useShop } from '../support/shop.ts';

const PRODUCT = 'query ($pk: ID!) { product(pk: $pk) { name } }';
const ADD = 'mutation ($itemId: String!) { addItem(itemId: $itemId) { itemId } }';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { name } }';

const shop = useShop();
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const url = () => `${shop.url}/graphql`;

describe.each(GRAPHQL_CLIENTS)('%s', (_name, send) => {
  test('reads with variables', async () => {
    const { pk, name } = await shop.makeProduct({ name: 'Ink & paper, 50 %' });
    expect(await send({ url: url(), query: PRODUCT, variables: { pk } })).toMatchObject({
      data: { product: { name } },
      codes: [],
    });
  });

  test('reads with credentials', async () => {
    const user = await shop.makeUser();
    const found = await send({
      url: url(),
      query: '{ me { username } }',
      headers: bearer(shop.tokenOf(user)),
    });
    expect(found).toMatchObject({ data: { me: { username: user.username } }, codes: [] });
  });

  test('reads with a document longer than a URL', async () => {
    const { pk, name } = await shop.makeProduct();
    const [alias, variable] = ['x'.repeat(99), 'p'.repeat(99)];
    const query = `query ($${variable}: ID!) { ${Array.from({ length: 10 }, (_, n) => `${alias}${n}: product(pk: $${variable}) { name }`).join(' ')} }`;
    const { data, codes } = await send({ url: url(), query, variables: { [variable]: pk } });
    expect([Object.keys(data as object).length, codes]).toEqual([10, []]);
    expect(Object.values(data as object)).toContainEqual(expect.objectContaining({ name }));
  });

  test('writes', async () => {
    const headers = bearer(shop.tokenOf(await shop.makeUser()));
    const found = await send({ url: url(), query: ADD, variables: { itemId: 'Ink' }, headers });
    expect(found).toMatchObject({ data: { addItem: { itemId: 'Ink' } }, codes: [] });
  });

  const tokenOf = async (user = {}) => bearer(shop.tokenOf(await shop.makeUser(user)));
  const LAMP = { itemId: 'Ink' };

  test.each<[string, string, () => Promise<Partial<Parameters<typeof send>[0]>>]>([
    ['invalid credentials', 'UNAUTHENTICATED', async () => ({ headers: bearer('nonsense') })],
    [
      'a token that has expired',
      'UNAUTHENTICATED',
      async () => {
        const headers = await tokenOf();
        shop.advanceClock(24 * 3_600_000);
        return { query: ADD, variables: LAMP, headers };
      },
    ],
    [
      'an inactive user',
      'INACTIVE_USER',
      async () => ({ headers: await tokenOf({ disabled: true }) }),
    ],
    [
      'a user without the scope',
      'FORBIDDEN',
      async () => ({
        query: CREATE,
        variables: { input: { name: 'Ink', barcode: shop.newBarcode(), price: 1 } },
        headers: await tokenOf(),
      }),
    ],
    [
      'variables of the wrong type',
      'BAD_USER_INPUT',
      async () => ({ query: PRODUCT, variables: { pk: { no: 'id' } } }),
    ],
    [
      'a field that does not exist',
      'GRAPHQL_VALIDATION_FAILED',
      async () => ({ query: '{ nothing }' }),
    ],
    [
      'a body that is too large',
      'PAYLOAD_TOO_LARGE',
      async () => ({ query: ADD, variables: { itemId: 'x'.repeat(110_000) } }),
    ],
    [
      'a body of another type',
      'UNSUPPORTED_MEDIA_TYPE',
      async () => ({ query: ADD, variables: LAMP, headers: { 'content-type': 'text/plain' } }),
    ],
  ])('gets GraphQL errors for %s: %s', async (_why, code, request) => {
    const sent = { url: url(), query: '{ me { username } }', ...(await request()) };
    expect(await send(sent)).toEqual({ codes: [code] });
  });

  test('gets GraphQL errors for a document that is not trusted', async () => {
    await withDirectory(async (directory) => {
      const manifest = join(directory, 'manifest.json');
      writeFileSync(manifest, '{}');
      const strict = await new Shop({
        TRUSTED_DOCUMENTS: manifest,
        TRUSTED_DOCUMENTS_MODE: 'enforce',
        GRAPHQL_EXPLORER: 'false',
      }).start();
      try {
        expect(
          await send({ url: `${strict.url}/graphql`, query: PRODUCT, variables: { pk: '1' } }),
        ).toEqual({
          codes: ['DOCUMENT_NOT_TRUSTED'],
        });
      } finally {
        await strict.stop();
      }
    });
  });
});
