import {
  getNamedType,
  isInputObjectType,
  isInputType,
  isLeafType,
  isListType,
  isNonNullType,
  Kind,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
  type ASTNode,
  type DocumentNode,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
  type GraphQLSchema,
  type ObjectValueNode,
  type OperationDefinitionNode,
  type ValueNode,
  type VariableDefinitionNode,
} from 'graphql';
import { z } from 'zod';
import type { InputRule } from '../api/checked-input.ts';
import { DomainError, type FieldError } from '../core/errors.ts';
import { readLiteral, RULE } from '../api/scalars.ts';
import { check, TOO_MANY_ERRORS } from '../core/validation.ts';
import { fieldPath } from './errors.ts';

type Path = readonly (string | number)[];

/** Maximum number of items of a list that are checked: the services accept no longer list. */
const MAX_ITEMS = 101;

/** Error that graphql-js found in a document. */
export interface LiteralError {
  node: ASTNode;
  /** The missing member of the node's value. */
  member?: string | undefined;
  /** Name of the field, once known. */
  field?: string;
}

/** A request that graphql-js rejected. */
export interface RefusedRequest {
  schema: GraphQLSchema;
  document: DocumentNode;
  now: Date;
  /** Errors that graphql-js found in the document. */
  literals: readonly LiteralError[];
  /** The operation to execute. Absent if the document is invalid: variables then have no values. */
  operation?: OperationDefinitionNode | undefined;
  variables: Readonly<Record<string, unknown>>;
  /** Errors that graphql-js found in variables, by the variable's name. */
  variableErrors: ReadonlyMap<string, readonly { readonly path: Path }[]>;
}

/** An argument, or a default value of a variable. */
interface Root {
  type: GraphQLInputType;
  name: string;
  /** Paths that graphql-js has reported, or whose values are unknown. */
  excluded: Path[];
}

/**
 * Returns at most `max` errors that the services' rules find in the arguments of a request that
 * graphql-js rejects, without those of graphql-js, and a final entry if a rule found more errors
 * than it listed. Sets the fields of the graphql-js errors.
 */
export function findInputErrors(request: RefusedRequest, max: number): FieldError[] {
  return new InputCheck(request, max).run();
}

class InputCheck {
  private readonly errors = new Map<string, FieldError>();
  /** Whether a rule found more errors than it listed. */
  private hasOthers = false;
  private readonly definitions: ReadonlyMap<string, VariableDefinitionNode>;
  /** Variables with their type and field. Each is checked once per field. */
  private readonly checkedVariables = new Set<string>();
  private readonly literalErrors: ReadonlyMap<ASTNode, LiteralError[]>;

  constructor(
    private readonly request: RefusedRequest,
    private readonly max: number,
  ) {
    const { operation, literals } = request;
    this.definitions = new Map(
      operation?.variableDefinitions?.map((definition) => [
        definition.variable.name.value,
        definition,
      ]),
    );
    this.literalErrors = Map.groupBy(literals, ({ node }) => node);
  }

  run(): FieldError[] {
    const { schema, document, operation } = this.request;
    const types = new TypeInfo(schema);
    visit(
      document,
      visitWithTypeInfo(types, {
        OperationDefinition: (node) => (operation && node !== operation ? false : undefined),
        VariableDefinition: ({ type, variable, defaultValue }) => {
          const known = typeFromAST(schema, type);
          if (!operation && defaultValue && isInputType(known))
            this.checkArgument(known, variable.name.value, defaultValue);
          return false;
        },
        Field: (node) => this.locateAbsent(node),
        Directive: (node) => this.locateAbsent(node),
        Argument: ({ name, value }) => {
          const type = types.getArgument()?.type;
          if (type) this.checkArgument(type, name.value, value);
          return false;
        },
      }),
    );
    return [...this.errors.values(), ...(this.hasOthers ? [TOO_MANY_ERRORS] : [])];
  }

  // Sets the field of a missing argument.
  private locateAbsent(node: ASTNode): void {
    for (const error of this.literalErrors.get(node) ?? [])
      if (error.member !== undefined) error.field = error.member;
  }

  private checkArgument(type: GraphQLInputType, name: string, node: ValueNode): void {
    const root: Root = { type, name, excluded: [] };
    // Also sets the fields of graphql-js errors, so it runs even if the maximum is reached.
    const value = this.read(type, node, [], root);
    if (this.errors.size >= this.max) return;
    for (const { path, error } of this.check(type, value, [])) {
      if (error.type === TOO_MANY_ERRORS.type) this.hasOthers = true;
      if (
        error.type === TOO_MANY_ERRORS.type ||
        root.excluded.some((excluded) => isWithin(path, excluded))
      )
        continue;
      const field = fieldPathIn(root, path);
      // Equal errors of equal fields are one error.
      this.errors.set(`${field} ${error.message}`, { ...error, field });
      if (this.errors.size >= this.max) return;
    }
  }

  /** Returns the value of a literal as the services would get it. */
  private read(type: GraphQLInputType, node: ValueNode, path: Path, root: Root): unknown {
    if (isNonNullType(type)) return this.read(type.ofType, node, path, root);
    if (node.kind === Kind.VARIABLE) return this.readVariable(type, node.name.value, path, root);
    if (isListType(type) && node.kind !== Kind.NULL) {
      const items = node.kind === Kind.LIST ? node.values : [node];
      return items
        .slice(0, MAX_ITEMS)
        .map((item, index) => this.read(type.ofType, item, [...path, index], root));
    }
    this.locateLiteralErrors(node, path, root);
    if (node.kind === Kind.NULL) return null;
    if (isInputObjectType(type) && node.kind === Kind.OBJECT)
      return this.readObject(type, node, path, root);
    return isLeafType(type) ? parseLeaf(type, readLiteral(node)) : readLiteral(node);
  }

