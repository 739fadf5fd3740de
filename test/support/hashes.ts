import bcrypt from 'bcrypt';
import { Piscina } from 'piscina';
import { check, type Check } from '../../src/features/auth/passwords/hash-worker.ts';
import { counted } from './statements.ts';

/** What was done, its statements, how many tasks the hashing threads got, and what they come to for a wrong password. */
export interface Observed<T> {
  answer: T;
  statements: string[];
  tasks: number;
  /** Two to the power of each hash's cost. */
  work: number;
}

/** Watches what the work has hashed. */
export async function hashed<T>(work: () => Promise<T>): Promise<Observed<T>> {
  const run: unknown = Reflect.get(Piscina.prototype, 'run');
  let [tasks, spent] = [0, 0];
  Piscina.prototype.run = function (this: Piscina, ...args: unknown[]): unknown {
    tasks++;
    spent += workOf(args[0] as Check);
    return Reflect.apply(run as () => unknown, this, args);
  } as typeof Piscina.prototype.run;
  try {
    return { ...(await counted(work)), tasks, work: spent };
  } finally {
    Reflect.set(Piscina.prototype, 'run', run);
  }
}

// By the thread's own code, with a bcrypt that notes costs in place of computing, and finds nothing right.
function workOf(task: Check): number {
  const { compareSync } = bcrypt;
  let spent = 0;
  bcrypt.compareSync = (_password, hash) => {
    spent += 2 ** bcrypt.getRounds(hash);
    return false;
  };
  try {
    check(task);
    return spent;
  } finally {
    bcrypt.compareSync = compareSync;
  }
}
