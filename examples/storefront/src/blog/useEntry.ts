import { useQuery } from '@apollo/client/react';
import { graphql } from '../gql/index.ts';
import { useViewer } from '../session/viewer.ts';

const EntryDocument = graphql(`
  query Entry($id: ID!) {
    node(id: $id) {
      __typename
      id
      ... on BlogEntry {
        title
        body
        published
        creator {
          id
        }
        ...EntryByline
      }
    }
  }
`);

/** An entry by id, and whether the viewer created it; null if there is none for the viewer. */
export function useEntry(id: string) {
  const viewer = useViewer();
  const { data, error, refetch } = useQuery(EntryDocument, { variables: { id } });
  const node = data?.node;
  const entry = data && (node?.__typename === 'BlogEntry' ? node : null);
  return { entry, isOwn: viewer !== undefined && viewer.id === entry?.creator.id, error, refetch };
}
