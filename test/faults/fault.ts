/** What a database runs as: PGlite in a child of the server, or a PostgreSQL server. */
export type DatabaseKind = 'embedded' | 'postgresql';

/** What was counted and timed, by name and with its unit, such as `{ 'rows acknowledged': 20_341, 'ready again after': '0.9 s' }`. */
export type Figures = Readonly<Record<string, string | number>>;

/** What a fault program is given. */
export interface World {
  on: DatabaseKind;
  /** In CI: the same fault, fewer times. */
  short: boolean;
  /** What the server can do, in answers a second, where that was measured before: beside other programs it cannot be. */
  capacity?: number;
  /** An empty directory of its own, removed afterwards. */
  directory: string;
  /** Has this done at the end, whatever comes of the run; what was asked for last is done first. */
  atEnd: (undo: () => unknown) => void;
}

/** A fault that is made to happen to real processes, and the promise that holds all the same. */
export interface Fault {
  /** By which it is run: `npm run faults -- NAME`. */
  name: string;
  /** What holds, as docs/reliability.md states it. */
  promise: string;
  /** The rows of the catalogue of faults that it carries. */
  rows: readonly string[];
  on: readonly DatabaseKind[];
  /** Makes it happen, and throws where the promise is broken. */
  run(world: World): Promise<Figures>;
}
