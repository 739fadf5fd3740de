import { compareAnswers, type Outcome } from '../correspondence.ts';
import type { Comparison, Selection } from '../settings.ts';
import { showBar } from './bar.ts';
import './home.css';
import { byId, element } from './dom.ts';
import { measure, type Measured, type PageRequest } from './measured.ts';
import { linesOf, withoutFields, type Operation } from './operation.ts';
import { demoUser, openSessions, requestsOf, type Requests } from './requests.ts';
import { currentSession, watchSession } from './session.ts';
import { home } from './settings.ts';

/** Maximum number of characters of a response that are shown. */
const MAX_SHOWN = 4_000;
/** Maximum number of characters of JSON on one line. */
const MAX_LINE = 44;
/** Number of times that a read is sent, because the first may wait for what later ones share. */
const READS = 3;
/** Maximum number of differences that are listed. */
const MAX_DIFFERENCES = 5;

/** Both responses to a comparison. */
interface Responses {
  rest: Measured;
  graphql: Measured;
  operation: Operation;
}

const comparisons = JSON.parse(byId('comparisons').textContent) as Comparison[];
const endpoint = byId('endpoint') as HTMLSelectElement;
const runButton = byId('run') as HTMLButtonElement;
const [note, verdict, details, responsesArea] = ['note', 'verdict', 'details', 'responses'].map(
  byId,
) as [HTMLElement, HTMLElement, HTMLElement, HTMLElement];
const initialVerdict = [...verdict.childNodes].map((node) => node.cloneNode(true));
/** Paths of the fields that the reader has left out. */
const unwanted = new Set<string>();
let comparison = selected();
let requests = requestsOf(comparison);
/** Number of the comparison that may show its result. */
let latest = 0;
let hasResult = false;

await showBar();
byId('controls').addEventListener('submit', (event) => {
  event.preventDefault();
  void run({ scroll: true });
});
endpoint.addEventListener('change', show);
for (const side of ['rest', 'graphql'] as const) {
  const copy = byId(`${side}-copy`);
  const label = copy.textContent;
  copy.addEventListener('click', () => {
    const request = side === 'rest' ? requests.rest : requests.graphql(operation().text);
    void showCopied(copy, label, curlOf(request));
  });
}
show();
let username = currentSession()?.username;
watchSession((session) => {
  if (session?.username === username) return;
  username = session?.username;
  if (hasResult && comparison.kind === 'read') void run();
  else show();
});

function selected(): Comparison {
  const found = comparisons[Number(endpoint.value)];
  if (!found) throw new Error('The page has no such comparison');
  return found;
}

function operation(): Operation {
  return withoutFields(comparison.operation, unwanted);
}

/** Shows the selected comparison without responses. */
function show(): void {
  comparison = selected();
  unwanted.clear();
  cancel();
  hasResult = false;
  requests = requestsOf(comparison);
  verdict.replaceChildren(...initialVerdict.map((node) => node.cloneNode(true)));
  verdict.className = '';
  details.replaceChildren();
  responsesArea.replaceChildren();
  const reason = reasonNotToRun();
  note.textContent = reason ?? noteOf(comparison);
  runButton.disabled = reason !== undefined;
  if (reason !== undefined) verdict.textContent = 'This comparison cannot run here.';
  showRequests();
}

function reasonNotToRun(): string | undefined {
  const needsPassword = comparison.kind === 'login' || comparison.kind === 'logout';
  return needsPassword && !demoUser
    ? 'It needs a password, and this page has none. Use the REST reference or GraphiQL.'
    : undefined;
}

function noteOf({ kind, access }: Comparison): string {
  const user = demoUser?.username ?? '';
  if (kind === 'login')
    return `Opens two sessions of ${user}, one by each API, and ends both again.`;
  if (kind === 'logout') return `Opens two sessions of ${user}, and ends one by each API.`;
  const needs = access === 'signed-in' ? 'a signed-in user' : `the scope ${access}`;
  if (kind === 'create')
    return `Creates two products that stay in the catalogue, one by each API, with a new barcode each. Needs ${needs}.`;
  return access === 'public' ? 'Reads only. No sign-in needed.' : `Reads only. Needs ${needs}.`;
}

