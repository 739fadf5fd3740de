/** How many rows a statement ends or deletes, at most: in one statement, much would take longer than a statement may. */
export const PIECE = 5_000;
/** How many such statements there are at a time, at most. */
const MAX_PIECES = 50;

/** Does it a piece at a time, until one comes to less than a whole piece or there were fifty. Returns how many rows it came to in all. */
export async function inPieces(doPiece: () => Promise<number>): Promise<number> {
  let all = 0;
  for (let piece = 0; piece < MAX_PIECES; piece++) {
    const count = await doPiece();
    all += count;
    if (count < PIECE) break;
  }
  return all;
}
