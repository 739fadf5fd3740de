import { describe, expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { PASSWORD, useShop, workerDatabase } from '../support/shop.ts';

const shop = useShop();

const run = (args: string[], input = PASSWORD) => command(args, workerDatabase(), input);

describe('a name has a visible character (Unicode, General_Category, Default_Ignorable_Code_Point)', () => {
  const INVISIBLE = [
    '\u200b',
    '\u00ad',
    '\u2060\ufe0f',
    '\u3164',
    '\u115f',
    '\u2800',
    '\u202e',
    '\u0301',
    '\u{e0041}',
  ];
  const TOO_SHORT = { message: expect.stringContaining('at least 1') };

  test.each(INVISIBLE)('%j names nothing', async (name) => {
    const as = await shop.makeUser({ username: 'alice', scopes: ['products:write', 'blog:write'] });
    const product = { name, barcode: '4006381333931', price: 1 };
    for (const [document, variables] of [
      [
        'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }',
        { input: product },
      ],
      [
        'mutation ($input: BlogEntryInput!) { createBlogEntry(input: $input) { title } }',
        { input: { title: name, body: 'b' } },
      ],
      ['mutation ($itemId: String!) { addItem(itemId: $itemId) { itemId } }', { itemId: name }],
      [
        'mutation ($input: ApiKeyInput!) { createApiKey(input: $input) { key } }',
        { input: { name, scopes: [] } },
      ],
    ] as const) {
      const { body } = await shop.graphql(document, variables, { as });
      expect([document, body.errors?.[0]]).toEqual([document, expect.objectContaining(TOO_SHORT)]);
    }
    expect((await shop.rest('POST', '/api/v1/shop/product/', { json: product, as })).status).toBe(
      422,
    );
    for (const args of [
      ['user', 'create', 'bob', '--full-name', name],
      ['user', 'create', name],
      ['api-keys', 'create', 'alice', name],
    ])
      expect([args, await run(args)]).toEqual([args, expect.objectContaining({ code: 1 })]);
    expect(await shop.sql('select name from product')).toEqual([]);
  });
});

describe('blanks around input of people', () => {
  test.each([
    ['a trailing blank', 'ada@shop.example ', 'ada@shop.example'],
    ['blanks around', '\t ada@shop.example\u00a0', 'ada@shop.example'],
  ])('an email with %s is stored without: %j', async (_what, email, expected) => {
    expect(await run(['user', 'create', 'ada', '--email', email])).toMatchObject({ code: 0 });
    expect(await shop.sql('select email from "user"')).toEqual([{ email: expected }]);
  });

  test.each(['', '\n', '\n\n', '\r\n', '\r\n\r\n', '\r', '\n\r\n'])(
    'a password from standard input is stored without line breaks at its end: %j',
    async (end) => {
      expect(await run(['user', 'create', 'ada'], `${PASSWORD}${end}`)).toMatchObject({ code: 0 });
      const form = { username: 'ada', password: PASSWORD };
      expect((await shop.rest('POST', '/token', { form })).status).toBe(200);
    },
  );

  test('other blanks are part of a password', async () => {
    expect(await run(['user', 'create', 'ada'], `\n ${PASSWORD} \n`)).toMatchObject({ code: 0 });
    const form = { username: 'ada', password: `\n ${PASSWORD} ` };
    expect((await shop.rest('POST', '/token', { form })).status).toBe(200);
  });
});
