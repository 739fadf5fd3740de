import type { FieldError } from '../../../core/errors.ts';
import { FIELDS } from '../product.columns.ts';

/** The formats in which products are imported and exported. */
export const FORMATS = ['csv', 'ndjson'] as const;

export type Format = (typeof FORMATS)[number];

/** The columns of an exported file, in order. An import ignores those that the database sets. */
export const FILE_COLUMNS: readonly string[] = ['pk', ...FIELDS, 'createdAt', 'updatedAt'];

/** A row of a file with its line number, from 1: its values by column, or why it cannot be read. */
export interface FileRow {
  line: number;
  values?: Readonly<Record<string, unknown>>;
  error?: FieldError;
}

/** Why a row of a file was rejected. */
export interface RowProblem {
  /** Line number, from 1. */
  line: number;
  /** Null for the row as a whole. */
  column: string | null;
  message: string;
}
