import {
  getNamedType,
  isInterfaceType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  isRequiredArgument,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
} from 'graphql';

/**
 * Returns a selection of all fields of a type, recursively. Where a type is nested in itself, its
 * scalar fields are selected once more. Fields with a name in `without` are left out.
 */
export function wholeSelection(
  schema: GraphQLSchema,
  type: GraphQLNamedType,
  without: readonly string[] = [],
  above: readonly string[] = [],
): string {
  if (isInterfaceType(type)) {
    const parts = schema
      .getPossibleTypes(type)
      .map(
        (possible) => `... on ${possible.name} ${wholeSelection(schema, possible, without, above)}`,
      );
    return `{ __typename ${parts.join(' ')} }`;
  }
  if (!isObjectType(type)) return '';
  const isRepeated = above.includes(type.name);
  const fields = Object.values(type.getFields())
    .filter(({ name, args }) => !without.includes(name) && !args.some(isRequiredArgument))
    .filter((field) => !isRepeated || isLeafType(getNamedType(field.type)))
    .map(
      (field) =>
        `${field.name} ${wholeSelection(schema, getNamedType(field.type), without, [...above, type.name])}`,
    );
  return `{ __typename ${fields.join(' ')} }`;
}

/**
 * Returns the paths of a response that do not conform to the schema: null, no list, or a list,
 * against the type.
 */
export function breachesOf(
  schema: GraphQLSchema,
  value: unknown,
  type: GraphQLOutputType,
  path = 'data',
): string[] {
  if (isNonNullType(type))
    return value === null ? [`${path} is null`] : breachesOf(schema, value, type.ofType, path);
  if (value === null) return [];
  if (value === undefined) return [`${path} is missing`];
  if (isListType(type)) {
    if (!Array.isArray(value)) return [`${path} is no list`];
    return value.flatMap((item, index) =>
      breachesOf(schema, item, type.ofType, `${path}.${index}`),
    );
  }
  if (Array.isArray(value)) return [`${path} is a list`];
  if (isLeafType(type)) return [];
  const { __typename: name, ...fields } = value as Record<string, unknown>;
  const object = schema.getType(String(name));
  if (!isObjectType(object)) return [`${path} is of no type`];
  return Object.entries(fields).flatMap(([field, own]) => {
    const definition = object.getFields()[field];
    return definition
      ? breachesOf(schema, own, definition.type, `${path}.${field}`)
      : [`${path}.${field} is in no schema`];
  });
}
