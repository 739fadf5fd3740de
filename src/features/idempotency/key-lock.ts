import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';

/** What is done for one key, and those that wait for it. */
interface Turn {
  input: string;
  done: Promise<unknown>;
}

const turns = new WeakMap<object, Map<string, Turn>>();

/**
 * Does the work of each key one after another in this process. Who has waited for the same key and the same input takes what came of
 * it; where nothing did, because it failed or its own client left, the next one tries.
 */
export async function inTurn<T>(ctx: Context, key: string, input: string, work: () => Promise<T>): Promise<T> {
  const own = turnsOf(ctx);
  for (let before = own.get(key); before; before = own.get(key)) {
    const { input: same, done } = before;
    const outcome = await done.then(
      (answer) => ({ answer }),
      () => undefined,
    );
    // The same input was answered by the same work.
    if (outcome && same === input) return outcome.answer as T;
    // Answered by now, so that nobody would hear of what it did.
    if (ctx.request?.isGivenUp) throw new DomainError('TIMEOUT', 'The request was given up');
  }
  const turn = { input, done: work() };
  own.set(key, turn);
  try {
    return await turn.done;
  } finally {
    if (own.get(key) === turn) own.delete(key);
  }
}

// Of one database, whoever asks: keys of another are others.
function turnsOf({ em }: Context): Map<string, Turn> {
  const connection = em.getConnection();
  const own = turns.get(connection) ?? new Map<string, Turn>();
  turns.set(connection, own);
  return own;
}
