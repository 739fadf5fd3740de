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
import { check, OTHERS } from '../core/validation.ts';
import { fieldAt } from './errors.ts';

type Path = readonly (string | number)[];

/** Maximum number of items of a list that are looked at: no list that the services take is longer. */
const MAX_ITEMS = 101;

/** A mistake that graphql-js found in a document. */
export interface LiteralFault {
  node: ASTNode;
  /** The member of the node's value that is absent. */
  member?: string | undefined;
  /** Its place, once it is known. */
  field?: string;
}

/** What graphql-js refused. */
export interface RefusedRequest {
  schema: GraphQLSchema;
  document: DocumentNode;
  now: Date;
  /** The mistakes in the document that graphql-js found. */
  literals: readonly LiteralFault[];
  /** What is to be executed. Absent where the document is refused: its variables have no values then. */
  operation?: OperationDefinitionNode | undefined;
  variables: Readonly<Record<string, unknown>>;
  /** The mistakes that graphql-js found in a variable, by its name. */
  refusedIn: ReadonlyMap<string, readonly { readonly path: Path }[]>;
}

/** An argument, or the default value of a variable. */
interface Root {
  type: GraphQLInputType;
  name: string;
  /** Places of which graphql-js has told, or of which nothing is known. */
  settled: Path[];
}

/**
 * Returns at most so many mistakes that the rules of the services find in the arguments of a request that graphql-js refuses, without
 * those that graphql-js has found; then an entry that says so if a rule found more than it named. Notes the places of what graphql-js found.
 */
export function inputFaults(request: RefusedRequest, max: number): FieldError[] {
  return new InputCheck(request, max).run();
}

class InputCheck {
  private readonly found = new Map<string, FieldError>();
  /** Whether a rule found more than a refusal names. */
  private hasOthers = false;
  private readonly definitions: ReadonlyMap<string, VariableDefinitionNode>;
  /** The variables that were looked at, and where they are used. Each is looked at once for each place. */
  private readonly seen = new Set<string>();
  private readonly faultsAt: ReadonlyMap<ASTNode, LiteralFault[]>;

