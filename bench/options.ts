import { InvalidArgumentError, Option } from 'commander';

/** The option that says where databases are made. */
export function serverOption(): Option {
  return new Option('--server <url>', 'a PostgreSQL server that databases may be made on')
    .env('BENCH_DATABASE_URL')
    .default('postgresql://postgres@127.0.0.1:5432/postgres');
}

/** Reads a number of at most so much. */
export function countUpTo(most: number): (text: string) => number {
  return (text) => {
    const count = Number(text);
    if (!/^[1-9]\d*$/.test(text) || count > most) throw new InvalidArgumentError(`must be a whole number from 1 to ${most}`);
    return count;
  };
}
