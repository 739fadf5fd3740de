import { beforeAll, expect, test } from '../support/jest.ts';
import {
  astFromValue,
  buildSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  isSpecifiedDirective,
  print,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';
import 'reflect-metadata';
import { makeSchema, schemaText } from '../../src/graphql/schema.ts';

/** Whole sentences, by their first and last characters. */
const SENTENCES = /^[A-Z`].*\.$/s;

/** The schema that clients rely on; CONNECTIONS has the connections, which are all alike. */
const CONTRACT = `
  scalar DateTime
  scalar Decimal
  scalar EAN13
  scalar Price

  interface Node { id: ID! }

  type Query {
    node(id: ID!): Node
    nodes(ids: [ID!]!): [Node]!
    product(pk: ID!): Product
    productByBarcode(barcode: EAN13!): Product
    products(first: Int, after: String, last: Int, before: String, filter: ProductFilter, orderBy: ProductOrder): ProductConnection!
    me: User
    scopes: [String!]!
    users(first: Int, after: String, last: Int, before: String): UserConnection!
    blog(first: Int, after: String, last: Int, before: String): BlogEntryConnection!
    auditEntries(first: Int, after: String, last: Int, before: String, filter: AuditEntryFilter): AuditEntryConnection!
    restUsage(by: RestUsageGrouping, deprecatedOnly: Boolean! = false, first: Int! = 20, skip: Int! = 0): RestUsage!
  }

  type Mutation {
    login(username: String!, password: String!, scopes: [String!]): LoginPayload!
    refresh(refreshToken: String!): LoginPayload!
    logout(sessionKey: String): LogoutPayload!
    endSession(id: ID!): LogoutPayload!
    logoutEverywhere: LogoutPayload!
    changePassword(current: String!, new: String!): User!
    endOtherSessions: LogoutPayload!
    register(input: RegistrationInput!): Boolean!
    confirmRegistration(input: ConfirmationInput!): User!
    requestPasswordReset(user: String!): Boolean!
    resetPassword(token: String!, new: String!): User!
    createApiKey(input: ApiKeyInput!): ApiKeyPayload!
    revokeApiKey(id: ID!): ApiKey!
    createProduct(input: ProductInput!): Product!
    createProducts(inputs: [ProductDraft!]!): [CreateProductResult!]!
    updateProduct(pk: ID!, input: ProductPatch!): Product!
    deleteProduct(pk: ID!): Product!
    addItem(itemId: String!): Item!
    removeItem(itemId: String!): Item!
    createBlogEntry(input: BlogEntryInput!): BlogEntry!
    updateBlogEntry(id: ID!, input: BlogEntryPatch!): BlogEntry!
    deleteBlogEntry(id: ID!): BlogEntry!
  }

  type Product implements Node {
    id: ID! pk: ID! name: String! barcode: EAN13! price: Price! createdAt: DateTime! updatedAt: DateTime!
  }
  type User implements Node {
    id: ID! username: String! email: String fullName: String disabled: Boolean! scopes: [String!]!
    items(first: Int, after: String, last: Int, before: String): ItemConnection!
    blog(first: Int, after: String, last: Int, before: String): BlogEntryConnection!
    sessions(first: Int, after: String, last: Int, before: String): SessionConnection!
    apiKeys(first: Int, after: String, last: Int, before: String): ApiKeyConnection!
  }
  type Item implements Node { id: ID! itemId: String! owner: User! createdAt: DateTime! }
  type BlogEntry implements Node {
    id: ID! title: String! body: String! published: Boolean! creator: User! createdAt: DateTime! updatedAt: DateTime!
  }
  type Session implements Node {
    id: ID! createdAt: DateTime! lastSeenAt: DateTime! expiresAt: DateTime! userAgent: String current: Boolean!
  }

  type ApiKey implements Node {
    id: ID! name: String! scopes: [String!]! createdAt: DateTime! expiresAt: DateTime! lastUsedAt: DateTime
  }

  type AuditEntry implements Node {
    id: ID! at: DateTime! actor: AuditActor! action: String! subject: AuditSubject changes: [AuditedChange!]! requestId: String network: String
  }
  type AuditActor { kind: AuditActorKind! name: String nodeId: ID }
  type AuditSubject { kind: AuditSubjectKind! name: String! nodeId: ID! }
  type AuditedChange { field: String! before: String after: String }
  enum AuditActorKind { USER API_KEY OPERATOR ANONYMOUS }
  enum AuditSubjectKind { USER PRODUCT API_KEY }
  input AuditEntryFilter { actor: String action: String subject: ID since: DateTime until: DateTime }

  type RestUsage { lines: [RestUsageLine!]! totalCount: Int! firstDay: String! deprecatedPaths: [String!]! }
  type RestUsageLine {
    endpoint: String client: String deprecated: Boolean! usernames: [String!]! calls: Float! days: [Float!]!
    recentCalls: Float! earlierCalls: Float! trend: RestUsageTrend! lastAt: DateTime!
  }
  enum RestUsageGrouping { ENDPOINT CLIENT }
  enum RestUsageTrend { GROWING STEADY DWINDLING GONE }

  type LoginPayload {
    accessToken: String! tokenType: String! expiresIn: Int! refreshToken: String! sessionKey: String! user: User!
  }
  type CreateProductResult { product: Product error: ProductError }
  type ProductError { code: String! message: String! fields: [ProductFieldError!]! }
  type ProductFieldError { field: String! message: String! }
  type LogoutPayload { ended: Int! }
  type ApiKeyPayload { key: String! apiKey: ApiKey! }

  type PageInfo { hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String }

  input ProductFilter { search: String nameContains: String barcodeIn: [EAN13!] priceMin: Price priceMax: Price }
  input ProductOrder { field: ProductOrderField! direction: OrderDirection! = ASC }
  enum ProductOrderField { PK NAME PRICE CREATED_AT UPDATED_AT }
  enum OrderDirection { ASC DESC }
  input ProductInput { name: String! barcode: EAN13! price: Price! }
  input ProductDraft { name: String! barcode: String! price: Decimal! }
  input ProductPatch { name: String barcode: EAN13 price: Price }
  input RegistrationInput { email: String! }
  input ConfirmationInput { token: String! username: String! password: String! fullName: String }
  input ApiKeyInput { name: String! scopes: [String!]! expiresAt: DateTime }
  input BlogEntryInput { title: String! body: String! published: Boolean! = false }
  input BlogEntryPatch { title: String body: String published: Boolean }
`;

const CONNECTIONS = ['Product', 'User', 'BlogEntry', 'Item', 'Session', 'ApiKey', 'AuditEntry'].map(
  (node) => `
  type ${node}Connection { edges: [${node}Edge!]! nodes: [${node}!]! pageInfo: PageInfo! totalCount: Int! }
  type ${node}Edge { cursor: String! node: ${node}! }`,
);

const contract = buildSchema(CONTRACT + CONNECTIONS.join('\n'));
let schema: GraphQLSchema;

beforeAll(async () => {
  schema = buildSchema(schemaText(await makeSchema()));
});

test('GraphQL contract: every type, field, argument, default and enum value is in the schema as in the contract', () => {
  const actual = new Set(facts(schema));
  expect(facts(contract).filter((fact) => !actual.has(fact))).toEqual([]);
});

test('GraphQL contract: additions to the schema require nothing of a client', () => {
  const known = new Set(facts(contract));
  expect(
    demands(schema).filter(
      (demand) => !known.has(demand) && contract.getType(demand.split(/\W/)[0] ?? ''),
    ),
  ).toEqual([]);
});

test('GraphQL contract: every type, field, argument, input field, enum value and directive has a description of whole sentences', () => {
  const all = descriptions(schema);
  expect(all.length).toBeGreaterThan(150);
  expect(all.filter(([, description]) => !SENTENCES.test(description))).toEqual([]);
});

test('descriptions use the right article', () => {
  const wrong = /\ba (?=[aeio](?!ne\b))|\ban (?=[^aeiou`8])/i;
  expect(descriptions(schema).filter(([, description]) => wrong.test(description))).toEqual([]);
});

