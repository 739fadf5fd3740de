import pg, { type Submittable } from 'pg';
import type { Cell } from './sql.ts';
import type { PreparedNames } from './prepared-names.ts';

// Serializes values for PostgreSQL. The driver's types omit it.
const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: unknown) => unknown } })
  .utils;

/** Members of the driver's connection that its types omit (protocol: PostgreSQL, 55.2.3). */
interface Wire {
  stream: { cork(): void; uncork(): void };
  parsedStatements: Record<string, string | undefined>;
  submittedNamedStatements: Record<string, string | undefined>;
  parse(message: { name?: string; text: string }): void;
  close(message: { type: 'S'; name: string }): void;
  bind(message: {
    statement?: string;
    values: readonly unknown[];
    valueMapper: (value: unknown) => unknown;
  }): void;
  execute(message: object): void;
  sync(): void;
}

/**
 * A statement that returns cells as PostgreSQL sends them. The driver's own query requests the
 * columns each time and parses each cell; here the caller knows the columns.
 */
export class RawQuery implements Submittable {
  /** Set by the driver. */
  callback?: (error: Error | null, rows: Cell[][]) => void;
  private readonly rows: Cell[][] = [];

  constructor(
    readonly text: string,
    private readonly values: readonly unknown[],
    /** Name of the prepared statement. */
    readonly name?: string,
    private readonly names?: Pick<PreparedNames, 'isReleased'>,
  ) {}

  submit(connection: unknown): void {
    const wire = connection as Wire;
    const { name, text, values } = this;
    wire.stream.cork();
    try {
      if (name === undefined) {
        wire.parse({ text });
      } else if (
        wire.parsedStatements[name] === undefined &&
        wire.submittedNamedStatements[name] === undefined
      ) {
        this.closeReleased(wire);
        wire.parse({ name, text });
        wire.submittedNamedStatements[name] = text;
      }
      wire.bind({
        values,
        valueMapper: prepareValue,
        ...(name !== undefined && { statement: name }),
      });
      wire.execute({});
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
  }

  // A prepared statement stays on the connection until it is closed. Closing an unknown name is no
  // error.
  private closeReleased(wire: Wire): void {
    for (const name of Object.keys(wire.parsedStatements)) {
      if (this.names?.isReleased(name) !== true) continue;
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

  // Further messages are not requested, or add nothing to the rows.
  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
}
