import { describe, expect, jest, test } from '../support/jest.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const SEARCH = `query ($first: Int, $after: String, $last: Int, $before: String, $filter: ProductFilter, $orderBy: ProductOrder) {
  products(first: $first, after: $after, last: $last, before: $before, filter: $filter, orderBy: $orderBy) {
    totalCount
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    nodes { pk name }
  }
}`;

describe('Search, words', () => {
  const NAMES = [
    'Brass Kettle',
    'Café Crème',
    'Straße 12',
    'Łódź Æro',
    'Чайник',
    'USB-C Cable 3/4 m²',
    '100% Wool',
  ];

  test.each([
    ['kettle', ['Brass Kettle']],
    ['ket', ['Brass Kettle']],
    ['k b', ['Brass Kettle']],
    ['ttle', []],
    ['KETTLE brass', ['Brass Kettle']],
    ['kettle oak', []],
    ['cafe creme', ['Café Crème']],
    ['CAFÉ', ['Café Crème']],
    ['CRE\u0300ME', ['Café Crème']],
    ['ｃａｆｅ', ['Café Crème']],
    ['strasse', ['Straße 12']],
    ['STRAẞE', ['Straße 12']],
    ['lodz', ['Łódź Æro']],
    ['aero', ['Łódź Æro']],
    ['ЧАЙНИК', ['Чайник']],
    ['usb c', ['USB-C Cable 3/4 m²']],
    ['usb-c', ['USB-C Cable 3/4 m²']],
    ['cable m2', ['USB-C Cable 3/4 m²']],
    ['c, usb!', ['USB-C Cable 3/4 m²']],
    ['100%', ['100% Wool']],
    ['wool %', ['100% Wool']],
    ['12%', []],
    ['-', ['USB-C Cable 3/4 m²']],
    ['/', ['USB-C Cable 3/4 m²']],
    [' \t\n ', NAMES],
  ])('%j finds %j', async (search, expected) => {
    for (const name of NAMES) await shop.makeProduct({ name });
    const answer = await find({ filter: { search } });
    expect([namesIn(answer), answer.body.data.products.totalCount]).toEqual([
      expected,
      expected.length,
    ]);
  });

  test.each(['🎁', '★', '→'])(
    'a sign %s that a word begins with finds it, in any order',
    async (sign) => {
      await shop.makeProduct({ name: `${sign}Gift box` });
      for (const orderBy of [undefined, { field: 'PRICE' }]) {
        const answer = await find({ filter: { search: sign }, orderBy });
        expect([namesIn(answer), answer.body.data.products.totalCount]).toEqual([
          [`${sign}Gift box`],
          1,
        ]);
      }
    },
  );

  // Unicode, CaseFolding.txt; PropList.txt (Diacritic, Dash); DerivedCoreProperties.txt
  // (Default_Ignorable_Code_Point); docs/graphql.md: punctuation is ignored.
  test.each([
    ['final sigma', 'Φως', ['ΦΩΣ', 'φωσ', 'φώς']],
    ['a soft hyphen', 'Tee\u00adkanne', ['teekanne', 'tee\u00adkanne', 'teek\u00adanne']],
    ['a zero-width space', 'Tee\u200bkanne', ['teekanne']],
    ['no soft hyphen', 'Teekanne', ['tee\u00adkanne', 'tee\u2060kanne\ufe0f']],
    ['an apostrophe', "Men's Shirt", ['mens', "men's", 'men\u2019s', 'men\u02bcs', 'MEN\uff07S']],
    [
      'a curly apostrophe',
      'Men\u2019s Shirt',
      ['mens', "men's", 'men\u2032s', 'men`s', 'men\u00b4s'],
    ],
    ['no apostrophe', 'Mens Shirt', ["men's", 'men\u2019s']],
    ['an elision', "L'Eau d\u2019Or", ['eau', "l'eau", 'leau', 'or', 'L\u2019EAU DOR']],
    [
      'a hyphen',
      'T-Shirt',
      ['t-shirt', 't\u2010shirt', 't\u2011shirt', 't\u2013shirt', 't\u2212shirt'],
    ],
    ['Cyrillic marks', 'Йод', ['иод', 'ЙОД']],
    ['Vietnamese marks', 'Phở Gà', ['pho ga', 'PHỞ GÀ']],
    ['Hangul', '한글', ['한글'.normalize('NFD')]],
    ['Cherokee', 'Ꮳꮃꭹ', ['ꮳꮃꭹ', 'ᏣᎳᎩ']],
    ['full-width letters', 'ＬＡＭＰ', ['lamp']],
  ])('%s: %j is found by each spelling', async (_what, name, spellings) => {
    await shop.makeProduct({ name });
    await shop.makeProduct({ name: 'Other' });
    for (const text of spellings)
      for (const filter of [{ search: text }, { nameContains: text }])
        expect([filter, namesIn(await find({ filter }))]).toEqual([filter, [name]]);
  });

  test.each([
    ['T-Shirt', ['tshirt', 't shirt', 'shirt', 't-sh']],
    ['TShirt', ['t-shirt', 't\u2010shirt']],
    ['Wi Fi Lamp', ['wi-fi']],
    ['Tee-Kanne', ['teekanne', 'teekane', 'tee-kane', 'kanne']],
    ["Rock 'n' Roll", ["rock'n'roll", 'rock n roll', "roll 'n'"]],
    ['Salt-and-Pepper', ['salt-and', 'and-pepper', 'saltand', 'salt pepper']],
    ['【限定】茶、緑茶', ['限定 茶', '「限定」 緑茶。']],
    ['«Lampe»', ['lampe', '"lampe"', '„Lampe“', '‹lampe›']],
  ])('punctuation within words is ignored: %j', async (name, spellings) => {
    await shop.makeProduct({ name });
    await shop.makeProduct({ name: 'Other' });
    for (const search of spellings)
      expect([search, namesIn(await find({ filter: { search } }))]).toEqual([search, [name]]);
  });
});

