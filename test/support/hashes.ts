import bcrypt from 'bcrypt';
import { Piscina } from 'piscina';
import { check, type Check } from '../../src/features/auth/passwords/hash-worker.ts';
import { recordStatements } from './statements.ts';

/** The result of the work, its statements, and its tasks for the hashing threads. */
export interface Observed<T> {
  answer: T;
  statements: string[];
  tasks: number;
  /** The sum of 2 to the power of each hash's cost, for a wrong password. */
  work: number;
}

/** Runs the work and records its password hashing. */
export async function observeHashing<T>(work: () => Promise<T>): Promise<Observed<T>> {
  const run: unknown = Reflect.get(Piscina.prototype, 'run');
  let [tasks, spent] = [0, 0];
  Piscina.prototype.run = function (this: Piscina, ...args: unknown[]): unknown {
    tasks++;
    spent += workOf(args[0] as Check);
    return Reflect.apply(run as () => unknown, this, args);
  } as typeof Piscina.prototype.run;
  try {
    return { ...(await recordStatements(work)), tasks, work: spent };
  } finally {
    Reflect.set(Piscina.prototype, 'run', run);
  }
}

// Runs the thread's code with a bcrypt that records costs instead of computing, and matches no
// password.
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
