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
    // This tab forgets its credentials in any case; what the shop did not hear of ends by itself.
    await logout().catch(() => undefined);
    await leave('You are signed out.');
  };

  return (
    <button type="button" className="quiet" aria-disabled={loading} onClick={() => void signOut()}>
      Sign out
    </button>
  );
}
