import { useMutation } from '@apollo/client/react';
import { problemOf } from '../apollo/problem.ts';
import { type FragmentType, graphql, readFragment } from '../gql/index.ts';
import { useLeave } from '../session/useLeave.ts';
import { ConfirmButton } from '../ui/ConfirmButton.tsx';
import { tell } from '../ui/notices.ts';
import { SessionRow } from './SessionRow.tsx';

// The shop keeps fifty sessions of a user at most: they all are on one page.
const SessionsFields = graphql(`
  fragment Sessions on User {
    id
    sessions(first: 50) {
      edges {
        node {
          id
          ...SessionRow
        }
      }
    }
  }
`);

const LogoutEverywhereDocument = graphql(`
  mutation LogoutEverywhere {
    logoutEverywhere {
      ended
    }
  }
`);

/** Where the user is signed in, and how to end that. */
export function Sessions({ user }: { user: FragmentType<typeof SessionsFields> }) {
  const { sessions } = readFragment(SessionsFields, user);
  const leave = useLeave();
  const [logoutEverywhere] = useMutation(LogoutEverywhereDocument, {
    onCompleted: () => void leave('You are signed out everywhere.'),
    onError: (error) => tell(problemOf(error).message, '/account'),
  });

  return (
    <section className="panel" aria-labelledby="sessions">
      <h2 id="sessions">Open sessions</h2>
      <ul className="rows">
        {sessions.edges.map(({ node }) => (
          <SessionRow key={node.id} session={node} />
        ))}
      </ul>
      <ConfirmButton
        label="Sign out everywhere"
        question="Sign out everywhere? This ends all of your sessions, this one too."
        keep="Stay signed in"
        onConfirm={() => void logoutEverywhere()}
      />
    </section>
  );
}
