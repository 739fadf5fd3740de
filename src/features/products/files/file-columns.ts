import type { FieldError } from '../../../core/errors.ts';
import { FIELDS, isOptional } from '../product.columns.ts';
import type { ProductField } from '../product.rules.ts';

/** The formats in which products are imported and exported. */
export const FORMATS = ['csv', 'ndjson'] as const;

export type Format = (typeof FORMATS)[number];

/** The columns of an exported file, in order. An import ignores those that the database sets. */
export const FILE_COLUMNS: readonly string[] = ['pk', ...FIELDS, 'createdAt', 'updatedAt'];

const BY_NAME = new Map(FILE_COLUMNS.map((name) => [name.toLowerCase(), name]));

/** Returns the column of this name, in any case and with blanks around; otherwise undefined. */
export function columnNamed(name: string): string | undefined {
  return BY_NAME.get(name.trim().toLowerCase());
}

/** Required columns of an imported file. */
export const REQUIRED_COLUMNS: readonly ProductField[] = FIELDS.filter(
  (field) => !isOptional(field),
);

/** A row of a file with its line number, from 1: its values by column, or why it cannot be read. */
export type FileRow = { line: number } & (
  { values: Readonly<Record<string, unknown>> } | { error: FieldError }
);

/** Why a row of a file was rejected. */
export interface RowProblem {
  /** Line number, from 1. */
  line: number;
  /** Null for the row as a whole. */
  column: string | null;
  /** Error type for programs, such as `string_too_long`. */
  type: string;
  message: string;
}
