const DAY = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long' });
const MINUTE = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

/** A point in time in the reader's time zone: the day, or with `exact` the minute. */
export function Instant({ at, exact = false }: { at: string; exact?: boolean }) {
  return <time dateTime={at}>{(exact ? MINUTE : DAY).format(new Date(at))}</time>;
}