  private readObject(
    type: GraphQLInputObjectType,
    { fields }: ObjectValueNode,
    path: Path,
    root: Root,
  ): Record<string, unknown> {
    const known = type.getFields();
    const members: [string, unknown][] = [];
    for (const node of fields) {
      const { value: name } = node.name;
      const memberPath = [...path, name];
      this.locateLiteralErrors(node, memberPath, root);
      const field = Object.hasOwn(known, name) ? known[name] : undefined;
      if (field) members.push([name, this.read(field.type, node.value, memberPath, root)]);
    }
    return Object.fromEntries(members);
  }

  private readVariable(type: GraphQLInputType, name: string, path: Path, root: Root): unknown {
    const definition = this.definitions.get(name);
    const key = `${name} ${String(type)} ${fieldPathIn(root, path)}`;
    if (!definition || this.checkedVariables.has(key)) {
      root.excluded.push(path);
      return undefined;
    }
    this.checkedVariables.add(key);
    const { variables, variableErrors } = this.request;
    for (const error of variableErrors.get(name) ?? [])
      root.excluded.push([...path, ...error.path]);
    if (Object.hasOwn(variables, name)) return coerce(type, variables[name]);
    return definition.defaultValue && this.read(type, definition.defaultValue, path, root);
  }

  private locateLiteralErrors(node: ASTNode, path: Path, root: Root): void {
    for (const error of this.literalErrors.get(node) ?? []) {
      const memberPath = error.member === undefined ? path : [...path, error.member];
      error.field = fieldPathIn(root, memberPath);
      root.excluded.push(memberPath);
    }
  }

  private *check(
    type: GraphQLInputType,
    value: unknown,
    path: Path,
  ): Generator<{ path: Path; error: FieldError }> {
    if (isNonNullType(type)) return yield* this.check(type.ofType, value, path);
    if (value == null) return undefined;
    const schema = this.schemaOf(type);
    if (schema) {
      for (const error of fieldErrorsOf(schema, value))
        yield { path: [...path, ...(error.field ? error.field.split('.') : [])], error };
    } else if (isListType(type)) {
      for (const [index, item] of (value as unknown[]).entries())
        yield* this.check(type.ofType, item, [...path, index]);
    } else if (isInputObjectType(type)) {
      const members = value as Record<string, unknown>;
      for (const field of Object.values(type.getFields()))
        yield* this.check(field.type, members[field.name], [...path, field.name]);
    }
    return undefined;
  }

  private schemaOf(type: GraphQLInputType): z.ZodType | undefined {
    if (isInputObjectType(type)) {
      const schema = ruleOf(type)?.schema;
      return typeof schema === 'function' ? schema(this.request.now) : schema;
    }
    const schema = isLeafType(type) ? type.extensions[RULE] : undefined;
    return schema instanceof z.ZodType ? schema : undefined;
  }
}

/** Returns the value of a variable as the services would get it. */
function coerce(type: GraphQLInputType, value: unknown): unknown {
  if (isNonNullType(type)) return coerce(type.ofType, value);
  if (value == null) return value;
  if (isListType(type)) {
    const items = Array.isArray(value) ? value.slice(0, MAX_ITEMS) : [value];
    return items.map((item) => coerce(type.ofType, item));
  }
  if (isLeafType(type)) return parseLeaf(type, value);
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  const given = value as Record<string, unknown>;
  return Object.fromEntries(
    Object.values(type.getFields()).map((field) => [
      field.name,
      coerce(field.type, given[field.name]),
    ]),
  );
}

/** Returns the path with index 0 for each item that is given without its list. */
export function withItemIndexes(type: GraphQLInputType, value: unknown, path: Path): Path {
  if (isNonNullType(type)) return withItemIndexes(type.ofType, value, path);
  if (value == null) return path;
  const [part, ...rest] = path;
  if (isListType(type)) {
    if (!Array.isArray(value)) return [0, ...withItemIndexes(type.ofType, value, path)];
    return typeof part === 'number'
      ? [part, ...withItemIndexes(type.ofType, value[part], rest)]
      : path;
  }
  const field =
    isInputObjectType(type) && typeof part === 'string' ? type.getFields()[part] : undefined;
  return field
    ? [
        field.name,
        ...withItemIndexes(field.type, (value as Record<string, unknown>)[field.name], rest),
      ]
    : path;
}

// A value that the scalar rejects is kept: the rule rejects it, too.
function parseLeaf(type: GraphQLLeafType, value: unknown): unknown {
  try {
    return type.parseValue(value);
  } catch {
    return value;
  }
}

function fieldErrorsOf(schema: z.ZodType, value: unknown): readonly FieldError[] {
  try {
    check(schema, value);
    return [];
  } catch (error) {
    if (error instanceof DomainError) return error.fields;
    throw error;
  }
}

/** Returns the services' rule for the input type, without its list and non-null wrappers. */
export function ruleOf(type: GraphQLInputType): InputRule | undefined {
  const named = getNamedType(type);
  // Only the decorator sets this extension.
  return isInputObjectType(named) ? (named.extensions[RULE] as InputRule | undefined) : undefined;
}

function fieldPathIn({ type, name }: Root, path: Path): string {
  return fieldPath(name, path, ruleOf(type)?.under);
}

function isWithin(path: Path, above: Path): boolean {
  return above.every((part, index) => String(part) === String(path[index]));
}
