import type { JsonForm } from '../../api/compiled-fields.ts';
import { FIELD_KINDS, newProduct, type FieldKind, type ProductField } from './product.rules.ts';

/** What follows from the kind of a field: the type of its column, and forms of its value. */
interface ColumnKind {
  type: 'text' | 'numeric';
  /** Form in compiled GraphQL operations. */
  form: JsonForm;
  /** The cell of a CSV file (RFC 4180). */
  csv: (value: string) => string;
  /** The text in the audit trail. */
  audited: (value: string) => string;
}

const unchanged = (value: string) => value;
const KINDS: Record<FieldKind, ColumnKind> = {
  line: {
    type: 'text',
    form: 'text',
    csv: (value) => `"${value.replaceAll('"', '""')}"`,
    audited: unchanged,
  },
  code: { type: 'text', form: 'text', csv: unchanged, audited: unchanged },
  decimal: {
    type: 'numeric',
    form: 'number',
    csv: unchanged,
    audited: (value) => Number(value).toFixed(2),
  },
};

/** The fields that callers set, in order. Each has a column of the same name. */
export const FIELDS = Object.keys(FIELD_KINDS) as ProductField[];

/** Those that every product has. */
export const REQUIRED_FIELDS = FIELDS.filter(
  (field) => !newProduct.shape[field].safeParse(undefined).success,
);

/** Returns what follows from the kind of a field. */
export function kindOf(field: ProductField): ColumnKind {
  return KINDS[FIELD_KINDS[field]];
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
