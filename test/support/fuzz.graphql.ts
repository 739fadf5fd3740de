import fc, { type Arbitrary } from 'fast-check';
import {
  getNamedType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isRequiredArgument,
  isRequiredInputField,
  type GraphQLArgument,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  type GraphQLSchema,
} from 'graphql';
import { anyJson, anyText, barcodeText, numberText, priceText } from './fuzz.values.ts';

/** A document with its variables as JSON. */
export interface Operation {
  query: string;
  variables: string;
}

/** A piece of a document: text, or a value for a variable. */
type Part = string | { type: string; json: string };

const ALIASES = ['a: ', 'b: ', 'id: ', '__proto__: ', 'constructor: '];
const DIRECTIVES = ['@include(if: true)', '@skip(if: true)', '@include(if: "x")', '@skip', '@none'];

/** Random operations on a schema, with arguments that mostly fit. */
export class Operations {
  private readonly selections = new Map<string, Arbitrary<Part[]>>();

  constructor(
    private readonly schema: GraphQLSchema,
    /** JSON for arguments and input fields of these names, some of it valid. */
    private readonly known: Record<string, Arbitrary<string>>,
  ) {}

  get queries(): Arbitrary<Operation> {
    const fields = Object.values(this.schema.getQueryType()?.getFields() ?? {});
    return this.fieldsOf(fields, 5).map((parts) => assemble('query', parts));
  }

  get mutations(): Arbitrary<Operation> {
    const fields = Object.values(this.schema.getMutationType()?.getFields() ?? {});
    return this.fieldsOf(fields, 3).map((parts) => assemble('mutation', parts));
  }

  private selection(type: GraphQLCompositeType, depth: number): Arbitrary<Part[]> {
    const key = `${type.name} ${depth}`;
    const found = this.selections.get(key) ?? this.makeSelection(type, depth);
    this.selections.set(key, found);
    return found;
  }

  private makeSelection(type: GraphQLCompositeType, depth: number): Arbitrary<Part[]> {
    if (isAbstractType(type)) {
      const inside = this.schema
        .getPossibleTypes(type)
        .map((own) => this.selection(own, depth).map((parts) => [`... on ${own.name} `, ...parts]));
      return fc.tuple(...inside).map((all): Part[] => ['{ __typename ', ...all.flat(), ' }']);
    }
    const fields = Object.values('getFields' in type ? type.getFields() : {});
    return this.fieldsOf(
      fields.filter((field) => depth > 0 || !isCompositeType(getNamedType(field.type))),
      depth,
    );
  }

  private fieldsOf(
    fields: readonly GraphQLField<unknown, unknown>[],
    depth: number,
  ): Arbitrary<Part[]> {
    const each = fields.map((field) =>
      this.field(field, depth).map((parts) => ({ name: field.name, parts })),
    );
    return fc
      .uniqueArray(fc.oneof(...each), { minLength: 1, maxLength: 3, selector: ({ name }) => name })
      .map((chosen): Part[] => ['{ ', ...chosen.flatMap(({ parts }) => [...parts, ' ']), '}']);
  }

  private field(
    { name, args, type }: GraphQLField<unknown, unknown>,
    depth: number,
  ): Arbitrary<Part[]> {
    const named = getNamedType(type);
    const given = args.map((arg) =>
      rarely(isRequiredArgument(arg) ? 60 : 0.5, this.argument(arg), fc.constant<Part[]>([])),
    );
    return fc
      .tuple(
        rarely(30, fc.constant(''), fc.constantFrom(...ALIASES)),
        fc.tuple(...given),
        rarely(20, fc.constant(''), fc.constantFrom(...DIRECTIVES)),
        isCompositeType(named) ? this.selection(named, depth - 1) : fc.constant<Part[]>([]),
      )
      .map(([alias, values, directive, selection]): Part[] => {
        const written = values.flat();
        const list = written.length > 0 ? ['(', ...written, ')'] : [];
        return [`${alias}${name}`, ...list, ` ${directive} `, ...selection];
      });
  }

  private argument({ name, type }: GraphQLArgument): Arbitrary<Part[]> {
    return fc.tuple(this.value(type, name), fc.boolean()).map(([json, isVariable]): Part[] => [
      `${name}: `,
      // Enum values are not JSON, so those in literals are invalid.
      isVariable ? { type: String(type), json } : json.replace(/"(\w+)":/g, '$1: '),
      ' ',
    ]);
  }

  /** Mostly a value of the type, as JSON. */
  private value(type: GraphQLInputType, name: string): Arbitrary<string> {
    return rarely(60, this.fitting(type, name), anyJson);
  }

  private fitting(type: GraphQLInputType, name: string): Arbitrary<string> {
    if (isNonNullType(type)) return this.fitting(type.ofType, name);
    if (isListType(type))
      return fc
        .array(this.value(type.ofType, name), { maxLength: 4 })
        .map((values) => `[${values.join()}]`);
    const known = this.known[name];
    if (known) return known;
    if (isEnumType(type))
      return fc.constantFrom(...type.getValues().map((value) => JSON.stringify(value.name)));
    if (isInputObjectType(type))
      return fc
        .tuple(...Object.values(type.getFields()).map((field) => this.member(field)))
        .map((members) => `{${members.filter((member) => member !== undefined).join()}}`);
    return SCALARS[type.name] ?? anyText.map((text) => JSON.stringify(text));
  }

  private member(field: GraphQLInputField): Arbitrary<string | undefined> {
    const own = this.value(field.type, field.name).map((json) => `"${field.name}":${json}`);
    return rarely(isRequiredInputField(field) ? 60 : 1, own, fc.constant(undefined));
  }
}

const SCALARS: Record<string, Arbitrary<string>> = {
  Int: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 5 }).map(String) },
    fc.integer({ min: -2, max: 102 }).map(String),
    numberText,
  ),
  Boolean: fc.constantFrom('true', 'false'),
  DateTime: fc.date({ noInvalidDate: true }).map((date) => JSON.stringify(date)),
  EAN13: barcodeText.map((text) => JSON.stringify(text)),
  Price: fc.oneof(
    priceText,
    priceText.map((text) => `"${text}"`),
  ),
};

function assemble(kind: string, parts: readonly Part[]): Operation {
  const [types, values]: [string[], string[]] = [[], []];
  const body = parts.map((part) => {
    if (typeof part === 'string') return part;
    const number = types.push(`$v${types.length}: ${part.type}`) - 1;
    values.push(`"v${number}":${part.json}`);
    return `$v${number}`;
  });
  const head = types.length > 0 ? `${kind} (${types.join(', ')})` : kind;
  return { query: `${head} ${body.join('')}`, variables: `{${values.join()}}` };
}

function rarely<A, B>(weight: number, usual: Arbitrary<A>, other: Arbitrary<B>): Arbitrary<A | B> {
  return fc.oneof({ weight: weight * 2, arbitrary: usual }, { weight: 2, arbitrary: other });
}
