import { useQuery } from '@apollo/client/react';
import { graphql, readFragment } from '../gql/index.ts';
import { useStore } from '../ui/store.ts';
import { signedIn } from './credentials.ts';

const ViewerFields = graphql(`
  fragment Viewer on User {
    id
    username
    fullName
    scopes
  }
`);

/** The signed-in user. */
export const ViewerDocument = graphql(`
  query Viewer {
    me {
      id
      ...Viewer
    }
  }
`);

/** The signed-in user; undefined while it is loading. */
export function useViewer() {
  const isSignedIn = useStore(signedIn);
  const { data } = useQuery(ViewerDocument, { skip: !isSignedIn });
  return (isSignedIn && readFragment(ViewerFields, data?.me)) || undefined;
}
