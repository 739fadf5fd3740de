// The interface names no currency: which one it is, is this shop's own knowledge.
const EUROS = new Intl.NumberFormat('en-IE', { style: 'currency', currency: 'EUR' });

/** A price as it is read. */
export function Price({ amount }: { amount: number }) {
  return <p className="price">{EUROS.format(amount)}</p>;
}
