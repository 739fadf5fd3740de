import type { FieldError } from '../../../core/errors.ts';

/** The formats in which products are imported and exported. */
export const FORMATS = ['csv', 'ndjson'] as const;

export type Format = (typeof FORMATS)[number];

/** The columns of an exported file, in their order. */
export const COLUMNS = ['pk', 'name', 'barcode', 'price', 'createdAt', 'updatedAt'] as const;

/** The columns that an imported file has to have. What else an export has is the database's to say, and is ignored. */
export const REQUIRED_COLUMNS = ['name', 'barcode', 'price'] as const;

/** A row of a file, by the number of its line, from 1: its values by column, or why it has none. */
export type FileRow = { line: number } & ({ values: Readonly<Record<string, unknown>> } | { refusal: FieldError });

/** Why a row of a file is refused. */
export interface RowProblem {
  /** The line that it stands on, from 1. */
  line: number;
  /** Null where it is about the row as a whole. */
  column: string | null;
  /** Kind of mistake for programs, such as `string_too_long`. */
  type: string;
  message: string;
}
