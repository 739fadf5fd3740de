import pg, { type Submittable } from 'pg';
import type { Cell } from './sql.ts';
import type { PreparedNames } from './prepared-names.ts';

// How the driver writes values for PostgreSQL; its types leave it out.
const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: unknown) => unknown } }).utils;

/** What of the driver's connection a statement uses (protocol flow: PostgreSQL, 55.2.3). */
interface Wire {
  stream: { cork(): void; uncork(): void };
  parsedStatements: Record<string, string | undefined>;
  submittedNamedStatements: Record<string, string | undefined>;
  parse(message: { name?: string; text: string }): void;
  close(message: { type: 'S'; name: string }): void;
  bind(message: { statement?: string; values: readonly unknown[]; valueMapper: (value: unknown) => unknown }): void;
  execute(message: object): void;
  sync(): void;
}

/**
 * A statement on its way. The driver's own asks each time which columns there are and builds a value for each cell; here the
 * asker knows the columns, and cells stay as PostgreSQL writes them.
 */
export class Asked implements Submittable {
  /** Set by the driver. */
  callback?: (error: Error | null, rows: Cell[][]) => void;
  private readonly rows: Cell[][] = [];

  constructor(
    readonly text: string,
    private readonly values: readonly unknown[],
    /** Under which it stays prepared on a connection. */
    readonly name?: string,
    private readonly names?: Pick<PreparedNames, 'isGivenUp'>,
  ) {}

  submit(connection: unknown): void {
    const wire = connection as Wire;
    const { name, text, values } = this;
    wire.stream.cork();
    try {
      if (name === undefined) {
        wire.parse({ text });
      } else if (wire.parsedStatements[name] === undefined && wire.submittedNamedStatements[name] === undefined) {
        this.closeGivenUp(wire);
        wire.parse({ name, text });
        wire.submittedNamedStatements[name] = text;
      }
      wire.bind({ values, valueMapper: prepareValue, ...(name !== undefined && { statement: name }) });
      wire.execute({});
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
  }

  // What is prepared stays on the connection until it is closed there. Closing what is not there is no error.
  private closeGivenUp(wire: Wire): void {
    for (const name of Object.keys(wire.parsedStatements)) {
      if (this.names?.isGivenUp(name) !== true) continue;
      wire.close({ type: 'S', name });
      delete wire.parsedStatements[name];
    }
  }

  handleDataRow({ fields }: { fields: Cell[] }): void {
    this.rows.push(fields);
  }

  handleReadyForQuery(): void {
    this.callback?.(null, this.rows);
  }

  handleError(error: Error): void {
    this.callback?.(error, []);
  }

  // What else the driver tells of is not asked for, or says nothing that the rows do not say.
  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}