describe('Search, the best first', () => {
  test('a barcode or a pk, then names with this start by name, then names with the words by pk', async () => {
    for (const name of [
      'Round Table Lamp',
      'Table 7',
      'table',
      'Tables',
      'Low Table',
      'Table Lamp',
      'Stable',
    ])
      await shop.makeProduct({ name });
    expect(namesIn(await find({ filter: { search: 'table' } }))).toEqual([
      'table',
      'Table 7',
      'Table Lamp',
      'Tables',
      'Round Table Lamp',
      'Low Table',
    ]);
    expect(namesIn(await find({ filter: { search: '7' } }))).toEqual(['Stable', 'Table 7']);
    expect(namesIn(await find({ filter: { search: 'lamp tab' } }))).toEqual([
      'Round Table Lamp',
      'Table Lamp',
    ]);
  });

  test('with an order it finds the same products, in that order', async () => {
    for (const [name, price] of [
      ['Table', '3.00'],
      ['Low Table', '1.00'],
      ['Chair', '2.00'],
      ['Table 4', '0.50'],
    ] as const)
      await shop.makeProduct({ name, price });
    const orderBy = { field: 'PRICE', direction: 'DESC' };
    expect(namesIn(await find({ filter: { search: 'table' }, orderBy }))).toEqual([
      'Table',
      'Low Table',
      'Table 4',
    ]);
    expect(namesIn(await find({ filter: { search: '4' }, orderBy }))).toEqual(['Table 4']);
    expect(namesIn(await find({ filter: { search: 'tabel' }, orderBy }))).toEqual([
      'Table',
      'Low Table',
      'Table 4',
    ]);
  });
});

test('Search, common words: the index reads the rare ones alone, with the same results', async () => {
  await shop.sql(
    `insert into product (name, barcode, price, created_at, updated_at) select 'Oak Lamp ' || n, 4000000000000 + n, 1, now(), now() from generate_series(100, 400) as n`,
  );
  const searches = ['oak 117', 'lamp oak', 'laamp 117', '117 11', 'oak 999'];
  const found = async (search: string) => {
    const { body } = await find({ filter: { search }, first: 5 });
    expect(body.errors).toBeUndefined();
    return body.data.products;
  };
  const before = await Promise.all(searches.map(found));
  expect(before.map(({ totalCount }) => totalCount)).toEqual([1, 301, 1, 1, 0]);
  await shop.sql('analyze product');
  const read = jest.spyOn(shop.database.statements, 'read');
  expect(await Promise.all(searches.map(found))).toEqual(before);
  const values = read.mock.calls.flatMap(([statement]) => statement.values);
  for (const condition of ["'117':*", "'oak':*", "'lamp':* & 'oak':*"])
    expect(values).toContain(condition);
  jest.restoreAllMocks();
});

