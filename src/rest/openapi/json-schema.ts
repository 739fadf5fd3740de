import { z } from 'zod';

/** A JSON object of the document. */
export type Json = Record<string, unknown>;

/** Schema members that examples are made from. */
interface ExampleSchema {
  $ref?: string;
  examples?: unknown[];
  type?: string;
  items?: Json;
  properties?: Record<string, Json>;
  required?: string[];
  anyOf?: Json[];
}

const SCHEMAS = '#/components/schemas/';

/** Shared components by name, added while operations are generated. */
export interface Components {
  schemas: Json;
  responses: Json;
}

/**
 * Returns an example of the schema, made from the examples of its parts. Omits optional members.
 */
export function exampleOf(schema: Json, components: Components): unknown {
  const {
    $ref,
    examples,
    type,
    items,
    properties = {},
    required = [],
    anyOf,
  } = schema as ExampleSchema;
  if ($ref !== undefined)
    return exampleOf(components.schemas[$ref.slice(SCHEMAS.length)] as Json, components);
  if (examples) return examples[0];
  if (anyOf?.[0]) return exampleOf(anyOf[0], components);
  if (type === 'array' && items) return [exampleOf(items, components)];
  return Object.fromEntries(
    required.map((name) => [name, exampleOf(properties[name] ?? {}, components)]),
  );
}

/**
 * Returns the JSON Schema 2020-12 of request input or response output. Adds schemas with an id to
 * the components.
 */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', { schemas }: Components): Json {
  const generated = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    // zod omits examples of input that it transforms. These examples are of the sent values.
    override: ({ zodSchema, jsonSchema }) => {
      const { examples } = z.globalRegistry.get(zodSchema) ?? {};
      if (examples !== undefined) jsonSchema.examples = examples as unknown[];
    },
  });
  const relocated = JSON.parse(
    JSON.stringify(generated).replaceAll('"#/$defs/', `"${SCHEMAS}`),
  ) as Json & { $defs?: Json };
  const { $schema: _dialect, $defs, ...own } = relocated;
  Object.assign(schemas, $defs);
  return own;
}