function showRequests(): void {
  const { rest, variables } = requests;
  runButton.textContent =
    { create: 'Create two products', login: 'Log in twice', logout: 'Log out twice' }[
      comparison.kind as string
    ] ?? 'Run both';
  byId('rest-request').replaceChildren(
    code(startLine(rest)),
    ...(rest.headers['Authorization'] === undefined
      ? []
      : [code(`Authorization: ${rest.headers['Authorization']}`)]),
    ...(rest.body === undefined ? [] : [code(concealed(pretty(rest.body)))]),
    element('p', { className: 'caption' }, 'Response'),
    linesView('Fields of the response', comparison.response, (text, _leaf, size) =>
      element('div', { className: 'always' }, element('span', { className: 'name' }, text), size),
    ),
    element('p', { className: 'hint' }, 'The server chooses the fields: every client gets all.'),
  );
  byId('graphql-request').replaceChildren(
    code(startLine(requests.graphql(''))),
    selection(),
    ...(Object.keys(variables).length > 0
      ? [
          element('p', { className: 'caption' }, 'Variables'),
          code(concealed(pretty(JSON.stringify(variables)))),
        ]
      : []),
    element(
      'p',
      { className: 'hint' },
      'The client chooses the fields: untick what it does not need.',
    ),
  );
}

/** The operation with a checkbox for each field. */
function selection(): HTMLElement {
  return linesView('Fields of the operation', comparison.operation, (text, leaf, size) => {
    const box = element('input', { type: 'checkbox', checked: !unwanted.has(leaf) });
    box.addEventListener('change', () => choose(leaf, box.checked));
    return element('label', {}, box, element('span', { className: 'name' }, text), size);
  });
}

function linesView(
  label: string,
  fields: Selection,
  leafView: (text: string, leaf: string, size: HTMLElement) => HTMLElement,
): HTMLElement {
  const lines = linesOf(fields).map(({ depth, text, leaf }) => {
    const line = element('div', { className: 'line' });
    line.style.paddingInlineStart = `${depth * 1.25}rem`;
    if (leaf === undefined) {
      line.append(text);
      return line;
    }
    const size = element('span', { className: 'size' });
    size.dataset['leaf'] = leaf;
    line.append(leafView(text, leaf, size));
    return line;
  });
  const group = element('div', { className: 'selection' }, ...lines);
  group.setAttribute('role', 'group');
  group.setAttribute('aria-label', label);
  return group;
}

function choose(leaf: string, isWanted: boolean): void {
  if (isWanted) unwanted.delete(leaf);
  else unwanted.add(leaf);
  const isEmpty = operation().text === '';
  runButton.disabled = isEmpty || reasonNotToRun() !== undefined;
  if (isEmpty) {
    cancel();
    say('', 'An operation needs at least one field.');
  } else if (hasResult && comparison.kind === 'read') void run();
}

// Requests that are still running show no result.
function cancel(): void {
  latest++;
  responsesArea.removeAttribute('aria-busy');
}

/** Sends both requests, one after the other, so that neither delays the other, and compares. */
async function run({ scroll = false } = {}): Promise<void> {
  const turn = ++latest;
  const current = comparison;
  const chosen = operation();
  if (chosen.text === '') return;
  responsesArea.setAttribute('aria-busy', 'true');
  if (current.kind !== 'read') runButton.disabled = true;
  try {
    const sent = await prepared(current);
    if (turn !== latest) return;
    const times = current.kind === 'read' ? READS : 1;
    const rest = await fastest(sent.rest, times);
    if (turn !== latest && current.kind === 'read') return;
    const graphql = await fastest(sent.graphql(chosen.text), times);
    if (current.kind === 'login') void sent.end([rest.json, dataOf(graphql)?.['login']]);
    if (turn !== latest) return;
    showResult({ rest, graphql, operation: chosen });
  } catch (error) {
    if (turn !== latest) return;
    details.replaceChildren();
    responsesArea.replaceChildren();
    say('wrong', error instanceof Error ? error.message : String(error));
    hasResult = true;
  } finally {
    if (turn === latest) {
      responsesArea.removeAttribute('aria-busy');
      runButton.disabled = false;
      // On a phone, the result is below the requests.
      if (scroll) byId('result').scrollIntoView({ block: 'nearest' });
    }
  }
}