describe('Search, typos', () => {
  const NAMES = ['Copper Kettle', 'Oak Table', 'Label', 'Lamp 4000', 'Чайник'];

  test.each([
    ['a missing letter', 'ketle', ['Copper Kettle']],
    ['an extra letter', 'kettlee', ['Copper Kettle']],
    ['a wrong letter', 'kittle', ['Copper Kettle']],
    ['a wrong first letter', 'jettle', ['Copper Kettle']],
    ['two neighbours swapped', 'ketlte', ['Copper Kettle']],
    ['the first two swapped', 'ekttle', ['Copper Kettle']],
    ['a mistyped start', 'coper', ['Copper Kettle']],
    ['two possible words', 'tabel', ['Oak Table', 'Label']],
    ['one of several words', 'oak tabel', ['Oak Table']],
    ['several words, each mistyped', 'cpoper ketle', ['Copper Kettle']],
    ['another script', 'чяйник', ['Чайник']],
    ['two scripts in a word', 'k\u0435ttle', []],
    ['two mistakes in a word', 'kitle', []],
    ['three letters', 'oka', []],
    ['a number', 'lamp 4001', []],
    ['a correct word and one that no name has with it', 'oak kettle', []],
  ])('%s: %j finds %j', async (_mistake, search, expected) => {
    for (const name of NAMES) await shop.makeProduct({ name });
    const answer = await find({ filter: { search } });
    expect([namesIn(answer), answer.body.data.products.totalCount]).toEqual([
      expected,
      expected.length,
    ]);
  });

  test('a word of the catalogue is not corrected', async () => {
    for (const name of ['Table', 'Cable', 'Cables']) await shop.makeProduct({ name });
    expect(namesIn(await find({ filter: { search: 'cable' } }))).toEqual(['Cable', 'Cables']);
    expect(namesIn(await find({ filter: { search: 'cabl' } }))).toEqual(['Cable', 'Cables']);
  });

  test('nor is the start of a word too long for corrections', async () => {
    const word = 'Donaudampfschifffahrtsgesellschaft';
    for (const name of [`A ${word}`, word]) await shop.makeProduct({ name });
    for (const letters of [8, 24, 25])
      expect(namesIn(await find({ filter: { search: word.slice(0, letters) } }))).toEqual([
        word,
        `A ${word}`,
      ]);
    expect(namesIn(await find({ filter: { search: 'donaudampfschiffahrtsges' } }))).toEqual([
      `A ${word}`,
      word,
    ]);
  });

  test.each([undefined, { field: 'PRICE' }])(
    'the pages of a search have the same corrections, whatever is added between them: %j',
    async (orderBy) => {
      for (let made = 0; made < 5; made++) await shop.makeProduct({ name: `Kettle ${made}` });
      const first = await find({ first: 2, filter: { search: 'kettel' }, orderBy });
      await shop.makeProduct({ name: 'Kettel' });
      const after = first.body.data.products.pageInfo.endCursor as string;
      const second = await find({ first: 9, after, filter: { search: 'kettel' }, orderBy });
      expect([...namesIn(first), ...namesIn(second)]).toEqual([
        'Kettle 0',
        'Kettle 1',
        'Kettle 2',
        'Kettle 3',
        'Kettle 4',
        'Kettel',
      ]);
      const before = second.body.data.products.pageInfo.startCursor as string;
      expect(
        namesIn(await find({ last: 9, before, filter: { search: 'kettel' }, orderBy })),
      ).toEqual(['Kettle 0', 'Kettle 1']);
      expect(namesIn(await find({ filter: { search: 'kettel' }, orderBy }))).toEqual(['Kettel']);
    },
  );
});

