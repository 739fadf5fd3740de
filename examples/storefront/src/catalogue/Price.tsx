// The API has no currency.
const EUROS = new Intl.NumberFormat('en-IE', { style: 'currency', currency: 'EUR' });

/** A formatted price. */
export function Price({ amount }: { amount: number }) {
  return <p className="price">{EUROS.format(amount)}</p>;
}
