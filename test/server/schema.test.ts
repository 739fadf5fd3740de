import { readFile } from 'node:fs/promises';
import { beforeAll, expect, test } from '../support/jest.ts';
import {
  buildSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isSpecifiedDirective,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';
import 'reflect-metadata';
import { makeSchema, schemaText } from '../../src/graphql/schema.ts';

/** Whole sentences, by their first and last characters. */
const SENTENCES = /^[A-Z`].*\.$/s;

let schema: GraphQLSchema;

beforeAll(async () => {
  schema = buildSchema(schemaText(await makeSchema()));
});

test('GraphQL contract: schema.graphql matches the code; npm run -s schema > schema.graphql updates it', async () => {
  expect(schemaText(await makeSchema())).toBe(await readFile('schema.graphql', 'utf8'));
});

test('GraphQL contract: every type, field, argument, input field, enum value and directive has a description of whole sentences', () => {
  const all = descriptions(schema);
  expect(all.length).toBeGreaterThan(150);
  expect(all.filter(([, description]) => !SENTENCES.test(description))).toEqual([]);
});

test('no list of a response contains null, except Query.nodes', () => {
  const lists = outputs(schema).filter(([, type]) => String(type).includes('['));
  expect(
    lists.filter(([, type]) => !/^\[\w+!\]!$/.test(String(type))).map(([path]) => path),
  ).toEqual(['Query.nodes']);
});

/** All parts of the schema that are not built in, with their descriptions. */
function descriptions(of: GraphQLSchema): [path: string, description: string][] {
  const found: ReturnType<typeof descriptions> = [];
  const add = (path: string, { description }: { description?: string | null | undefined }) =>
    found.push([path, description ?? '']);
  for (const directive of of.getDirectives().filter((known) => !isSpecifiedDirective(known))) {
    add(directive.name, directive);
    for (const arg of directive.args) add(`${directive.name}(${arg.name})`, arg);
  }
  for (const type of typesOf(of)) {
    add(type.name, type);
    if (isEnumType(type))
      for (const value of type.getValues()) add(`${type.name}.${value.name}`, value);
    if (!isObjectType(type) && !isInterfaceType(type) && !isInputObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      add(`${type.name}.${field.name}`, field);
      if ('args' in field)
        for (const arg of field.args) add(`${type.name}.${field.name}(${arg.name})`, arg);
    }
  }
  return found;
}

/** The output fields, with their types. */
function outputs(of: GraphQLSchema): [path: string, type: GraphQLOutputType][] {
  return typesOf(of)
    .filter((type) => isObjectType(type) || isInterfaceType(type))
    .flatMap((type) =>
      Object.values(type.getFields()).map((field): [string, GraphQLOutputType] => [
        `${type.name}.${field.name}`,
        field.type,
      ]),
    );
}

function typesOf(of: GraphQLSchema): GraphQLNamedType[] {
  // Types of a schema that is built from text have AST nodes; built-in types have none.
  return Object.values(of.getTypeMap()).filter((type) => type.astNode);
}