  constructor(
    private readonly request: RefusedRequest,
    private readonly max: number,
  ) {
    const { operation, literals } = request;
    this.definitions = new Map(operation?.variableDefinitions?.map((definition) => [definition.variable.name.value, definition]));
    this.faultsAt = Map.groupBy(literals, ({ node }) => node);
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
          if (!operation && defaultValue && isInputType(known)) this.look(known, variable.name.value, defaultValue);
          return false;
        },
        Field: (node) => this.noteAbsent(node),
        Directive: (node) => this.noteAbsent(node),
        Argument: ({ name, value }) => {
          const type = types.getArgument()?.type;
          if (type) this.look(type, name.value, value);
          return false;
        },
      }),
    );
    return [...this.found.values(), ...(this.hasOthers ? [OTHERS] : [])];
  }

  // An argument that is absent.
  private noteAbsent(node: ASTNode): void {
    for (const fault of this.faultsAt.get(node) ?? []) if (fault.member !== undefined) fault.field = fault.member;
  }

  private look(type: GraphQLInputType, name: string, node: ValueNode): void {
    const root: Root = { type, name, settled: [] };
    // Read even if nothing more is to be found: the places of what graphql-js found are noted.
    const value = this.read(type, node, [], root);
    if (this.found.size >= this.max) return;
    for (const { path, fault } of this.check(type, value, [])) {
      if (fault.type === OTHERS.type) this.hasOthers = true;
      if (fault.type === OTHERS.type || root.settled.some((settled) => isWithin(path, settled))) continue;
      const field = placeIn(root, path);
      // What is alike in several places cannot be told apart.
      this.found.set(`${field} ${fault.message}`, { ...fault, field });
      if (this.found.size >= this.max) return;
    }
  }

  /** Returns the value of a literal as the services would have it. */
  private read(type: GraphQLInputType, node: ValueNode, path: Path, root: Root): unknown {
    if (isNonNullType(type)) return this.read(type.ofType, node, path, root);
    if (node.kind === Kind.VARIABLE) return this.readVariable(type, node.name.value, path, root);
    if (isListType(type) && node.kind !== Kind.NULL) {
      const items = node.kind === Kind.LIST ? node.values : [node];
      return items.slice(0, MAX_ITEMS).map((item, index) => this.read(type.ofType, item, [...path, index], root));
    }
    this.settle(node, path, root);
    if (node.kind === Kind.NULL) return null;
    if (isInputObjectType(type) && node.kind === Kind.OBJECT) return this.readObject(type, node, path, root);
    return isLeafType(type) ? parsed(type, readLiteral(node)) : readLiteral(node);
  }

  private readObject(type: GraphQLInputObjectType, { fields }: ObjectValueNode, path: Path, root: Root): Record<string, unknown> {
    const known = type.getFields();
    const members: [string, unknown][] = [];
    for (const node of fields) {
      const { value: name } = node.name;
      const place = [...path, name];
      this.settle(node, place, root);
      const field = Object.hasOwn(known, name) ? known[name] : undefined;
      if (field) members.push([name, this.read(field.type, node.value, place, root)]);
    }
    return Object.fromEntries(members);
  }

  private readVariable(type: GraphQLInputType, name: string, path: Path, root: Root): unknown {
    const definition = this.definitions.get(name);
    const key = `${name} ${String(type)} ${placeIn(root, path)}`;
    if (!definition || this.seen.has(key)) {
      root.settled.push(path);
      return undefined;
    }
    this.seen.add(key);
    const { variables, refusedIn } = this.request;
    for (const fault of refusedIn.get(name) ?? []) root.settled.push([...path, ...fault.path]);
    if (Object.hasOwn(variables, name)) return coerced(type, variables[name]);
    return definition.defaultValue && this.read(type, definition.defaultValue, path, root);
  }

  private settle(node: ASTNode, path: Path, root: Root): void {
    for (const fault of this.faultsAt.get(node) ?? []) {
      const place = fault.member === undefined ? path : [...path, fault.member];
      fault.field = placeIn(root, place);
      root.settled.push(place);
    }
  }

  private *check(type: GraphQLInputType, value: unknown, path: Path): Generator<{ path: Path; fault: FieldError }> {
    if (isNonNullType(type)) return yield* this.check(type.ofType, value, path);
    if (value == null) return undefined;
    const schema = this.schemaOf(type);
    if (schema) {
      for (const fault of faultsOf(schema, value)) yield { path: [...path, ...(fault.field ? fault.field.split('.') : [])], fault };
    } else if (isListType(type)) {
      for (const [index, item] of (value as unknown[]).entries()) yield* this.check(type.ofType, item, [...path, index]);
    } else if (isInputObjectType(type)) {
      const members = value as Record<string, unknown>;
      for (const field of Object.values(type.getFields())) yield* this.check(field.type, members[field.name], [...path, field.name]);
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

/** Returns the value of a variable as the services would have it. */
function coerced(type: GraphQLInputType, value: unknown): unknown {
  if (isNonNullType(type)) return coerced(type.ofType, value);
  if (value == null) return value;
  if (isListType(type)) {
    const items = Array.isArray(value) ? value.slice(0, MAX_ITEMS) : [value];
    return items.map((item) => coerced(type.ofType, item));
  }
  if (isLeafType(type)) return parsed(type, value);
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  const given = value as Record<string, unknown>;
  return Object.fromEntries(Object.values(type.getFields()).map((field) => [field.name, coerced(field.type, given[field.name])]));
}

/** Returns the path with the index of each item that is given without its list, as the services would have it. */
export function indexed(type: GraphQLInputType, value: unknown, path: Path): Path {
  if (isNonNullType(type)) return indexed(type.ofType, value, path);
  if (value == null) return path;
  const [part, ...rest] = path;
  if (isListType(type)) {
    if (!Array.isArray(value)) return [0, ...indexed(type.ofType, value, path)];
    return typeof part === 'number' ? [part, ...indexed(type.ofType, value[part], rest)] : path;
  }
  const field = isInputObjectType(type) && typeof part === 'string' ? type.getFields()[part] : undefined;
  return field ? [field.name, ...indexed(field.type, (value as Record<string, unknown>)[field.name], rest)] : path;
}

// What a scalar refuses is refused by the rule, too.
function parsed(type: GraphQLLeafType, value: unknown): unknown {
  try {
    return type.parseValue(value);
  } catch {
    return value;
  }
}

function faultsOf(schema: z.ZodType, value: unknown): readonly FieldError[] {
  try {
    check(schema, value);
    return [];
  } catch (error) {
    if (error instanceof DomainError) return error.fields;
    throw error;
  }
}

/** The rule of the input type in it, if the services have one. */
export function ruleOf(type: GraphQLInputType): InputRule | undefined {
  const named = getNamedType(type);
  // Nothing but the decorator sets it.
  return isInputObjectType(named) ? (named.extensions[RULE] as InputRule | undefined) : undefined;
}

function placeIn({ type, name }: Root, path: Path): string {
  return fieldAt(name, path, ruleOf(type)?.under);
}

function isWithin(path: Path, above: Path): boolean {
  return above.every((part, index) => String(part) === String(path[index]));
}