test('names in the schema follow the conventions of GraphQL', () => {
  const names = {
    type: /^[A-Z][A-Za-z0-9]+$/,
    member: /^[a-z][A-Za-z0-9]*$/,
    value: /^[A-Z][A-Z_]*$/,
  };
  const wrong = descriptions(schema).filter(
    ([path, , kind]) =>
      !names[kind].test(path.split(/[.()]+/).findLast((part) => part !== '') ?? ''),
  );
  expect(wrong).toEqual([]);
});

test('no list of a response contains null, except Query.nodes', () => {
  const lists = outputs(schema).filter(([, type]) => String(type).includes('['));
  expect(
    lists.filter(([, type]) => !/^\[\w+!\]!$/.test(String(type))).map(([path]) => path),
  ).toEqual(['Query.nodes']);
});

/** The facts of a schema about its own types, one fact a line. */
function facts(of: GraphQLSchema): string[] {
  return typesOf(of).flatMap((type) => [`${type.name}: ${type.astNode?.kind}`, ...membersOf(type)]);
}

function membersOf(type: GraphQLNamedType): string[] {
  if (isEnumType(type)) return type.getValues().map(({ name }) => `${type.name}.${name}`);
  if (isInputObjectType(type))
    return Object.values(type.getFields()).map((field) => inputFact(type.name, field));
  if (!isObjectType(type) && !isInterfaceType(type)) return [];
  return [
    ...type.getInterfaces().map(({ name }) => `${type.name} implements ${name}`),
    ...Object.values(type.getFields()).flatMap(({ name, args, type: output }) => [
      `${type.name}.${name}: ${String(output)}`,
      ...args.map((arg) => inputFact(`${type.name}.${name}`, arg)),
    ]),
  ];
}

