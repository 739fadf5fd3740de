import { Navigate, Outlet, useLocation } from 'react-router';
import { useStore } from '../ui/store.ts';
import { signedIn } from './credentials.ts';

/** Shows the pages below it to signed-in users; redirects others to sign in, and back. */
export function RequireSession() {
  const isSignedIn = useStore(signedIn);
  const { pathname, search } = useLocation();
  if (isSignedIn) return <Outlet />;
  return <Navigate to="/sign-in" replace state={{ from: pathname + search }} />;
}
