import { Writable } from 'node:stream';
import { expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

const shop = useShop();

const RULE = 'product_barcode_check';

test('products check: a valid catalogue gets one line', async () => {
  await shop.makeProducts(3);
  expect(await check()).toEqual({
    code: 0,
    stdout: 'Products: 3, errors: 0, warnings: 0.\n',
    stderr: '',
  });
});

test('products check: an empty catalogue has no problems', async () => {
  expect(await check()).toEqual({
    code: 0,
    stdout: 'Products: 0, errors: 0, warnings: 0.\n',
    stderr: '',
  });
});

test('products check: restricted barcodes and similar names are warnings, by name', async () => {
  for (const name of ['Kettle', 'Lamp', 'KETTLE', 'Kéttle', 'Lamps'])
    await shop.makeProduct({ name });
  await shop.makeProduct({ name: 'Cheese', barcode: '2000000000008' });
  expect(await check()).toEqual({
    code: 0,
    stdout: [
      'warning: product 6: barcode: 2000000000008. GS1 reserves prefix 200 for use within a region, such as goods sold by weight; elsewhere this barcode may identify something else.',
      'warning: product 3: name: same as product 1',
      'warning: product 4: name: same as product 1',
      'Products: 6, errors: 0, warnings: 3.\n',
    ].join('\n'),
    stderr: '',
  });
});

test('products check: a violated rule is an error, and ends it with 1', async () => {
  const [{ definition } = {}] = await shop.sql(
    `select pg_get_constraintdef(oid) as definition from pg_constraint where conname = '${RULE}'`,
  );
  await shop.makeProducts(2);
  await shop.sql(`alter table product drop constraint ${RULE}`);
  try {
    await shop.sql(`update product set barcode = '4006381333930' where pk = 1`);
    await shop.sql(`update product set barcode = '36000291452' where pk = 2`);
    expect(await check()).toEqual({
      code: 1,
      stdout: [
        'error: product 1: barcode: Invalid check digit; expected 1',
        'error: product 2: barcode: A barcode must have 13 digits (EAN-13): leading zeros may be lost; store barcodes as text',
        'Products: 2, errors: 2, warnings: 0.\n',
      ].join('\n'),
      stderr: '',
    });
  } finally {
    await shop.sql('delete from product');
    await shop.sql(`alter table product add constraint ${RULE} ${String(definition)}`);
  }
});

test('products check: all batches are checked once', async () => {
  const barcodes = Array.from({ length: 2_500 }, () => `('${shop.newBarcode()}')`);
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Shelf', barcode, 1, now(), now() from (values ${barcodes.join()}) as made (barcode)`);
  const { code, stdout } = await check();
  const lines = stdout.split('\n');
  expect([code, new Set(lines).size, lines.at(-2)]).toEqual([
    0,
    2_501,
    'Products: 2500, errors: 0, warnings: 2499.',
  ]);
});

test('products check: ends quietly when its reader disconnects', async () => {
  const barcodes = Array.from({ length: 5_000 }, () => `('${shop.newBarcode()}')`);
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Shelf', barcode, 1, now(), now() from (values ${barcodes.join()}) as made (barcode)`);
  const read: string[] = [];
  const stdout = new Writable({
    highWaterMark: 1,
    write(chunk: Buffer, _encoding, done) {
      if (read.length > 0) return done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      read.push(String(chunk));
      return done();
    },
  });
  expect(await command(['products', 'check'], workerDatabase(), '', { stdout })).toEqual({
    code: 0,
    stdout: '',
    stderr: '',
  });
  expect(read).toEqual(['warning: product 2: name: same as product 1\n']);
});

test('products check accepts no arguments', async () => {
  expect(await command(['products', 'check', 'everything'], workerDatabase())).toMatchObject({
    code: 64,
    stdout: '',
  });
});

function check() {
  return command(['products', 'check'], workerDatabase());
}
