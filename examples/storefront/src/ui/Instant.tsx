const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' });
const MINUTE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

/** A point in time as the reader's clock has it: its day, or with `exact` its minute. */
export function Instant({ at, exact = false }: { at: string; exact?: boolean }) {
  return <time dateTime={at}>{(exact ? MINUTE : DAY).format(new Date(at))}</time>;
}
