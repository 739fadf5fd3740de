/** A shape on the grid of a picture. */
interface Tile {
  column: number;
  row: number;
  /** The outline in a square of 40 by 40. */
  path: string;
  /** Degrees. */
  turn: number;
  colour: string;
}

/** A generated picture. */
export interface Picture {
  background: string;
  tiles: Tile[];
}

/** Number of tiles in each direction. */
export const GRID = 3;

interface Palette {
  background: string;
  colours: Choice<string>;
}

type Choice<T> = readonly [T, ...T[]];

/** Returns a number from 0 to below the argument. */
type Dice = (sides: number) => number;

const SHAPES: Choice<string> = [
  'M0 0h40a40 40 0 0 1-40 40z',
  'M20 0a20 20 0 0 1 0 40a20 20 0 0 1 0-40z',
  'M0 0h40v20a20 20 0 0 1-40 0z',
  'M0 0h20a20 20 0 0 1 20 20v20h-20a20 20 0 0 1-20-20z',
  'M0 0h40l-40 40z',
  'M0 0h40v40h-40z',
  'M0 20a20 20 0 0 1 40 0a20 20 0 0 1-40 0zm10 0a10 10 0 0 0 20 0a10 10 0 0 0-20 0z',
  'M0 0a20 20 0 0 0 40 0v40a20 20 0 0 0-40 0z',
];

const PALETTES: Choice<Palette> = [
  { background: '#f3e4c8', colours: ['#d9583b', '#1f4e5f', '#e9a83a'] },
  { background: '#dfe7dd', colours: ['#2f5d50', '#d98e73', '#f2c14e'] },
  { background: '#f0dcd6', colours: ['#a63d40', '#29335c', '#e9b872'] },
  { background: '#dce5ee', colours: ['#25507a', '#e07a5f', '#f2cc8f'] },
  { background: '#ece3f0', colours: ['#5b3e7c', '#e27396', '#f4b942'] },
  { background: '#e8e4da', colours: ['#3d405b', '#81b29a', '#e07a5f'] },
  { background: '#f7e3d2', colours: ['#7a4419', '#588157', '#dda15e'] },
  { background: '#d8ebe8', colours: ['#0f6b6b', '#ef8354', '#f6d55c'] },
];

const EMPTY_IN_TEN = 1;

/** Generates the picture of a name; the same for every call. */
export function pictureOf(name: string): Picture {
  const dice = diceOf(name);
  const { background, colours } = picked(PALETTES, dice);
  const tiles: Tile[] = [];
  for (let row = 0; row < GRID; row++) {
    for (let column = 0; column < GRID; column++) {
      const tile = {
        column,
        row,
        path: picked(SHAPES, dice),
        turn: 90 * dice(4),
        colour: picked(colours, dice),
      };
      if (dice(10) >= EMPTY_IN_TEN) tiles.push(tile);
    }
  }
  return { background, tiles };
}

function picked<T>(list: Choice<T>, dice: Dice): T {
  return list[dice(list.length)] ?? list[0];
}

/** Pseudorandom numbers that depend only on the text (FNV-1a, then mulberry32). */
function diceOf(text: string): Dice {
  let state = 0x811c9dc5;
  for (const letter of text) state = Math.imul(state ^ (letter.codePointAt(0) ?? 0), 0x01000193);
  return (sides) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % sides;
  };
}
