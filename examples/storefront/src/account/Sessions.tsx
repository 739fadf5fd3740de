import { useMutation } from '@apollo/client/react';
import { problemOf } from '../apollo/problem.ts';
import { type FragmentType, graphql, readFragment } from '../gql/index.ts';
import { useLeave } from '../session/useLeave.ts';
import { ConfirmButton } from '../ui/ConfirmButton.tsx';
import { showNotice } from '../ui/notices.ts';
import { SessionRow } from './SessionRow.tsx';

// A user has at most fifty sessions, which fit on one page.
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

/** Open sessions of the user, with buttons to end them. */
export function Sessions({ user }: { user: FragmentType<typeof SessionsFields> }) {
  const { sessions } = readFragment(SessionsFields, user);
  const leave = useLeave();
  const [logoutEverywhere] = useMutation(LogoutEverywhereDocument, {
    onCompleted: () => void leave('You are signed out everywhere.'),
    onError: (error) => showNotice(problemOf(error).message, '/account'),
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
        cancelLabel="Stay signed in"
        onConfirm={() => void logoutEverywhere()}
      />
    </section>
  );
}
