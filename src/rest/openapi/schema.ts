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

/** Responses and schemas by name, added while the operations that share them are generated. */
export interface Components {
  responses: Json;
  schemas: Record<string, Schema>;
}

const SCHEMAS = '#/components/schemas/';

/**
 * Returns the JSON Schema 2020-12 of request input or response output. Adds schemas with an id to
 * the components.
 */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', components: Components) {
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
  Object.assign(components.schemas, $defs);
  return own;
}

/** Returns an example, made from the examples of the schema's parts, without optional members. */
export function exampleOf(schema: Schema, components: Components): unknown {
  const { $ref, examples, items, anyOf, properties = {}, required = [] } = schema;
  const part = $ref === undefined ? anyOf?.[0] : components.schemas[$ref.slice(SCHEMAS.length)];
  if (examples) return examples[0];
  if (part) return exampleOf(part, components);
  if (items) return [exampleOf(items, components)];
  return Object.fromEntries(
    required.map((name) => [name, exampleOf(properties[name] ?? {}, components)]),
  );
}

/** Returns examples by name, as OpenAPI lists them. */
export function namedExamples(examples: readonly (readonly [string, unknown])[]): Json {
  return Object.fromEntries(examples.map(([name, value]) => [name, { value }]));
}
