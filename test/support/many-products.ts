/** The SQL of a valid barcode: these digits, the number `n`, and the check digit. */
export function barcodeOfN(prefix: string): string {
  const digits = `'${prefix}' || lpad(n::text, ${12 - prefix.length}, '0')`;
  return `(select digits || (10 - (
      select sum(substr(digits, at, 1)::int * (case when at % 2 = 0 then 3 else 1 end)) from generate_series(1, 12) at) % 10) % 10
    from (select ${digits} as digits) as made)`;
}

/**
 * An INSERT of this number of products, named `Product 1` and so on from this number, with valid
 * barcodes.
 */
export function insertingMany(count: number, from = 1, name = 'Product '): string {
  return `
    insert into product (name, barcode, price, created_at, updated_at)
    select '${name}' || n, ${barcodeOfN('401')}, 1, now(), now()
    from generate_series(${from}, ${from + count - 1}) n`;
}

/** An INSERT of a product for each primary key `n` of this series, such as `generate_series(1, 9)`. */
export function insertingPks(series: string): string {
  return `
    insert into product (pk, name, barcode, price, created_at, updated_at)
    select n, 'Product ' || n, ${barcodeOfN('20')}, 1, now(), now() from (select n from ${series}) as pks`;
}
