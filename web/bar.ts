import './bar.css';
import { byId, element } from './dom.ts';
import { checkSession, signIn, signOut, watchSession, type Session } from './session.ts';
import { settings } from './settings.ts';

/** Fills the part of the bar that says who is signed in, and signs in and out. */
export async function showBar(): Promise<void> {
  await checkSession();
  const account = element('div', { className: 'account' });
  // It stays in place, so that what comes into it is read out.
  const message = element('p', { className: 'message', role: 'alert' });
  byId('session').append(account, message);
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    const before = document.activeElement;
    message.textContent = '';
    account.inert = true;
    try {
      await work();
    } catch (error) {
      message.textContent = error instanceof Error ? error.message : String(error);
    }
    account.inert = false;
    // Who uses the keyboard goes on from where they were, or from what has taken its place.
    const next = before?.isConnected === true ? before : account.querySelector('button');
    if (next instanceof HTMLElement) next.focus();
  };
  watchSession((session) => account.replaceChildren(...(session ? signedIn(session, attempt) : signedOut(attempt))));
}

type Attempt = (work: () => Promise<void>) => Promise<void>;

function signedIn({ username }: Session, attempt: Attempt): Node[] {
  const button = element('button', { type: 'button', onclick: () => void attempt(signOut) }, 'Sign out');
  return [element('p', { className: 'who', role: 'status' }, 'Signed in as ', element('strong', {}, username)), button];
}

function signedOut(attempt: Attempt): Node[] {
  const buttons = settings.demoUsers.map(({ username, password }) =>
    element('button', { type: 'button', onclick: () => void attempt(() => signIn(username, password)) }, username),
  );
  if (buttons.length === 0) return [form(attempt)];
  const other = element('details', {}, element('summary', {}, 'other …'), form(attempt));
  return [element('p', { id: 'sign-in-as' }, 'Sign in as'), ...buttons, other];
}

function form(attempt: Attempt): HTMLFormElement {
  const username = element('input', { name: 'username', autocomplete: 'username', required: true, size: 12 });
  const password = element('input', { name: 'password', type: 'password', autocomplete: 'current-password', required: true, size: 12 });
  const made = element(
    'form',
    {},
    element('label', {}, 'Username ', username),
    element('label', {}, 'Password ', password),
    element('button', {}, 'Sign in'),
  );
  made.addEventListener('submit', (event) => {
    event.preventDefault();
    void attempt(() => signIn(username.value, password.value));
  });
  return made;
}
