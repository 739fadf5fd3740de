import { InvalidArgumentError, Option } from 'commander';

/** The option with the PostgreSQL server. */
export function serverOption(): Option {
  return new Option('--server <url>', 'a PostgreSQL server on which databases may be created')
    .env('BENCH_DATABASE_URL')
    .default('postgresql://postgres@127.0.0.1:5432/postgres');
}

/** Returns a parser of whole numbers from 1 to this maximum. */
export function countUpTo(most: number): (text: string) => number {
  return (text) => {
    const count = Number(text);
    if (!/^[1-9]\d*$/.test(text) || count > most)
      throw new InvalidArgumentError(`must be a whole number from 1 to ${most}`);
    return count;
  };
}
