import {
  getNamedType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isValueNode,
  Kind,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
  type ASTNode,
  type DocumentNode,
  type GraphQLInputType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { z } from 'zod';
import { DomainError, type FieldError } from '../../kit/errors.ts';
import { readLiteral, RULE } from '../../kit/scalars.ts';
import { check } from '../../kit/validation.ts';

/** Yields what the rules of scalars refuse in the literals of a document, and in the variables of its operation if one is given. */
export function* scalarFaults(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode | null | undefined,
  variables: Readonly<Record<string, unknown>>,
): Generator<FieldError> {
  yield* faultsInLiterals(schema, document);
  for (const { type, variable } of operation?.variableDefinitions ?? []) {
    const { value: name } = variable.name;
    const known = typeFromAST(schema, type) as GraphQLInputType | undefined;
    if (known && Object.hasOwn(variables, name)) yield* faultsIn(known, variables[name], [], name);
  }
}

function faultsInLiterals(schema: GraphQLSchema, document: DocumentNode): FieldError[] {
  const found: FieldError[] = [];
  const types = new TypeInfo(schema);
  visit(
    document,
    visitWithTypeInfo(types, {
      enter(node, _key, parent, path, ancestors) {
        const rule = isValueNode(node) && node.kind !== Kind.VARIABLE && node.kind !== Kind.NULL ? ruleOf(types.getInputType()) : undefined;
        if (!rule || node.kind === Kind.LIST || !isValueNode(node)) return undefined;
        const above = [...ancestors, ...(parent ? [parent] : [])];
        found.push(...faultsOf(rule, readLiteral(node), ...placeOf(above, path)));
        return false;
      },
    }),
  );
  return found;
}

function* faultsIn(type: GraphQLInputType, value: unknown, path: readonly (string | number)[], name: string): Generator<FieldError> {
  if (isNonNullType(type)) return yield* faultsIn(type.ofType, value, path, name);
  if (value == null) return undefined;
  if (isListType(type)) {
    const items = Array.isArray(value) ? value : [value];
    for (const [index, item] of items.entries()) yield* faultsIn(type.ofType, item, Array.isArray(value) ? [...path, index] : path, name);
  } else if (isInputObjectType(type)) {
    const given = value as Record<string, unknown>;
    for (const field of Object.values(type.getFields())) yield* faultsIn(field.type, given[field.name], [...path, field.name], name);
  } else {
    const rule = ruleOf(type);
    if (rule) yield* faultsOf(rule, value, path, name);
  }
  return undefined;
}

function ruleOf(type: GraphQLInputType | null | undefined): z.ZodType | undefined {
  const named = getNamedType(type);
  const rule = isLeafType(named) ? named.extensions[RULE] : undefined;
  return rule instanceof z.ZodType ? rule : undefined;
}

// The argument or variable names a field where it is no object of fields.
function faultsOf(rule: z.ZodType, value: unknown, path: readonly (string | number)[], name: string): readonly FieldError[] {
  const field = (typeof path[0] === 'string' ? path : [name, ...path]).join('.');
  try {
    check(rule, value);
    return [];
  } catch (error) {
    if (error instanceof DomainError) return error.fields.map((fault) => ({ ...fault, field }));
    throw error;
  }
}

/** The place of a literal: its path below its argument, or below the variable whose default it is, and the name of that. */
function placeOf(above: readonly (ASTNode | readonly ASTNode[])[], keys: readonly (string | number)[]): [(string | number)[], string] {
  let path: (string | number)[] = [];
  let name = '';
  for (const [depth, node] of above.entries()) {
    if (!('kind' in node)) {
      const list = above[depth - 1];
      if (list && 'kind' in list && list.kind === Kind.LIST) path.push(keys[depth] ?? 0);
    } else if (node.kind === Kind.OBJECT_FIELD) path.push(node.name.value);
    else if (node.kind === Kind.ARGUMENT) [path, name] = [[], node.name.value];
    else if (node.kind === Kind.VARIABLE_DEFINITION) name = node.variable.name.value;
  }
  return [path, name];
}
