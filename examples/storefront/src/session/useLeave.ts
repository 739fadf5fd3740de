import { useApolloClient } from '@apollo/client/react';
import { useNavigate } from 'react-router';
import { forgetCaller } from '../apollo/cache.ts';
import { tell } from '../ui/notices.ts';
import { dropCredentials, signedIn } from './credentials.ts';

/** Forgets who was signed in, and goes to the catalogue with a notice. */
export function useLeave(): (notice: string) => Promise<void> {
  const navigate = useNavigate();
  const { cache } = useApolloClient();
  return async (notice) => {
    dropCredentials();
    // First away from what only the signed in may see, which would ask to sign in again.
    await navigate('/', { flushSync: true });
    signedIn.set(false);
    forgetCaller(cache);
    tell(notice, '/');
  };
}
