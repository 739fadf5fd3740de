import fc, { type Arbitrary } from 'fast-check';
import {
  getNamedType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  type GraphQLArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLSchema,
} from 'graphql';
import { anyJson, anyText, barcodeText, numberText, priceText } from './fuzz.values.ts';

/** A value as a GraphQL literal and as JSON. */
export interface Written {
  literal: string;
  json: string;
}

/** A document with its variables as JSON. */
export interface Operation {
  query: string;
  variables: string;
}

/** A piece of a document: text, a value for a variable, or a fragment. */
type Part = string | { type: string; json: string } | { on: string; parts: Part[] };

const DEEPEST = 5;
const LITERALS = [
  'null',
  '1',
  '-1',
  '1.5',
  '1e3',
  '"x"',
  '"""\n  x\n"""',
  '""',
  '[]',
  '[1, "a"]',
  '{}',
  '{a: {b: [1]}}',
  'ASC',
  'true',
  '$none',
  '99999999999999999999',
];
const DIRECTIVES = [
  '@include(if: true)',
  '@skip(if: true)',
  '@skip(if: false) @include(if: true)',
  '@include(if: "x")',
  '@skip',
  '@deprecated',
  '@none(a: 1)',
];

/** Random operations on a schema, with arguments that mostly fit. */
export class Operations {
  private readonly selections = new Map<string, Arbitrary<Part[]>>();

  constructor(
    private readonly schema: GraphQLSchema,
    /** Values for arguments and input fields of these names, some of them valid. */
    private readonly known: Record<string, Arbitrary<Written>>,
  ) {}

  get queries(): Arbitrary<Operation> {
    const root = this.schema.getQueryType();
    const fields = [
      ...Object.values(root?.getFields() ?? {}),
      SchemaMetaFieldDef,
      TypeMetaFieldDef,
    ];
    return this.fieldsOf(fields, DEEPEST, 3).map((parts) => assemble('query', parts));
  }

  get mutations(): Arbitrary<Operation> {
    const fields = Object.values(this.schema.getMutationType()?.getFields() ?? {});
    return this.fieldsOf(fields, 3, 3).map((parts) => assemble('mutation', parts));
  }

  private selection(type: GraphQLCompositeType, depth: number): Arbitrary<Part[]> {
    const key = `${type.name} ${depth}`;
    const found = this.selections.get(key) ?? this.makeSelection(type, depth);
    this.selections.set(key, found);
    return found;
  }

  private makeSelection(type: GraphQLCompositeType, depth: number): Arbitrary<Part[]> {
    const all = 'getFields' in type ? Object.values(type.getFields()) : [];
    const fields = all.filter((field) => depth > 0 || !isCompositeType(getNamedType(field.type)));
    const plain = this.fieldsOf(fields, depth, 3);
    if (!isObjectType(type)) {
      const inside = this.schema
        .getPossibleTypes(type)
        .map((own) =>
          this.selection(own, depth).map((parts): Part[] => [`... on ${own.name} `, ...parts]),
        );
      return fc
        .tuple(plain, ...inside)
        .map(([own, ...others]): Part[] => [
          `{ ... on ${type.name} `,
          ...own,
          ' ',
          ...others.flat(),
          ' }',
        ]);
    }
    return fc.oneof(
      { weight: 12, arbitrary: plain },
      {
        weight: 1,
        arbitrary: plain.map((parts): Part[] => [`{ ... on ${type.name} `, ...parts, ' }']),
      },
      {
        weight: 1,
        arbitrary: plain.map((parts): Part[] => ['{ __typename ', { on: type.name, parts }, ' }']),
      },
    );
  }

  private fieldsOf(
    fields: readonly GraphQLField<unknown, unknown>[],
    depth: number,
    maxLength: number,
  ): Arbitrary<Part[]> {
    const each = fields.map((field) =>
      this.field(field, depth).map((parts) => ({ name: field.name, parts })),
    );
    const none = fc.constant<{ name: string; parts: Part[] }>({
      name: '__typename',
      parts: ['__typename'],
    });
    const usual = fc.uniqueArray(fc.oneof(none, ...each, ...each), {
      minLength: 1,
      maxLength,
      selector: ({ name }) => name,
    });
    return usual.map((chosen): Part[] => [
      '{ ',
      ...chosen.flatMap(({ parts }) => [...parts, ' ']),
      '}',
    ]);
  }

  private field(
    { name, args, type }: GraphQLField<unknown, unknown>,
    depth: number,
  ): Arbitrary<Part[]> {
    const named = getNamedType(type);
    const given = args.map((arg) =>
      rarely(isRequiredArgument(arg) ? 60 : 0.5, this.argument(arg), fc.constant<Part[]>([])).map(
        (parts): Part[] => (parts.length ? [`${arg.name}: `, ...parts, ' '] : []),
      ),
    );
    const alias = rarely(
      30,
      fc.constant(''),
      fc.constantFrom('a: ', 'b: ', 'id: ', '__proto__: ', 'constructor: '),
    );
    const directive = rarely(
      20,
      fc.constant(''),
      fc.constantFrom(...DIRECTIVES).map((text) => ` ${text}`),
    );
    const inside = isCompositeType(named)
      ? this.selection(named, depth - 1)
      : fc.constant<Part[]>([]);
    return fc
      .tuple(alias, fc.tuple(...given), directive, inside)
      .map(([before, written, after, selection]): Part[] => {
        const values = written.flat();
        return [
          `${before}${name}`,
          ...(values.length > 0 ? ['(', ...values, ')'] : []),
          `${after} `,
          ...selection,
        ];
      });
  }

