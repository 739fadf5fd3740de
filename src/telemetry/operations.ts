import type { OperationDefinitionNode } from 'graphql';
import type { Operation } from './request-record.ts';

/** Maximum length of an operation name, which the client chooses, in characters. */
const MAX_NAME = 64;
/** Maximum number of operation names in metrics. */
const MAX_LABELS = 100;

const ANONYMOUS = '(anonymous)';
const OTHER = 'other';

/**
 * Names operations. Metrics distinguish the first hundred names. All other operations share one
 * label.
 */
export class Operations {
  private readonly labels = new Set<string>();

  /** Returns the operation of a valid document. */
  of({ name, operation: type }: OperationDefinitionNode): Operation {
    if (!name) return { type, label: ANONYMOUS };
    // Copies through bytes, because a slice would keep the whole string in memory.
    const text = Buffer.from(name.value.slice(0, MAX_NAME)).toString();
    return { name: text, type, label: this.isKnown(text) ? text : OTHER };
  }

  private isKnown(name: string): boolean {
    if (this.labels.size < MAX_LABELS) this.labels.add(name);
    return this.labels.has(name);
  }
}
