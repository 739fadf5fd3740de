import type { JsonForm } from '../../api/compiled-fields.ts';
import { identifier, join, raw, sql, type Sql } from '../../database/sql.ts';
import {
  FIELD_KINDS,
  newProduct,
  type FieldKind,
  type NewProduct,
  type ProductField,
} from './product.rules.ts';

/** What follows from the kind of a field: its type, and expressions of its column. */
interface ColumnKind {
  type: 'text' | 'numeric';
  /** Form in compiled GraphQL operations. */
  form: JsonForm;
  json: (column: Sql) => Sql;
  /** The cell of a CSV file (RFC 4180). */
  csv: (column: Sql) => Sql;
  /** The text in the audit trail, in SQL and of a read product. */
  audited: (column: Sql) => Sql;
  auditedText: (value: string) => string;
}

const TEXT = { type: 'text', form: 'text' } as const;
const UNCHANGED = {
  audited: (column: Sql) => column,
  auditedText: (value: string) => value,
};
const KINDS: Record<FieldKind, ColumnKind> = {
  line: {
    ...TEXT,
    ...UNCHANGED,
    json: (column) => sql`to_json(${column})`,
    csv: (column) => sql`'"' || replace(${column}, '"', '""') || '"'`,
  },
  code: {
    ...TEXT,
    ...UNCHANGED,
    json: (column) => sql`'"' || ${column} || '"'`,
    csv: (column) => column,
  },
  decimal: {
    type: 'numeric',
    form: 'number',
    // Without trailing zeros, as JavaScript writes a number.
    json: (column) => sql`trim_scale(${column})`,
    csv: (column) => column,
    audited: (column) => sql`round(${column}, 2)::text`,
    auditedText: (value) => Number(value).toFixed(2),
  },
};

/** The fields that callers set, in order. Each has a column of the same name. */
export const FIELDS = Object.keys(FIELD_KINDS) as ProductField[];

/** Their columns. */
export const COLUMNS = columnsOf();

/** Returns the columns of these fields, of a table if given. */
export function columnsOf(table?: string, fields: readonly ProductField[] = FIELDS): Sql {
  return join(fields.map((field) => (table ? identifier(table, field) : identifier(field))));
}

/** Returns what follows from the kind of a field. */
export function kindOf(field: ProductField): ColumnKind {
  return KINDS[FIELD_KINDS[field]];
}

/** Returns a row of these values, with the names and types of the columns, for a SELECT. */
export function valuesOf(values: NewProduct): Sql {
  return join(
    FIELDS.map((field) => sql`${values[field] ?? null}::${typeOf(field)} as ${identifier(field)}`),
  );
}

/** Returns a list of values of each column, for `unnest`. */
export function listsOf(rows: readonly NewProduct[]): Sql {
  return join(
    FIELDS.map((field) => sql`${rows.map((row) => row[field] ?? null)}::${typeOf(field)}[]`),
  );
}

/**
 * Returns what `read` makes of the value of each field; null stays null, and is the value of a field
 * that a logged change lacks, because it was added later.
 */
export function mapFields<T>(
  product: Readonly<Record<ProductField, string | null | undefined>>,
  read: (kind: ColumnKind, value: string) => T,
): Record<string, T | null> {
  return Object.fromEntries(
    FIELDS.map((field) => {
      const value = product[field];
      return [field, value == null ? null : read(kindOf(field), value)];
    }),
  );
}

/** Returns whether a product may lack the field. */
export function isOptional(field: ProductField): boolean {
  return newProduct.shape[field].safeParse(undefined).success;
}

function typeOf(field: ProductField): Sql {
  return raw(kindOf(field).type);
}
