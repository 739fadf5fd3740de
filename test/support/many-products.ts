/**
 * An INSERT of this number of products, named `Product 1` and so on from this number, with valid
 * barcodes.
 */
export function insertingMany(count: number, from = 1, name = 'Product '): string {
  return `
    insert into product (name, barcode, price, created_at, updated_at)
    select '${name}' || n, twelve || (10 - (
      select sum(substr(twelve, at, 1)::int * (case when at % 2 = 0 then 3 else 1 end)) from generate_series(1, 12) at) % 10) % 10, 1, now(), now()
    from (select n, '401' || lpad(n::text, 9, '0') as twelve from generate_series(${from}, ${from + count - 1}) n) as numbered`;
}
