/** How many rows a statement ends or deletes, at most: in one statement, much would take longer than a statement may. */
export const PIECE = 5_000;
/** How many such statements a sweep is, at most: the next one goes on. */
const MAX_PIECES = 50;

/** Does it a piece at a time, until one comes to less than a whole piece or there were `most`. Returns how many rows it came to in all. */
export async function inPieces(doPiece: () => Promise<number>, most = MAX_PIECES): Promise<number> {
  let all = 0;
  for (let piece = 0; piece < most; piece++) {
    const count = await doPiece();
    all += count;
    if (count < PIECE) break;
  }
  return all;
}
