import { z } from 'zod';

/** A part of the document. */
export type Json = Record<string, unknown>;

/** What several operations share, by name; filled while they are written. */
export interface Components {
  schemas: Json;
  responses: Json;
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
  const moved = JSON.parse(JSON.stringify(written).replaceAll('"#/$defs/', '"#/components/schemas/')) as Json & { $defs?: Json };
  const { $schema: _dialect, $defs, ...own } = moved;
  Object.assign(schemas, $defs);
  return own;
}
