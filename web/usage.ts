import { showBar } from './bar.ts';
import './usage.css';
import { byId, element } from './dom.ts';
import { measure } from './measured.ts';
import { currentSession, watchSession } from './session.ts';

/** Number of lines that are requested at once. */
const PAGE = 50;
/** Maximum number of clients that are listed as left on deprecated paths. */
const MAX_LEFT = 10;
/** Height of a graph in its own units; a day is 1 wide, without a gap. */
const HEIGHT = 20;
const DAY_MS = 86_400_000;
/** Number of days of a trend. */
const TREND_DAYS = 14;

const QUERY = `query Usage($deprecatedOnly: Boolean!, $first: Int!, $skip: Int!) {
  calls: restUsage(deprecatedOnly: $deprecatedOnly, first: $first, skip: $skip) {
    totalCount firstDay
    lines { endpoint client deprecated usernames calls days recentCalls earlierCalls trend lastAt }
  }
  left: restUsage(by: CLIENT, deprecatedOnly: true, first: ${MAX_LEFT}) {
    deprecatedPaths activeCount
    lines { client usernames recentCalls earlierCalls trend }
  }
}`;

/** Calls of a client. */
interface Left {
  client: string;
  usernames: string[];
  recentCalls: number;
  earlierCalls: number;
  trend: 'GROWING' | 'STEADY' | 'DWINDLING' | 'GONE';
}

/** Calls of an endpoint by a client. */
interface Line extends Left {
  endpoint: string;
  deprecated: boolean;
  calls: number;
  days: number[];
  lastAt: string;
}

interface Usage {
  calls: { totalCount: number; firstDay: string; lines: Line[] };
  left: { deprecatedPaths: string[]; activeCount: number; lines: Left[] };
}

interface Response {
  data?: Usage | null;
  errors?: { message: string; extensions: { code: string } }[];
}

const message = byId('message');
const onlyDeprecated = byId('deprecated') as HTMLInputElement;
const more = byId('more');
/** Number of the request that may show its result. */
let latest = 0;
let shown: Line[] = [];

onlyDeprecated.checked = new URLSearchParams(location.search).has('deprecated');
onlyDeprecated.addEventListener('change', () => {
  history.replaceState(null, '', onlyDeprecated.checked ? '?deprecated' : location.pathname);
  void show();
});
more.addEventListener('click', () => void show(shown.length));
await showBar();
let username: string | undefined | null = null;
watchSession((session) => {
  if (session?.username === username) return;
  username = session?.username;
  void show();
});

/** Requests the lines after the first `skip` ones, and shows them after those. */
async function show(skip = 0): Promise<void> {
  const turn = ++latest;
  const area = byId('lines');
  area.setAttribute('aria-busy', 'true');
  const response = await request(skip).catch(String);
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
  else showUsage(data, skip);
}

async function request(skip: number): Promise<Response> {
  const variables = { deprecatedOnly: onlyDeprecated.checked, first: PAGE, skip };
  const { json, status } = await measure({
    method: 'POST',
    path: '/graphql',
    headers: { Accept: 'application/json', 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: QUERY, variables }),
    asUser: true,
  });
  if (typeof json !== 'object' || json === null)
    throw new Error(`The server responded with ${status}.`);
  return json;
}

function showUsage({ calls: { totalCount, firstDay, lines }, left }: Usage, skip: number): void {
  shown = skip === 0 ? lines : [...shown, ...lines];
  message.textContent = '';
  byId('left').replaceChildren(...leftView(left));
  const none = onlyDeprecated.checked ? 'No calls of deprecated paths.' : 'No calls yet.';
  byId('lines').replaceChildren(shown.length > 0 ? table(shown, firstDay) : element('p', {}, none));
  more.hidden = shown.length >= totalCount;
  more.textContent = `Show more (${number(shown.length)} of ${number(totalCount)})`;
}

