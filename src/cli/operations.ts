import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  GraphQLError,
  Kind,
  parse,
  Source,
  visit,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type OperationDefinitionNode,
} from 'graphql';
import { DomainError } from '../core/errors.ts';
import { refusalOfFile } from '../core/file-error.ts';

/** An operation of a client, with the fragments that it spreads. */
export interface Operation {
  name: string;
  /** `query` or `mutation`. */
  type: string;
  /** The operation, then its fragments in the order of their names. */
  document: DocumentNode;
  /** Where it stands: file and line. */
  at: string;
}

type Definition = OperationDefinitionNode | FragmentDefinitionNode;

const TYPENAME: FieldNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: '__typename' } };

/**
 * The operations in these files, and in the .graphql and .gql files of these directories, in the order of their names. Fragments are
 * found in whichever file they stand. With `typename`, `__typename` is added as Apollo Client does. Throws with file and line what is
 * wrong.
 */
export function readOperations(paths: readonly string[], typename: boolean): Operation[] {
  const definitions = [...new Set(paths.flatMap(filesIn))].flatMap(definitionsIn);
  refuse(twice(definitions));
  const fragments = new Map(definitions.filter(isFragment).map((fragment) => [fragment.name.value, fragment]));
  const operations = definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  if (operations.length === 0) throw new DomainError('BAD_USER_INPUT', `There is no operation in ${paths.join(', ')}`);
  refuse(operations.filter(({ name }) => !name).map((operation) => `${placeOf(operation)}: The operation needs a name`));
  return operations
    .map((operation): Operation => {
      const document: DocumentNode = { kind: Kind.DOCUMENT, definitions: [operation, ...spreadBy(operation, fragments)] };
      return {
        name: nameOf(operation),
        type: operation.operation,
        document: typename ? withTypename(document) : document,
        at: placeOf(operation),
      };
    })
    .toSorted(byName(({ name }) => name));
}

function filesIn(path: string): string[] {
  const found = orRefuse(path, () => statSync(path));
  if (!found.isDirectory()) return [path];
  return orRefuse(path, () => readdirSync(path, { withFileTypes: true }))
    .filter((entry) => (entry.isDirectory() ? !/^(\.|node_modules$)/.test(entry.name) : /\.(graphql|gql)$/.test(entry.name)))
    .map(({ name }) => join(path, name))
    .toSorted()
    .flatMap(filesIn);
}

function definitionsIn(file: string): Definition[] {
  const text = orRefuse(file, () => readFileSync(file, 'utf8'));
  // A file of remarks is no mistake.
  if (text.replace(/#.*/g, '').trim() === '') return [];
  try {
    const { definitions } = parse(new Source(text, file));
    return definitions.map((definition) => {
      if (definition.kind === Kind.OPERATION_DEFINITION || definition.kind === Kind.FRAGMENT_DEFINITION) return definition;
      throw new GraphQLError('There is something here that is no operation and no fragment', { nodes: definition });
    });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    throw new DomainError('BAD_USER_INPUT', `${file}:${error.locations?.[0]?.line ?? 1}: ${error.message}`);
  }
}

function orRefuse<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new DomainError('BAD_USER_INPUT', `${path} cannot be read (${refusalOfFile(error)})`);
  }
}

// Operations among themselves, and fragments among themselves: an id by name, or a spread, would have two meanings.
function twice(definitions: readonly Definition[]): string[] {
  const first = new Map<string, Definition>();
  return definitions.flatMap((definition) => {
    const noun = isFragment(definition) ? 'fragment' : 'operation';
    const name = nameOf(definition);
    const before = first.get(`${noun} ${name}`);
    if (!before) first.set(`${noun} ${name}`, definition);
    return before && name !== '' ? [`${placeOf(definition)}: The ${noun} ${name} stands at ${placeOf(before)}, too`] : [];
  });
}

function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new DomainError('BAD_USER_INPUT', problems.join('\n'));
}

// Those that there are none of are told by validation.
function spreadBy(operation: OperationDefinitionNode, fragments: ReadonlyMap<string, FragmentDefinitionNode>): FragmentDefinitionNode[] {
  const found = new Set<FragmentDefinitionNode>();
  const collect = (definition: Definition): void => {
    visit(definition, {
      FragmentSpread({ name }) {
        const fragment = fragments.get(name.value);
        if (!fragment || found.has(fragment)) return;
        found.add(fragment);
        collect(fragment);
      },
    });
  };
  collect(operation);
  return [...found].toSorted(byName(nameOf));
}

// Not at the root, and not where something of introspection is asked for already.
function withTypename(document: DocumentNode): DocumentNode {
  return visit(document, {
    SelectionSet(set, _key, parent) {
      const isRoot = parent !== undefined && 'kind' in parent && parent.kind === Kind.OPERATION_DEFINITION;
      const hasOwn = set.selections.some((part) => part.kind === Kind.FIELD && part.name.value.startsWith('__'));
      return isRoot || hasOwn ? undefined : { ...set, selections: [...set.selections, TYPENAME] };
    },
  });
}

function placeOf({ loc }: Definition): string {
  return `${loc?.source.name ?? ''}:${loc?.startToken.line ?? 1}`;
}

function nameOf({ name }: Definition): string {
  return name?.value ?? '';
}

function isFragment(definition: Definition): definition is FragmentDefinitionNode {
  return definition.kind === Kind.FRAGMENT_DEFINITION;
}

// The same wherever it runs, unlike the order of a language.
function byName<T>(of: (value: T) => string): (a: T, b: T) => number {
  return (a, b) => (of(a) < of(b) ? -1 : Number(of(a) > of(b)));
}
