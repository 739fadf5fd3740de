/** Currency of all prices, because the API has none. */
const CURRENCY = 'EUR';

const AMOUNT = new Intl.NumberFormat('en-IE', { style: 'currency', currency: CURRENCY });

/** Name of the currency. */
export const currencyName =
  new Intl.DisplayNames('en-IE', { type: 'currency' }).of(CURRENCY) ?? CURRENCY;

/** Returns the amount with its currency. */
export function formatAmount(amount: number): string {
  return AMOUNT.format(amount);
}
