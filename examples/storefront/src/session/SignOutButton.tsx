import { useMutation } from '@apollo/client/react';
import { graphql } from '../gql/index.ts';
import { useLeave } from './useLeave.ts';

const LogoutDocument = graphql(`
  mutation Logout {
    logout {
      ended
    }
  }
`);

/** Ends the session. */
export function SignOutButton() {
  const [logout, { loading }] = useMutation(LogoutDocument);
  const leave = useLeave();

  const signOut = async () => {
    // Forgets the credentials in any case. If the request fails, the session expires.
    await logout().catch(() => undefined);
    await leave('You are signed out.');
  };

  return (
    <button type="button" className="quiet" aria-disabled={loading} onClick={() => void signOut()}>
      Sign out
    </button>
  );
}