function leftView({ deprecatedPaths, activeCount, lines }: Usage['left']): Node[] {
  if (deprecatedPaths.length === 0)
    return [element('p', {}, 'No path is deprecated. ', code('V1_DEPRECATION'), ' sets the date.')];
  const paths = deprecatedPaths.join(' and ');
  if (activeCount === 0)
    return [
      element('p', {}, `None: no client has called ${paths} in the last ${TREND_DAYS} days.`),
    ];
  const clients = activeCount === 1 ? '1 client has' : `${number(activeCount)} clients have`;
  const left = lines.filter(({ trend }) => trend !== 'GONE');
  return [
    element('p', {}, `${clients} called ${paths} in the last ${TREND_DAYS} days:`),
    element(
      'ul',
      {},
      ...left.map((line) => element('li', {}, ...clientView(line), trendView(line))),
    ),
    ...(activeCount > left.length
      ? [element('p', {}, `and ${number(activeCount - left.length)} others`)]
      : []),
  ];
}

// On a phone, the styles show rows as blocks. The roles keep the table for screen readers.
function table(lines: readonly Line[], firstDay: string): HTMLElement {
  const head = ['Endpoint', 'Client', 'Calls per day', 'Calls', 'Last call', 'Trend'];
  const row = (...cells: HTMLElement[]) => element('tr', { role: 'row' }, ...cells);
  return element(
    'table',
    { role: 'table', className: 'calls' },
    element(
      'thead',
      { role: 'rowgroup' },
      row(...head.map((name) => element('th', { scope: 'col', role: 'columnheader' }, name))),
    ),
    element('tbody', { role: 'rowgroup' }, ...lines.map((line) => row(...cellsOf(line, firstDay)))),
  );
}

function cellsOf(line: Line, firstDay: string): HTMLElement[] {
  const { endpoint, deprecated, calls, lastAt } = line;
  const cell = (className: string, ...content: (Node | string)[]) =>
    element('td', { role: 'cell', className }, ...content);
  return [
    element(
      'th',
      { scope: 'row', role: 'rowheader' },
      code(endpoint),
      ...(deprecated ? [' ', element('span', { className: 'deprecated' }, 'deprecated')] : []),
    ),
    cell('client', ...clientView(line)),
    cell('graph', graph(line, firstDay)),
    cell('number', number(calls)),
    cell('last', element('time', { dateTime: lastAt, title: lastAt }, lastAt.slice(0, 10))),
    cell('trend', trendView(line)),
  ];
}

function clientView({ client, usernames }: Left): HTMLElement[] {
  return [
    element('span', { className: 'name' }, client),
    ...(usernames.length > 0
      ? [element('span', { className: 'users' }, `as ${usernames.join(', ')}`)]
      : []),
  ];
}

function trendView({ trend, earlierCalls, recentCalls }: Left): HTMLElement {
  return element(
    'span',
    { className: `trend-word ${trend.toLowerCase()}` },
    trend.charAt(0) + trend.slice(1).toLowerCase(),
    element('small', {}, ` ${number(earlierCalls)} → ${number(recentCalls)}`),
  );
}

/** One bar per day, up to the day with the most calls. */
function graph({ days, calls }: Line, firstDay: string): SVGElement {
  const most = Math.max(...days);
  const busiest = days.lastIndexOf(most);
  const bars = (from: number, to: number, className: string): SVGElement => {
    const path = days.slice(from, to).map((count, index) => {
      // A day with calls is always visible.
      const height = count === 0 ? 0 : Math.max(1, (HEIGHT * count) / most);
      return `M${from + index} ${HEIGHT}v-${height.toFixed(2)}h.8v${height.toFixed(2)}z`;
    });
    return svg('path', { class: className, d: path.join('') });
  };
  const [earlier, recent] = [days.length - 2 * TREND_DAYS, days.length - TREND_DAYS];
  const title = svg('title', {});
  const day = new Date(Date.parse(firstDay) + busiest * DAY_MS);
  title.textContent = `${number(calls)} calls in ${days.length} days, most on ${day.toISOString().slice(0, 10)}: ${number(most)}`;
  return svg(
    'svg',
    { viewBox: `0 0 ${days.length} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img' },
    title,
    svg('path', { class: 'base', d: `M0 ${HEIGHT}h${days.length}` }),
    bars(0, earlier, 'older'),
    bars(earlier, recent, 'earlier'),
    bars(recent, days.length, 'recent'),
  );
}

function svg(
  name: string,
  attributes: Readonly<Record<string, string>>,
  ...children: Node[]
): SVGElement {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function code(text: string): HTMLElement {
  return element('code', {}, text);
}

function number(value: number): string {
  return value.toLocaleString('en');
}