/** Sends a request this many times, one after the other. Returns the last response, with the shortest time. */
async function fastest(request: PageRequest, times: number): Promise<Measured> {
  let best = await measure(request);
  for (let sent = 1; sent < times && best.status < 400; sent++) {
    const next = await measure(request);
    best = { ...next, milliseconds: Math.min(best.milliseconds, next.milliseconds) };
  }
  return best;
}

// A read is sent as shown. Other requests have new values each time.
async function prepared(current: Comparison): Promise<Requests> {
  if (current.kind === 'read' || (!hasResult && current.kind !== 'logout')) return requests;
  requests = requestsOf(
    current,
    current.kind === 'logout' ? await openSessions(current) : undefined,
  );
  if (current === comparison) showRequests();
  return requests;
}

function showResult({ rest, graphql, operation: { leftOut } }: Responses): void {
  hasResult = true;
  const data = dataOf(graphql);
  const errorCode = errorOf(graphql);
  const isRejected = rest.status >= 400;
  let facts: string[] = [];
  if (rest.status === 401 && comparison.kind !== 'login' && currentSession() === undefined) {
    const signIn = element('a', { href: '#session' }, 'Sign in');
    signIn.addEventListener('click', focusSignIn);
    say('wrong', signIn, ' to run this comparison: it needs a user.');
  } else if (isRejected && errorCode !== undefined) {
    const busy = rest.status === 503 || rest.status === 429;
    say(
      'wrong',
      busy
        ? `The server is busy (${rest.status}). Try again in ${rest.retryAfter ?? 'a few'} seconds.`
        : `Both APIs reject the request: ${rest.status} and ${errorCode}.`,
    );
  } else if (
    isRejected ||
    errorCode !== undefined ||
    data === undefined ||
    rest.json === undefined
  ) {
    say(
      'wrong',
      `Different: REST responds with ${rest.status}, GraphQL with ${errorCode ?? graphql.status}.`,
    );
  } else {
    const outcome = compareAnswers(rest.json, data, comparison.correspondences, leftOut);
    sayOutcome(outcome, leftOut);
    facts = factsOf(outcome, rest.json, leftOut);
  }
  showSizes('rest', isRejected ? undefined : rest.json);
  showSizes('graphql', data);
  details.replaceChildren(figures(rest, graphql), ...list(facts));
  responsesArea.replaceChildren(
    responseView('REST response', rest),
    responseView('GraphQL response', graphql),
  );
}

function sayOutcome(
  { compared, differences, firstPage }: Outcome,
  leftOut: ReadonlySet<string>,
): void {
  const values = compared === 1 ? '1 value' : `${number(compared)} values`;
  if (differences.length > 0) {
    say(
      'wrong',
      `Different answers: ${number(differences.length)} of ${values} ${differences.length === 1 ? 'differs' : 'differ'}.`,
    );
    return;
  }
  const scope = firstPage
    ? ` for the first ${number(firstPage.graphql)} of ${number(firstPage.rest)} entries`
    : '';
  const fields = leftOut.size > 0 ? ' in the fields you asked for' : '';
  say('same', 'Same answer', element('small', {}, `${scope}${fields} · ${values} compared`));
}