function inputFact(
  of: string,
  { name, type, defaultValue }: GraphQLArgument | GraphQLInputField,
): string {
  const value = defaultValue === undefined ? null : astFromValue(defaultValue, type);
  return `${of}(${name}): ${String(type)}${value ? ` = ${print(value)}` : ''}`;
}

/** The arguments and input fields that a client has to give. */
function demands(of: GraphQLSchema): string[] {
  return typesOf(of).flatMap((type) => {
    if (isInputObjectType(type)) {
      return Object.values(type.getFields())
        .filter(isRequiredInputField)
        .map((field) => inputFact(type.name, field));
    }
    if (!isObjectType(type)) return [];
    return Object.values(type.getFields()).flatMap(({ name, args }) =>
      args.filter(isRequiredArgument).map((arg) => inputFact(`${type.name}.${name}`, arg)),
    );
  });
}

/** All parts of the schema that are not built in, with their descriptions. */
function descriptions(
  of: GraphQLSchema,
): [path: string, description: string, kind: 'type' | 'member' | 'value'][] {
  const found: ReturnType<typeof descriptions> = [];
  const add = (
    path: string,
    { description }: { description?: string | null | undefined },
    kind: 'type' | 'member' | 'value',
  ) => found.push([path, description ?? '', kind]);
  for (const directive of of.getDirectives().filter((known) => !isSpecifiedDirective(known))) {
    add(directive.name, directive, 'member');
    for (const arg of directive.args) add(`${directive.name}(${arg.name})`, arg, 'member');
  }
  for (const type of typesOf(of)) {
    add(type.name, type, 'type');
    if (isEnumType(type))
      for (const value of type.getValues()) add(`${type.name}.${value.name}`, value, 'value');
    if (!isObjectType(type) && !isInterfaceType(type) && !isInputObjectType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      add(`${type.name}.${field.name}`, field, 'member');
      if ('args' in field)
        for (const arg of field.args) add(`${type.name}.${field.name}(${arg.name})`, arg, 'member');
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
