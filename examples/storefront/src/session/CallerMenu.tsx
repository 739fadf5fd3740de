import { Link, NavLink } from 'react-router';
import { useStore } from '../ui/store.ts';
import { signedIn } from './credentials.ts';
import { SignOutButton } from './SignOutButton.tsx';
import { useViewer } from './viewer.ts';

/** The signed-in user, and links to sign in or out. */
export function CallerMenu() {
  const isSignedIn = useStore(signedIn);
  const viewer = useViewer();
  if (!isSignedIn) {
    return (
      <div className="caller-menu">
        <Link to="/sign-in">Sign in</Link>
      </div>
    );
  }
  return (
    <div className="caller-menu">
      <NavLink to="/account">{viewer?.fullName ?? viewer?.username ?? 'Account'}</NavLink>
      <SignOutButton />
    </div>
  );
}