  private argument({ name, type }: GraphQLArgument): Arbitrary<Part[]> {
    const types = rarely(
      60,
      fc.constant(String(type)),
      fc.constantFrom('String', 'Int!', '[ID!]', 'ProductInput', 'None'),
    );
    return fc
      .tuple(this.value(type, name), fc.boolean(), types)
      .map(([{ literal, json }, isVariable, asType]): Part[] => [
        isVariable ? { type: asType, json } : literal,
      ]);
  }

  /** Mostly a value of the type. */
  value(type: GraphQLInputType, name: string): Arbitrary<Written> {
    const other = fc
      .tuple(fc.constantFrom(...LITERALS), anyJson)
      .map(([literal, json]): Written => ({ literal, json }));
    return rarely(60, this.fitting(type, name), other);
  }

  private fitting(type: GraphQLInputType, name: string): Arbitrary<Written> {
    if (isNonNullType(type)) return this.fitting(type.ofType, name);
    const known = this.known[name];
    if (isListType(type))
      return fc.array(this.value(type.ofType, name), { maxLength: 4 }).map(listed);
    if (known) return known;
    if (isEnumType(type))
      return fc.constantFrom(
        ...type
          .getValues()
          .map(({ name: literal }) => ({ literal, json: JSON.stringify(literal) })),
      );
    if (isInputObjectType(type))
      return fc
        .tuple(...Object.values(type.getFields()).map((field) => this.member(field)))
        .map(united);
    return SCALARS[type.name] ?? same(anyText.map((text) => JSON.stringify(text)));
  }

  private member(field: GraphQLInputField): Arbitrary<readonly [string, Written] | undefined> {
    const own = this.value(field.type, field.name).map((value) => [field.name, value] as const);
    return rarely(isRequiredInputField(field) ? 60 : 1, own, fc.constant(undefined));
  }
}

const SCALARS: Record<string, Arbitrary<Written>> = {
  Int: same(
    fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: 1, max: 5 }).map(String) },
      fc.integer({ min: -2, max: 102 }).map(String),
      numberText,
    ),
  ),
  Boolean: same(fc.constantFrom('true', 'false')),
  DateTime: same(
    fc
      .oneof(
        fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
        anyText,
      )
      .map((text) => JSON.stringify(text)),
  ),
  EAN13: same(barcodeText.map((text) => JSON.stringify(text))),
  Price: same(
    fc.oneof(
      priceText,
      priceText.map((text) => `"${text}"`),
    ),
  ),
};

/** A value whose literal and JSON are equal. */
export function same(text: Arbitrary<string>): Arbitrary<Written> {
  return text.map((written) => ({ literal: written, json: written }));
}

/** An object of the defined members. */
export function united(members: readonly (readonly [string, Written] | undefined)[]): Written {
  const present = members.filter((member) => member !== undefined);
  return {
    literal: `{${present.map(([name, { literal }]) => `${name}: ${literal}`).join(', ')}}`,
    json: `{${present.map(([name, { json }]) => `"${name}":${json}`).join()}}`,
  };
}

function listed(values: readonly Written[]): Written {
  return {
    literal: `[${values.map(({ literal }) => literal).join(', ')}]`,
    json: `[${values.map(({ json }) => json).join()}]`,
  };
}

/** A document with some tokens repeated, missing or moved. */
export function jumbled(query: Arbitrary<string>): Arbitrary<string> {
  const defect = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 9_999 }), fc.nat({ max: 9_999 }));
  return fc
    .tuple(query, fc.array(defect, { minLength: 1, maxLength: 3 }))
    .map(([text, defects]) => {
      const words = text.match(/"(?:[^"\\]|\\.)*"|\.\.\.|\w+|\s+|[^\w\s]/g) ?? [];
      for (const [kind, first, second] of defects) {
        const [at, from] = [first, second].map((place) =>
          Math.floor((place / 10_000) * words.length),
        );
        const word = words[from ?? 0] ?? '';
        if (kind === 0) words.splice(at ?? 0, 1);
        else if (kind === 1) words.splice(at ?? 0, 1, word);
        else if (kind === 2) words.splice(at ?? 0, 0, ` ${word} `.repeat(3));
        else words.length = at ?? 0;
      }
      return words.join('');
    });
}

function assemble(kind: string, parts: readonly Part[]): Operation {
  const [types, values, fragments]: [string[], string[], string[]] = [[], [], []];
  const write = (part: Part): string => {
    if (typeof part === 'string') return part;
    if ('json' in part) {
      const number = types.push(`$v${types.length}: ${part.type}`) - 1;
      values.push(`"v${number}":${part.json}`);
      return `$v${number}`;
    }
    const number = fragments.push('') - 1;
    fragments[number] = `fragment F${number} on ${part.on} ${part.parts.map(write).join('')}`;
    return `...F${number}`;
  };
  const body = parts.map(write).join('');
  const head = types.length > 0 ? `${kind} (${types.join(', ')})` : kind;
  return { query: [`${head} ${body}`, ...fragments].join(' '), variables: `{${values.join()}}` };
}

function rarely<A, B>(weight: number, usual: Arbitrary<A>, other: Arbitrary<B>): Arbitrary<A | B> {
  return fc.oneof({ weight: weight * 2, arbitrary: usual }, { weight: 2, arbitrary: other });
}