describe('Search, pages', () => {
  // By rank: the pk, beginnings by name, words by pk.
  const NAMES = ['Low 5 Lamp', '5 Lamps', 'Tall 5', '5', 'Chair', '5 Chairs', 'Round 5'];
  const RANKED = ['Chair', '5', '5 Chairs', '5 Lamps', 'Low 5 Lamp', 'Tall 5', 'Round 5'];
  const filter = { search: '5' };

  test.each([1, 2, 3, 4, 7])(
    'forward and back, to both ends, they are the whole list: %i a page',
    async (size) => {
      for (const name of NAMES) await shop.makeProduct({ name });
      expect(await walk({ first: size, filter })).toEqual(pagesOf(RANKED, size));
      expect(await walk({ last: size, filter })).toEqual(
        pagesOf(RANKED.toReversed(), size).map((page) => page.toReversed()),
      );
    },
  );

  test.each(RANKED.map((_name, at) => at))(
    'a page in the middle has correct hasNextPage and hasPreviousPage: entered at %i',
    async (at) => {
      for (const name of NAMES) await shop.makeProduct({ name });
      const cursor = await cursorAt(at, filter);
      const forward = (await find({ first: 2, after: cursor, filter })).body.data.products;
      expect([forward.nodes.map(({ name }: Named) => name), forward.pageInfo]).toMatchObject([
        RANKED.slice(at + 1, at + 3),
        { hasPreviousPage: true, hasNextPage: at + 3 < RANKED.length },
      ]);
      const back = (await find({ last: 2, before: cursor, filter })).body.data.products;
      expect([back.nodes.map(({ name }: Named) => name), back.pageInfo]).toMatchObject([
        RANKED.slice(Math.max(0, at - 2), at),
        { hasPreviousPage: at > 2, hasNextPage: true },
      ]);
    },
  );

  test('a cursor is valid only for this search and this order', async () => {
    for (const name of NAMES) await shop.makeProduct({ name });
    const cursors = [
      await cursorAt(0, filter),
      await cursorAt(2, filter),
      await cursorAt(5, filter),
    ];
    const byPk = (await find({ filter, orderBy: { field: 'PK' } })).body.data.products.pageInfo
      .endCursor as string;
    for (const after of cursors) {
      for (const other of [
        { filter: { search: '5 ' } },
        { filter, orderBy: { field: 'PK' } },
        {},
        { filter: {} },
      ])
        expect(await codeOf({ ...other, after })).toBe('BAD_USER_INPUT');
    }
    expect([await codeOf({ filter, after: byPk }), await codeOf({ filter, before: byPk })]).toEqual(
      ['BAD_USER_INPUT', 'BAD_USER_INPUT'],
    );
  });

  test.each([
    ['an unknown rank', (rank: unknown[]) => [9, ...rank.slice(1)]],
    ['a rank that is not a number', (rank: unknown[]) => ['3', ...rank.slice(1)]],
    ['a rank beyond all numbers', (rank: unknown[]) => [1e300, ...rank.slice(1)]],
    ['a rank below all', (rank: unknown[]) => [-1, ...rank.slice(1)]],
    ['the rank of others', (rank: unknown[]) => [2, ...rank.slice(1)]],
    ['no rank', (rank: unknown[]) => rank.slice(1)],
    ['a rank alone', (rank: unknown[]) => rank.slice(0, 1)],
    ['a word without corrections', (rank: unknown[]) => [5, ...rank.slice(1)]],
  ])('a cursor with %s is BAD_USER_INPUT', async (_what, forge) => {
    for (const name of NAMES) await shop.makeProduct({ name });
    const [print, ...place] = JSON.parse(
      Buffer.from(await cursorAt(5, filter), 'base64url').toString(),
    ) as unknown[];
    const after = Buffer.from(JSON.stringify([print, ...forge(place)])).toString('base64url');
    expect(await codeOf({ filter, after })).toBe('BAD_USER_INPUT');
  });
});

