import { Navigate, Outlet, useLocation } from 'react-router';
import { useStore } from '../ui/store.ts';
import { signedIn } from './credentials.ts';

/** Lets pages below it show for the signed in only; others are asked to sign in, and come back. */
export function RequireSession() {
  const isSignedIn = useStore(signedIn);
  const { pathname, search } = useLocation();
  if (isSignedIn) return <Outlet />;
  return <Navigate to="/sign-in" replace state={{ from: pathname + search }} />;
}