function factsOf(
  { differences, firstPage, ids }: Outcome,
  body: unknown,
  leftOut: ReadonlySet<string>,
): string[] {
  const mapped = comparison.correspondences.flatMap(({ graphql, hasMore }) =>
    [graphql, hasMore ?? ''].map((path) => path.replaceAll('.*', '')),
  );
  const isMapped = (leaf: string): boolean =>
    mapped.some((path) => leaf === path || leaf.startsWith(`${path}.`));
  const leaves = linesOf(comparison.operation).flatMap(({ leaf }) => leaf ?? []);
  const onlyGraphql = leaves.filter((leaf) => !isMapped(leaf) && !leftOut.has(leaf));
  const known = new Set(comparison.correspondences.map(({ rest }) => rest.split('.')[0]));
  const onlyRest =
    known.has('') || known.has('*')
      ? []
      : Object.keys(body as object).filter((name) => !known.has(name));
  const fresh = comparison.correspondences.filter(({ as }) => as === 'new').map(({ rest }) => rest);
  return [
    ...differences
      .slice(0, MAX_DIFFERENCES)
      .map(({ at, rest, graphql }) => `${at}: ${rest} by REST, ${graphql} by GraphQL`),
    ...(firstPage
      ? [
          `REST sends all ${number(firstPage.rest)} entries; GraphQL sends pages of the length that the client asks for.`,
        ]
      : []),
    ...(leftOut.size === 0
      ? ['Untick fields of the GraphQL operation to see what a client saves.']
      : []),
    ...(ids > 0 ? ['An ID is a number by REST and a string by GraphQL: 1 and "1".'] : []),
    ...(fresh.length > 0
      ? [`New for each request, so present in both but not equal: ${fresh.join(', ')}.`]
      : []),
    ...(onlyRest.length > 0 ? [`Only in the REST response: ${onlyRest.join(', ')}.`] : []),
    ...(onlyGraphql.length > 0
      ? [
          `Only in the GraphQL response: ${onlyGraphql.map((leaf) => leaf.split('.').at(-1)).join(', ')}.`,
        ]
      : []),
  ];
}

function list(facts: readonly string[]): Node[] {
  return facts.length === 0
    ? []
    : [element('ul', { className: 'facts' }, ...facts.map((fact) => element('li', {}, fact)))];
}

/** Table of what both responses cost. */
function figures(rest: Measured, graphql: Measured): HTMLElement {
  const rows: [string, number, number, (value: number) => string][] = [
    ['Bytes', rest.bytes, graphql.bytes, number],
    ['Bytes on the wire', rest.transferred, graphql.transferred, number],
    [
      comparison.kind === 'read' ? `Milliseconds, best of ${READS}` : 'Milliseconds',
      rest.milliseconds,
      graphql.milliseconds,
      (value) => value.toFixed(1),
    ],
  ];
  const body = rows.map(([label, left, right, format]) => {
    const most = Math.max(left, right);
    const cell = (value: number): HTMLElement => {
      const bar = element('span', { className: 'share' });
      bar.style.inlineSize = `${most > 0 ? (100 * value) / most : 0}%`;
      return element('td', {}, element('span', { className: 'value' }, format(value)), bar);
    };
    return element(
      'tr',
      {},
      element('th', { scope: 'row' }, label),
      cell(left),
      cell(right),
      element('td', { className: 'change' }, format === number ? changeOf(left, right) : ''),
    );
  });
  const head = ['Measured', 'REST', 'GraphQL', 'Change'].map((label) =>
    element('th', { scope: 'col' }, label),
  );
  return element(
    'table',
    { className: 'figures' },
    element('thead', {}, element('tr', {}, ...head)),
    element('tbody', {}, ...body),
  );
}

function changeOf(before: number, after: number): string {
  if (before === 0) return '';
  const percent = Math.round((100 * (after - before)) / before);
  return percent > 0
    ? `+${number(percent)} %`
    : `${percent === 0 ? '±' : '−'}${number(-percent)} %`;
}

