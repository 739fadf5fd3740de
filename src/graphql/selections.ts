import {
  Kind,
  type DocumentNode,
  type FragmentDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql';

/** Returns the fragments of a document by name. */
export function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  return new Map(
    definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
}

/**
 * Yields the selections of an object, and those in its fragments, in order. As in execution
 * (GraphQL, 6.3.2), a fragment is entered once: not again if its name is in `visited`.
 */
export function* selectionsIn(
  { selections }: SelectionSetNode,
  fragmentOf: (name: string) => FragmentDefinitionNode | null | undefined,
  visited = new Set<string>(),
): Generator<SelectionNode, void> {
  for (const part of selections) {
    yield part;
    if (part.kind === Kind.INLINE_FRAGMENT)
      yield* selectionsIn(part.selectionSet, fragmentOf, visited);
    if (part.kind !== Kind.FRAGMENT_SPREAD || visited.has(part.name.value)) continue;
    visited.add(part.name.value);
    const fragment = fragmentOf(part.name.value);
    if (fragment) yield* selectionsIn(fragment.selectionSet, fragmentOf, visited);
  }
}
