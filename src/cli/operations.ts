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
import { fileErrorCode } from '../core/file-error.ts';

/** An operation of a client, with its fragments. */
export interface Operation {
  name: string;
  /** `query` or `mutation`. */
  type: string;
  /** The operation, then its fragments by name. */
  document: DocumentNode;
  /** File and line. */
  at: string;
}

type Definition = OperationDefinitionNode | FragmentDefinitionNode;

const TYPENAME: FieldNode = { kind: Kind.FIELD, name: { kind: Kind.NAME, value: '__typename' } };

/**
 * Returns the operations in these files, and in the .graphql and .gql files of these directories,
 * by name. Fragments may be in any file. With `typename`, adds `__typename` as Apollo Client does.
 * Throws BAD_USER_INPUT with file and line.
 */
export function readOperations(paths: readonly string[], typename: boolean): Operation[] {
  const definitions = [...new Set(paths.flatMap(filesIn))].flatMap(definitionsIn);
  throwProblems(findDuplicates(definitions));
  const fragments = new Map(
    definitions.filter(isFragment).map((fragment) => [fragment.name.value, fragment]),
  );
  const operations = definitions.filter(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION,
  );
  if (operations.length === 0)
    throw new DomainError('BAD_USER_INPUT', `No operation found in ${paths.join(', ')}`);
  throwProblems(
    operations
      .filter(({ name }) => !name)
      .map((operation) => `${placeOf(operation)}: The operation must have a name`),
  );
  return operations
    .map((operation): Operation => {
      const document: DocumentNode = {
        kind: Kind.DOCUMENT,
        definitions: [operation, ...fragmentsOf(operation, fragments)],
      };
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
  const stats = readOrThrow(path, () => statSync(path));
  if (!stats.isDirectory()) return [path];
  return readOrThrow(path, () => readdirSync(path, { withFileTypes: true }))
    .filter((entry) =>
      entry.isDirectory()
        ? !/^(\.|node_modules$)/.test(entry.name)
        : /\.(graphql|gql)$/.test(entry.name),
    )
    .map(({ name }) => join(path, name))
    .toSorted()
    .flatMap(filesIn);
}

function definitionsIn(file: string): Definition[] {
  const text = readOrThrow(file, () => readFileSync(file, 'utf8'));
  // A file with only comments is valid.
  if (text.replace(/#.*/g, '').trim() === '') return [];
  try {
    const { definitions } = parse(new Source(text, file));
    return definitions.map((definition) => {
      if (
        definition.kind === Kind.OPERATION_DEFINITION ||
        definition.kind === Kind.FRAGMENT_DEFINITION
      )
        return definition;
      throw new GraphQLError('Only operations and fragments are allowed', {
        nodes: definition,
      });
    });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    throw new DomainError(
      'BAD_USER_INPUT',
      `${file}:${error.locations?.[0]?.line ?? 1}: ${error.message}`,
    );
  }
}

function readOrThrow<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new DomainError('BAD_USER_INPUT', `${path} cannot be read (${fileErrorCode(error)})`);
  }
}

// Operation names and fragment names must each be unique, so that references are unambiguous.
function findDuplicates(definitions: readonly Definition[]): string[] {
  const first = new Map<string, Definition>();
  return definitions.flatMap((definition) => {
    const noun = isFragment(definition) ? 'fragment' : 'operation';
    const name = nameOf(definition);
    const earlier = first.get(`${noun} ${name}`);
    if (!earlier) first.set(`${noun} ${name}`, definition);
    return earlier && name !== ''
      ? [`${placeOf(definition)}: The ${noun} ${name} is also defined at ${placeOf(earlier)}`]
      : [];
  });
}

function throwProblems(problems: readonly string[]): void {
  if (problems.length > 0) throw new DomainError('BAD_USER_INPUT', problems.join('\n'));
}

// Validation reports missing fragments.
function fragmentsOf(
  operation: OperationDefinitionNode,
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): FragmentDefinitionNode[] {
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

// Adds no `__typename` at the root, or to selections with an introspection field.
function withTypename(document: DocumentNode): DocumentNode {
  return visit(document, {
    SelectionSet(set, _key, parent) {
      const isRoot =
        parent !== undefined && 'kind' in parent && parent.kind === Kind.OPERATION_DEFINITION;
      const hasOwn = set.selections.some(
        (part) => part.kind === Kind.FIELD && part.name.value.startsWith('__'),
      );
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

// Compares code units, so that the order does not depend on the locale.
function byName<T>(of: (value: T) => string): (a: T, b: T) => number {
  return (a, b) => (of(a) < of(b) ? -1 : Number(of(a) > of(b)));
}