/** Shows at each field how many bytes of the response it has. */
function showSizes(side: 'rest' | 'graphql', body: unknown): void {
  const sizes = new Map<string, number>();
  const add = (value: unknown, path: string, name: string): void => {
    if (Array.isArray(value)) for (const entry of value) add(entry, path, name);
    else if (typeof value === 'object' && value !== null)
      for (const [key, member] of Object.entries(value))
        add(member, path === '' ? key : `${path}.${key}`, key);
    else {
      // With its name, quotes, colon and comma.
      const length = new Blob([name, JSON.stringify(value)]).size + 4;
      sizes.set(path, (sizes.get(path) ?? 0) + length);
    }
  };
  add(body, '', '');
  for (const size of byId(`${side}-request`).querySelectorAll<HTMLElement>('.size')) {
    const leaf = size.dataset['leaf'] ?? '';
    const bytes = sizes.get(leaf);
    size.textContent = bytes === undefined ? '' : `${number(bytes)} B`;
    if (unwanted.has(leaf) && side === 'graphql') size.textContent = 'left out';
  }
}

function responseView(label: string, { status, text, json }: Measured): HTMLElement {
  const shown = concealed(json === undefined ? text : JSON.stringify(json, null, 2));
  const rest = shown.length - MAX_SHOWN;
  const body = code(
    rest > 0 ? `${shown.slice(0, MAX_SHOWN)}\n… ${number(rest)} characters more` : shown,
  );
  body.tabIndex = 0;
  body.setAttribute('role', 'region');
  body.setAttribute('aria-label', label);
  return element(
    'section',
    { className: 'side' },
    element(
      'header',
      {},
      element('h2', {}, label),
      element('span', { className: 'status' }, String(status)),
    ),
    body,
  );
}

function say(state: '' | 'same' | 'wrong', ...text: (Node | string)[]): void {
  verdict.className = state;
  verdict.replaceChildren(...text);
}

function focusSignIn(event: Event): void {
  event.preventDefault();
  document.querySelector<HTMLElement>('#session :is(button, input)')?.focus();
}

function dataOf({ json }: Measured): Record<string, unknown> | undefined {
  const { data } = (json ?? {}) as { data?: Record<string, unknown> | null };
  return data ?? undefined;
}

function errorOf({ json, status }: Measured): string | undefined {
  const { errors } = (json ?? {}) as {
    errors?: { message: string; extensions?: { code?: string } }[];
  };
  const [error] = errors ?? [];
  if (error) return error.extensions?.code ?? error.message;
  return status >= 400 ? String(status) : undefined;
}

function startLine({ method, path }: PageRequest): HTMLElement {
  return element('span', {}, element('b', { className: 'method' }, method), ` ${path}`);
}

function code(content: Node | string): HTMLElement {
  return element('pre', { className: 'code' }, content);
}

function pretty(body: string): string {
  if (!body.startsWith('{')) return body.replaceAll('&', '\n&');
  const lines = JSON.stringify(JSON.parse(body), null, 2);
  const line = lines.replace(/\n */g, ' ');
  return line.length > MAX_LINE ? lines : line;
}

// Keys and tokens are not shown in full.
function concealed(text: string): string {
  return text.replace(/("(?:access_token|session_?[kK]ey)": ?"[^"]{6})[^"]{6,}"/g, '$1…"');
}

function curlOf({ method, path, headers, body, asUser }: PageRequest): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  return [
    'curl',
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    quoted(home + path),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(asUser && currentSession() ? ['-H "Authorization: Bearer $TOKEN"'] : []),
    ...(body === undefined ? [] : [`-d ${quoted(body)}`]),
  ].join(' ');
}

// Without TLS, pages have a clipboard only if they are loaded from this machine.
async function showCopied(copy: HTMLElement, label: string, text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    copy.textContent = 'Copied';
  } catch {
    copy.textContent = 'No clipboard';
  }
  setTimeout(() => (copy.textContent = label), 2_000);
}

function number(value: number): string {
  return value.toLocaleString('en');
}
