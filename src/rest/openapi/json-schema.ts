import { z } from 'zod';

/** A part of the document. */
export type Json = Record<string, unknown>;

/** What of a schema an example is made of. */
interface Sampled {
  $ref?: string;
  examples?: unknown[];
  type?: string;
  items?: Json;
  properties?: Record<string, Json>;
  required?: string[];
  anyOf?: Json[];
}

const SCHEMAS = '#/components/schemas/';

/** What several operations share, by name; filled while they are written. */
export interface Components {
  schemas: Json;
  responses: Json;
}

/** A value that the schema allows, made of the examples of its parts; of an object, its required members. */
export function exampleOf(schema: Json, components: Components): unknown {
  const { $ref, examples, type, items, properties = {}, required = [], anyOf } = schema as Sampled;
  if ($ref !== undefined) return exampleOf(components.schemas[$ref.slice(SCHEMAS.length)] as Json, components);
  if (examples) return examples[0];
  if (anyOf?.[0]) return exampleOf(anyOf[0], components);
  if (type === 'array' && items) return [exampleOf(items, components)];
  return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name] ?? {}, components)]));
}

/** The schema as JSON Schema 2020-12, of what is sent or of what is answered. One that has an id stands among the components, once. */
export function schemaOf(schema: z.ZodType, io: 'input' | 'output', { schemas }: Components): Json {
  const written = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    // zod leaves out the examples of input that it reads as something else; these are of what is sent.
    override: ({ zodSchema, jsonSchema }) => {
      const { examples } = z.globalRegistry.get(zodSchema) ?? {};
      if (examples !== undefined) jsonSchema.examples = examples as unknown[];
    },
  });
  const moved = JSON.parse(JSON.stringify(written).replaceAll('"#/$defs/', `"${SCHEMAS}`)) as Json & { $defs?: Json };
  const { $schema: _dialect, $defs, ...own } = moved;
  Object.assign(schemas, $defs);
  return own;
}
