import { sql } from 'kysely';
import { readRows } from '../../src/database/kysely.ts';
import { expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

test('characters that are not displayed are ignored in names and usernames', async () => {
  const ignorable = Array.from({ length: 0x11_0000 }, (_, code) => code)
    .filter((code) => code < 0xd800 || code > 0xdfff)
    .map((code) => String.fromCodePoint(code))
    .filter((text) => /\p{DI}/u.test(text));
  const others = sql<{ given: string }>`
    select given from unnest(${ignorable}::text[]) as given
    where search_fold(given) <> '' or username_key(given) <> ''`;
  expect(await readRows(shop.context(), others)).toEqual([]);
});
