import './bar.css';
import { byId, element } from './dom.ts';
import { checkSession, signIn, signOut, watchSession, type Session } from './session.ts';
import { settings } from './settings.ts';

/** Fills the part of the bar that shows the signed-in user, and signs in and out. */
export async function showBar(): Promise<void> {
  await checkSession();
  const account = element('div', { className: 'account' });
  const message = alertElement();
  byId('session').append(account, message);
  const attempt: Attempt = async (work, output = message) => {
    const before = document.activeElement;
    message.textContent = '';
    output.textContent = '';
    account.inert = true;
    const failure = await work().then(
      () => '',
      (error: unknown) => (error instanceof Error ? error.message : String(error)),
    );
    account.inert = false;
    output.textContent = failure;
    // Keeps the keyboard focus, or moves it to the element in its place.
    const next = before?.isConnected === true ? before : account.querySelector('button');
    if (next instanceof HTMLElement) next.focus();
  };
  // The session may have ended elsewhere while the reader was on another tab.
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') void checkSession();
  });
  let shown: string | undefined;
  watchSession((session, ended = '') => {
    message.textContent = ended;
    // A renewed session has the same username.
    if (session && session.username === shown) return;
    shown = session?.username;
    account.replaceChildren(...(session ? signedIn(session, attempt) : signedOut(attempt)));
  });
}

/** Runs the work and shows its error in this element, or beside the buttons. */
type Attempt = (work: () => Promise<void>, output?: HTMLElement) => Promise<void>;

// An alert is added before its text, so that screen readers announce the text.
function alertElement(): HTMLElement {
  return element('p', { className: 'message', role: 'alert' });
}

function signedIn({ username }: Session, attempt: Attempt): Node[] {
  const button = element(
    'button',
    { type: 'button', onclick: () => void attempt(signOut) },
    'Sign out',
  );
  return [
    element(
      'p',
      { className: 'who', role: 'status' },
      'Signed in as ',
      element('strong', {}, username),
    ),
    button,
  ];
}

function signedOut(attempt: Attempt): Node[] {
  const buttons = settings.demoUsers.map(({ username, password }) =>
    element(
      'button',
      { type: 'button', onclick: () => void attempt(() => signIn(username, password)) },
      username,
    ),
  );
  if (buttons.length === 0) return [form(attempt)];
  const other = element('details', {}, element('summary', {}, 'other …'), form(attempt));
  return [element('p', { id: 'sign-in-as' }, 'Sign in as'), ...buttons, other];
}

function form(attempt: Attempt): HTMLFormElement {
  const username = element('input', {
    name: 'username',
    autocomplete: 'username',
    required: true,
    size: 12,
  });
  const password = element('input', {
    name: 'password',
    type: 'password',
    autocomplete: 'current-password',
    required: true,
    size: 12,
  });
  const message = alertElement();
  const formElement = element(
    'form',
    {},
    element('label', {}, 'Username ', username),
    element('label', {}, 'Password ', password),
    element('button', {}, 'Sign in'),
    message,
  );
  const submit = async (): Promise<void> => {
    await attempt(() => signIn(username.value, password.value), message);
    password.focus();
    password.select();
  };
  formElement.addEventListener('submit', (event) => {
    event.preventDefault();
    void submit();
  });
  return formElement;
}