describe('Search, far from the page', () => {
  test('results after many other products are all found', async () => {
    await fillShelf(2_500);
    for (const name of ['Zither One', 'A Zither', 'Zither Two']) await shop.makeProduct({ name });
    for (const [order, expected] of [
      [undefined, ['Zither One', 'Zither Two', 'A Zither']],
      ['NAME', ['A Zither', 'Zither One', 'Zither Two']],
      ['PK', ['Zither One', 'A Zither', 'Zither Two']],
    ] as const) {
      const orderBy = order && { field: order };
      const answer = await find({ filter: { search: 'zither' }, orderBy });
      expect([order, namesIn(answer), answer.body.data.products.totalCount]).toEqual([
        order,
        expected,
        3,
      ]);
      expect(namesIn(await find({ last: 1, filter: { search: 'zither' }, orderBy }))).toEqual(
        expected.slice(-1),
      );
    }
    expect(
      namesIn(await find({ filter: { nameContains: 'ithe' }, orderBy: { field: 'PRICE' } })),
    ).toHaveLength(3);
    expect(namesIn(await find({ first: 2, filter: { priceMin: '9.99' } }))).toEqual([
      'Zither One',
      'A Zither',
    ]);
  });
});

describe('Search, hostile text', () => {
  const LETTERS = Array.from({ length: 127 }, (_, at) => String.fromCodePoint(0x4e00 + at));

  test.each([
    ['127 words', LETTERS.join(' ')],
    ['127 times the same word', Array(127).fill('a').join(' ')],
    [
      'words that are prefixes of each other',
      Array.from({ length: 21 }, (_, at) => 'a'.repeat(at + 1))
        .join(' ')
        .slice(0, 255),
    ],
    [
      'mistyped words',
      [...'abcdefghijklmnopqrstuvwxyz'].map((letter) => `qqqq${letter}`).join(' '),
    ],
    ['one long word', 'q'.repeat(253)],
    ['signs of a tsquery', `'a':* & !b | (c <-> d) \\ ''`],
    ['a quotation mark', `'`],
    ['a backslash', '\\'],
    ['signs of LIKE', '%_\\%'],
    ['signs of a regular expression', '[a-z]+.*(?=x)\\1'],
    ['a lone accent', '\u0301'],
    ['letters that fold to many', 'ﷺ'.repeat(255)],
    ['no letters at all', '\u200b\u2060'],
    ['hieroglyphs', '\u{13000}'.repeat(127)],
  ])('%s: it succeeds, and finds only matching names', async (_what, search) => {
    await shop.makeProduct({ name: 'Brass Kettle' });
    const answer = await find({ filter: { search } });
    expect(answer.status).toBe(200);
    expect(namesIn(answer)).toEqual(
      search === '\u200b\u2060' || search === '\u0301' ? ['Brass Kettle'] : [],
    );
    const name = Array.from(`x ${search}`).slice(0, 255).join('');
    await shop.makeProduct({ name });
    expect(namesIn(await find({ filter: { search } }))).toContain(name);
  });
});

interface Named {
  name: string;
}

function find(variables: Record<string, unknown>): Promise<Answer> {
  return shop.graphql(SEARCH, variables);
}

function namesIn({ body }: Answer): string[] {
  if (body.errors) throw new Error(JSON.stringify(body.errors));
  return body.data.products.nodes.map(({ name }: Named) => name);
}

async function cursorAt(at: number, filter: object): Promise<string> {
  const { body } = await find({ first: at + 1, filter });
  return body.data.products.pageInfo.endCursor;
}

async function codeOf(variables: Record<string, unknown>): Promise<unknown> {
  return (await find(variables)).body.errors?.[0].extensions.code;
}

/** Returns the names on each page of the list, from its start, or backwards from its end. */
async function walk(variables: {
  first?: number;
  last?: number;
  filter: object;
}): Promise<string[][]> {
  const pages: string[][] = [];
  const isBack = variables.last !== undefined;
  let bound: Record<string, unknown> = {};
  for (let more = true; more;) {
    const answer = await find({ ...variables, ...bound });
    pages.push(namesIn(answer));
    const { hasNextPage, hasPreviousPage, startCursor, endCursor } =
      answer.body.data.products.pageInfo;
    more = isBack ? hasPreviousPage : hasNextPage;
    bound = isBack ? { before: startCursor } : { after: endCursor };
  }
  return pages;
}

function pagesOf(names: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(names.length / size) }, (_, page) =>
    names.slice(page * size, (page + 1) * size),
  );
}

async function fillShelf(count: number): Promise<void> {
  const barcodes = Array.from({ length: count }, () => `('${shop.newBarcode()}')`);
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Shelf', barcode, 1, now(), now() from (values ${barcodes.join()}) as made (barcode)`);
}
