import { formatAmount } from './currency.ts';

/** A formatted price. */
export function Price({ amount }: { amount: number }) {
  return <p className="price">{formatAmount(amount)}</p>;
}
