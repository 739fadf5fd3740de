import { showBar } from './bar.ts';
import './usage.css';
import { byId, element } from './dom.ts';
import { measure } from './measured.ts';
import { currentSession, watchSession } from './session.ts';

const QUERY = `query Usage($endpoint: String!) {
  restUsage(endpoint: $endpoint, first: 100) {
    endpoint client username isDeprecated calls lastAt
  }
}`;

/** Calls of an endpoint by a client. */
interface Line {
  endpoint: string;
  client: string;
  username: string | null;
  isDeprecated: boolean;
  calls: number;
  lastAt: string;
}

interface Response {
  data?: { restUsage: Line[] } | null;
  errors?: { message: string; extensions: { code: string } }[];
}

const message = byId('message');
const filter = byId('endpoint') as HTMLInputElement;
/** Number of the request that may show its result. */
let latest = 0;

filter.value = new URLSearchParams(location.search).get('endpoint') ?? '';
filter.addEventListener('change', () => {
  const query = new URLSearchParams({ endpoint: filter.value });
  history.replaceState(null, '', filter.value === '' ? location.pathname : `?${query}`);
  void show();
});
await showBar();
let username: string | undefined | null = null;
watchSession((session) => {
  if (session?.username === username) return;
  username = session?.username;
  void show();
});

/** Requests the lines, and shows them. */
async function show(): Promise<void> {
  const turn = ++latest;
  const area = byId('lines');
  area.setAttribute('aria-busy', 'true');
  const response = await request().catch(String);
  if (turn !== latest) return;
  area.removeAttribute('aria-busy');
  const { data, errors: [error] = [] } = typeof response === 'string' ? {} : response;
  const isForbidden = error?.extensions.code === 'FORBIDDEN';
  const isSignedOut = error?.extensions.code === 'UNAUTHENTICATED';
  byId('usage').hidden = !data;
  byId('sign-in').hidden = !isForbidden && !isSignedOut;
  if (isSignedOut) message.textContent = 'You are not signed in.';
  else if (isForbidden)
    message.textContent = `${currentSession()?.username ?? 'This user'} does not have the scope users:read.`;
  else if (!data)
    message.textContent = typeof response === 'string' ? response : (error?.message ?? '');
  else {
    message.textContent = '';
    const { restUsage: lines } = data;
    area.replaceChildren(lines.length > 0 ? table(lines) : element('p', {}, 'No calls.'));
  }
  if (!data) area.replaceChildren();
}

async function request(): Promise<Response> {
  const { json, status } = await measure({
    method: 'POST',
    path: '/graphql',
    headers: { Accept: 'application/json', 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: QUERY, variables: { endpoint: filter.value } }),
    asUser: true,
  });
  if (typeof json !== 'object' || json === null)
    throw new Error(`The server responded with ${status}.`);
  return json;
}

// On a phone, the styles show rows as blocks. The roles keep the table for screen readers.
function table(lines: readonly Line[]): HTMLElement {
  const head = ['Endpoint', 'Client', 'Calls', 'Last call'];
  const row = (...cells: HTMLElement[]) => element('tr', { role: 'row' }, ...cells);
  return element(
    'table',
    { role: 'table', className: 'calls' },
    element(
      'thead',
      { role: 'rowgroup' },
      row(...head.map((name) => element('th', { scope: 'col', role: 'columnheader' }, name))),
    ),
    element('tbody', { role: 'rowgroup' }, ...lines.map((line) => row(...cellsOf(line)))),
  );
}

function cellsOf({ endpoint, client, username: user, isDeprecated, ...line }: Line): HTMLElement[] {
  const cell = (className: string, ...content: (Node | string)[]) =>
    element('td', { role: 'cell', className }, ...content);
  return [
    element(
      'th',
      { scope: 'row', role: 'rowheader' },
      element('code', {}, endpoint),
      ...(isDeprecated ? [' ', element('span', { className: 'deprecated' }, 'deprecated')] : []),
    ),
    cell(
      'client',
      element('span', { className: 'name' }, client),
      ...(user === null ? [] : [element('span', { className: 'users' }, `as ${user}`)]),
    ),
    cell('number', line.calls.toLocaleString('en')),
    cell('last', element('time', { dateTime: line.lastAt }, line.lastAt.slice(0, 10))),
  ];
}
