import type { OperationDefinitionNode } from 'graphql';
import type { Operation } from './request-record.ts';

/** What is kept of an operation's name, which is the client's to choose. */
const MAX_NAME = 64;
/** How many names the metrics tell apart where no manifest says which there are. */
const MAX_LABELS = 100;

const ANONYMOUS = '(anonymous)';
const OTHERS = 'other';

/**
 * Names operations. Metrics tell those of the trusted documents apart, where there are any, else the first hundred names that come: all
 * others are one, whatever clients call them.
 */
export class Operations {
  private readonly labels = new Set<string>();

  constructor(private readonly trusted?: ReadonlySet<string>) {}

  /** The operation of a document that is valid. */
  of({ name, operation: type }: OperationDefinitionNode): Operation {
    if (!name) return { type, label: ANONYMOUS };
    // Through bytes, for a piece of a long text would keep the whole of it in memory.
    const text = Buffer.from(name.value.slice(0, MAX_NAME)).toString();
    return { name: text, type, label: this.isKnown(text) ? text : OTHERS };
  }

  private isKnown(name: string): boolean {
    if (this.trusted) return this.trusted.has(name);
    if (this.labels.size < MAX_LABELS) this.labels.add(name);
    return this.labels.has(name);
  }
}
