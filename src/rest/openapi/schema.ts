import { z } from 'zod';

/** A JSON object of the document. */
export type Json = Record<string, unknown>;

/** A JSON Schema, with the members that the document is made from. */
interface Schema extends Json {
  $ref?: string;
  examples?: unknown[];
  items?: Schema;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
}

const SCHEMAS = '#/components/schemas/';

/** Responses and schemas by name, added while the operations that share them are generated. */
export class Components {
  readonly responses: Json = {};
  readonly schemas: Record<string, Schema> = {};

  /** Returns the JSON Schema 2020-12 of request input or response output. */
  schemaOf(schema: z.ZodType, io: 'input' | 'output'): Schema {
    const generated = z.toJSONSchema(schema, {
      io,
      unrepresentable: 'any',
      // zod omits examples of input that it transforms. These examples are of the sent values.
      override: ({ zodSchema, jsonSchema }) => {
        const { examples } = z.globalRegistry.get(zodSchema) ?? {};
        if (examples) jsonSchema.examples = examples as unknown[];
      },
    });
    const text = JSON.stringify(generated).replaceAll('"#/$defs/', `"${SCHEMAS}`);
    const { $schema: _dialect, $defs, ...own } = JSON.parse(text) as Schema;
    Object.assign(this.schemas, $defs);
    return own;
  }

  /** Returns the schema with the examples, by name, or else an example made from the schema. */
  contentOf(body: z.ZodType, io: 'input' | 'output', named?: Json): Json {
    const schema = this.schemaOf(body, io);
    if (!named) return { schema, example: this.exampleOf(schema) };
    const examples = Object.entries(named).map(([name, value]) => [name, { value }]);
    return { schema, examples: Object.fromEntries(examples) as Json };
  }

  // Combines the examples of the schema's parts, without optional members.
  private exampleOf({ $ref, examples, items, anyOf, properties, required = [] }: Schema): unknown {
    const part = $ref === undefined ? anyOf?.[0] : this.schemas[$ref.slice(SCHEMAS.length)];
    if (examples) return examples[0];
    if (part) return this.exampleOf(part);
    if (items) return [this.exampleOf(items)];
    return Object.fromEntries(
      required.map((name) => [name, this.exampleOf(properties?.[name] ?? {})]),
    );
  }
}
