import fc, { type Arbitrary } from 'fast-check';
import { checkDigit } from '../../src/features/products/ean13.ts';

// Values as text, because numbers may have forms that no double has.

const SPECIAL_TEXTS = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud83d',
  '\u202e',
  '\r\n',
  '\u2028',
  '\u00a0x\u3000',
  '__proto__',
  'constructor',
  'then',
  'null',
  'NaN',
  '٣',
  "'",
  '"',
  '\\',
  ...['x', '𝕏', '\u0300', ' x'].flatMap((unit) =>
    [255, 256].map((count) => unit.repeat(count / Array.from(unit).length)),
  ),
  'y'.repeat(4_000),
  '🧑‍🚀'.repeat(500),
];

const SPECIAL_NUMBERS = [
  '0',
  '-0',
  '0e999999999',
  '1',
  '-1',
  '0.30000000000000004',
  '1e2',
  '9999999999.99',
  '10000000000',
  '12345678901234567890',
  '9007199254740993',
  '2147483648',
  '1e400',
  '1e-400',
  '5e-324',
  `1${'0'.repeat(400)}`,
  `0.${'0'.repeat(400)}1`,
];

const MEMBERS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'toJSON',
  'then',
  'length',
  'pk',
  'id',
  '',
  '$ne',
  'sql',
  '__meta',
  '\0',
  'scopes',
];

/** Any text, including text that cannot be stored. */
export const anyText = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 24 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'grapheme', maxLength: 24 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 24 }) },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.nat({ max: 0xffff }), { maxLength: 12 })
      .map((units) => String.fromCharCode(...units)),
  },
  { weight: 2, arbitrary: fc.constantFrom(...SPECIAL_TEXTS) },
);

/** A valid name: one line of 1 to 255 characters, often with space around it. */
export const lineText = fc
  .tuple(
    fc.constantFrom('', '', '', ' ', '\t\u2003'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 24 }),
    fc.constantFrom('', '', '\n'),
  )
  .map((parts) => parts.join(''));

/** A valid barcode; some repeat. */
export const barcodeText = fc
  .oneof(
    { weight: 9, arbitrary: fc.noBias(fc.nat({ max: 999_999_999_999 })) },
    { weight: 1, arbitrary: fc.nat({ max: 5 }) },
  )
  .map((number) => {
    const digits = String(number).padStart(12, '0');
    return digits + checkDigit(digits);
  });

/** A valid price, in each way to write it as a number. */
export const priceText = fc
  .tuple(fc.nat({ max: 999_999_999_999 }), fc.nat({ max: 5 }))
  .map(([cents, how]) => {
    const [whole, fraction] = [Math.floor(cents / 100), String(cents % 100).padStart(2, '0')];
    if (how === 0) return String(whole);
    if (how === 1) return `${cents}e-2`;
    return how === 2 ? `${whole}.${fraction}`.replace(/\.?0+$/, '') || '0' : `${whole}.${fraction}`;
  });

/** A JSON number, including some that no double can represent. */
export const numberText = fc.oneof(
  fc.integer().map(String),
  fc.double({ noDefaultInfinity: true, noNaN: true }).map(String),
  fc.constantFrom(...SPECIAL_NUMBERS),
);

/** A JSON string, sometimes with every character escaped. */
export function quoted(text: Arbitrary<string>): Arbitrary<string> {
  return fc
    .tuple(text, fc.nat({ max: 9 }))
    .map(([value, how]) => (how === 0 ? `"${escaped(value)}"` : JSON.stringify(value)));
}

/** Any JSON value. */
export const { value: anyJson } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    { weight: 2, arbitrary: fc.constantFrom('null', 'true', 'false', '{}', '[]', '""') },
    { weight: 3, arbitrary: numberText },
    { weight: 4, arbitrary: quoted(anyText) },
    {
      weight: 1,
      arbitrary: fc.array(tie('value'), { maxLength: 4 }).map((values) => `[${values.join()}]`),
    },
    {
      weight: 2,
      arbitrary: fc
        .array(memberOf(fc.constantFrom(...MEMBERS), tie('value')), { maxLength: 4 })
        .map((members) => `{${members.join()}}`),
    },
  ),
}));

/** A JSON object: mostly valid fields, sometimes invalid, repeated, missing or unknown ones. */
export function objectOf(fields: Record<string, Arbitrary<string>>): Arbitrary<string> {
  const names = Object.keys(fields);
  const members = Object.entries(fields).map(([name, value]) =>
    fc.oneof(
      { weight: 20, arbitrary: memberOf(fc.constant(name), value) },
      { weight: 2, arbitrary: memberOf(fc.constant(name), anyJson) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    ),
  );
  const more = fc.oneof(
    { weight: 6, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(
        memberOf(fc.oneof(fc.constantFrom(...names, ...MEMBERS), anyText), anyJson),
        { maxLength: 3 },
      ),
    },
  );
  return fc
    .tuple(fc.tuple(...members), more, fc.boolean(), fc.constantFrom(',', ' ,\n\t'))
    .map(([own, others, isFirst, comma]) => {
      const present = own.filter((member) => member !== undefined);
      return `{${(isFirst ? [...others, ...present] : [...present, ...others]).join(comma)}}`;
    });
}

/** Invalid, deep or long JSON. */
export const endless: Arbitrary<string> = fc.constantFrom(
  ...[10, 1_000, 7_000].flatMap((count) => [
    '['.repeat(count) + ']'.repeat(count),
    '{"a":'.repeat(count / 2) + '1' + '}'.repeat(count / 2),
    '['.repeat(count),
    `{"name":"${'x'.repeat(count)}"}`,
    `{"price":${'9'.repeat(count)}}`,
    `{"price":1e${'9'.repeat(count)}}`,
    `{${Array.from({ length: count / 10 }, (_, index) => `"k${index}":0`).join()}}`,
    ' '.repeat(count),
  ]),
  `[${'0,'.repeat(9_000)}0]`,
  `{"a":"${'x'.repeat(20_000)}"}`,
  'null',
  '{',
  '{"a":}',
  "{'a':1}",
  '{"a":1,}',
  '{"a":NaN}',
  '{"a":01}',
  '{"a":1}{"b":2}',
  '/**/{"a":1}',
  '{"a":"\t"}',
  '\u2028{"a":1}',
);

/** The bytes of a text with a few defects: flipped bits, truncation, repeated or missing pieces. */
export function damaged(text: Arbitrary<string>): Arbitrary<Buffer> {
  const defect = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 9_999 }), fc.nat({ max: 7 }));
  return fc
    .tuple(text, fc.array(defect, { minLength: 1, maxLength: 3 }))
    .map(([whole, defects]) => {
      let bytes = Buffer.from(whole);
      for (const [kind, place, size] of defects) {
        const at = Math.floor((place / 10_000) * bytes.length);
        if (kind === 0) bytes[at] = (bytes[at] ?? 0) ^ (1 << size);
        else if (kind === 1 && size === 0) bytes = bytes.subarray(0, at);
        else
          bytes = Buffer.concat([
            bytes.subarray(0, at + (kind === 2 ? size : 0)),
            bytes.subarray(at + (kind === 2 ? 0 : size)),
          ]);
      }
      return bytes;
    });
}

function memberOf(name: Arbitrary<string>, value: Arbitrary<string>): Arbitrary<string> {
  return fc.tuple(quoted(name), value).map(([key, written]) => `${key}:${written}`);
}

function escaped(text: string): string {
  return Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`,
  ).join('');
}
