/** The kind of database: the embedded one, or a PostgreSQL server. */
export type DatabaseKind = 'embedded' | 'postgresql';

/**
 * Counts and times by name, with units, such as `{ 'rows acknowledged': 20_341, 'ready again
 * after': '0.9 s' }`.
 */
export type Figures = Readonly<Record<string, string | number>>;

/** The context of a fault program. */
export interface FaultContext {
  on: DatabaseKind;
  /** Runs fewer rounds, for CI. */
  short: boolean;
  /**
   * Capacity of the server in responses per second, if it was measured before, without other
   * programs.
   */
  capacity?: number;
  /** An empty directory, removed afterwards. */
  directory: string;
  /** Adds a cleanup function. All run after the fault, in reverse order, even if it fails. */
  atEnd: (undo: () => unknown) => void;
}

/** A fault in real processes, and the guarantee that holds nevertheless. */
export interface Fault {
  /** The name for `npm run faults -- NAME`. */
  name: string;
  /** The guarantee, as printed in docs/generated/faults.md. */
  promise: string;
  on: readonly DatabaseKind[];
  /**
   * Returns the packages that it needs and that are not installed. A fault with this function runs
   * only if it is named, because CI does not install them.
   */
  missingPackages?: () => Promise<string[]>;
  /** Injects the fault. Throws if the guarantee is broken. */
  run(context: FaultContext): Promise<Figures>;
}
