import { useApolloClient } from '@apollo/client/react';
import { useNavigate } from 'react-router';
import { forgetCaller } from '../apollo/cache.ts';
import { showNotice } from '../ui/notices.ts';
import { dropCredentials, signedIn } from './credentials.ts';

/** Forgets the signed-in user, and opens a page, by default the catalogue, with a notice. */
export function useLeave(): (notice: string, page?: string) => Promise<void> {
  const navigate = useNavigate();
  const { cache } = useApolloClient();
  return async (notice, page = '/') => {
    dropCredentials();
    // Leaves protected pages first, because they would redirect to sign in.
    await navigate('/', { flushSync: true });
    signedIn.set(false);
    forgetCaller(cache);
    if (page !== '/') await navigate(page);
    showNotice(notice, page);
  };
}
