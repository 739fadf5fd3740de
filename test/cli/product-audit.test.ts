import { Writable } from 'node:stream';
import { expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

const shop = useShop();

const RULE = 'product_barcode_check';

test('products audit: a catalogue without faults is told in one line', async () => {
  await shop.makeProducts(3);
  expect(await audit()).toEqual({ code: 0, stdout: 'Products: 3, errors: 0, warnings: 0.\n', stderr: '' });
});

test('products audit: an empty catalogue has none', async () => {
  expect(await audit()).toEqual({ code: 0, stdout: 'Products: 0, errors: 0, warnings: 0.\n', stderr: '' });
});

test('products audit: restricted barcodes and names that are alike are warnings, by name', async () => {
  for (const name of ['Kettle', 'Lamp', 'KETTLE', 'Kéttle', 'Lamps']) await shop.makeProduct({ name });
  await shop.makeProduct({ name: 'Cheese', barcode: '2000000000008' });
  expect(await audit()).toEqual({
    code: 0,
    stdout: [
      'warning: product 6: barcode: 2000000000008. Barcodes that begin with 200 are for use within a region, such as goods sold by weight: elsewhere it may stand for something else.',
      'warning: product 3: name: that of product 1, too',
      'warning: product 4: name: that of product 1, too',
      'Products: 6, errors: 0, warnings: 3.\n',
    ].join('\n'),
    stderr: '',
  });
});

test('products audit: what breaks a rule is an error, and ends it with 1', async () => {
  const [{ definition } = {}] = await shop.sql(
    `select pg_get_constraintdef(oid) as definition from pg_constraint where conname = '${RULE}'`,
  );
  await shop.makeProducts(2);
  await shop.sql(`alter table product drop constraint ${RULE}`);
  try {
    await shop.sql(`update product set barcode = '4006381333930' where pk = 1`);
    await shop.sql(`update product set barcode = '36000291452' where pk = 2`);
    expect(await audit()).toEqual({
      code: 1,
      stdout: [
        'error: product 1: barcode: The check digit does not hold; the last digit would be 1',
        'error: product 2: barcode: A barcode is thirteen digits (EAN-13)',
        'Products: 2, errors: 2, warnings: 0.\n',
      ].join('\n'),
      stderr: '',
    });
  } finally {
    await shop.sql('delete from product');
    await shop.sql(`alter table product add constraint ${RULE} ${String(definition)}`);
  }
});

test('products audit: more products than are read at a time are all gone over, once', async () => {
  const barcodes = Array.from({ length: 2_500 }, () => `('${shop.newBarcode()}')`);
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Shelf', barcode, 1, now(), now() from (values ${barcodes.join()}) as made (barcode)`);
  const { code, stdout } = await audit();
  const lines = stdout.split('\n');
  expect([code, new Set(lines).size, lines.at(-2)]).toEqual([0, 2_501, 'Products: 2500, errors: 0, warnings: 2499.']);
});

test('products audit: ends quietly when its reader leaves', async () => {
  const barcodes = Array.from({ length: 5_000 }, () => `('${shop.newBarcode()}')`);
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Shelf', barcode, 1, now(), now() from (values ${barcodes.join()}) as made (barcode)`);
  const read: string[] = [];
  const stdout = new Writable({
    highWaterMark: 1,
    write(piece: Buffer, _encoding, done) {
      if (read.length > 0) return done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      read.push(String(piece));
      return done();
    },
  });
  expect(await command(['products', 'audit'], workerDatabase(), '', { stdout })).toEqual({ code: 0, stdout: '', stderr: '' });
  expect(read).toEqual(['warning: product 2: name: that of product 1, too\n']);
});

test('products audit takes no arguments', async () => {
  expect(await command(['products', 'audit', 'everything'], workerDatabase())).toMatchObject({ code: 64, stdout: '' });
});

function audit() {
  return command(['products', 'audit'], workerDatabase());
}
