import type { Comparison } from '../settings.ts';
import { measure, type PageRequest } from './measured.ts';
import { settings } from './settings.ts';

/** The requests of a comparison: by REST and by GraphQL. */
export interface Requests {
  rest: PageRequest;
  graphql(operation: string): PageRequest;
  /** Variables of the GraphQL operation. */
  variables: object;
  /** Ends the sessions that the requests opened. */
  end(bodies: readonly unknown[]): Promise<void>;
}

const JSON_HEADERS = { Accept: 'application/json', 'Content-Type': 'application/json' };
const LOGOUT_PATH = '/api/v2/auth/login';

/** The user of the comparisons that need a password. */
export const demoUser = settings.demoUsers[0];

/** Returns the requests of a comparison, with values that the server accepts once. */
export function requestsOf(comparison: Comparison, keys: readonly string[] = []): Requests {
  const { kind } = comparison;
  const [first, second] = [0, 1].map((index) => variablesOf(comparison, keys[index])) as [
    Record<string, unknown>,
    Record<string, unknown>,
  ];
  return {
    rest: restRequest(comparison, first),
    graphql: (operation) => ({
      method: 'POST',
      path: '/graphql',
      headers: JSON_HEADERS,
      body: JSON.stringify({
        query: operation,
        ...(Object.keys(second).length > 0 && { variables: second }),
      }),
      asUser: isSentAsUser(kind),
    }),
    variables: second,
    end: async (bodies) => {
      if (kind === 'login') await Promise.all(bodies.map(endSession));
    },
  };
}

/** Opens two sessions of the demo user, and returns their keys. */
export function openSessions(comparison: Comparison): Promise<string[]> {
  const prefix = comparison.path.replace(/\/logout$/, '/login');
  return Promise.all(
    [0, 1].map(async () => {
      const { json, status } = await measure({
        method: 'POST',
        path: prefix,
        headers: JSON_HEADERS,
        body: JSON.stringify(demoUser),
        asUser: false,
      });
      const key = stringIn(json, 'session_key');
      if (key === undefined) throw new Error(`The server rejected the login (${status}).`);
      return key;
    }),
  );
}

function variablesOf({ kind, variables }: Comparison, key: string | undefined): object {
  if (kind === 'login') return { ...demoUser };
  if (kind === 'logout') return { ...variables, sessionKey: key ?? 'session key' };
  const { input } = variables;
  return kind === 'create' && typeof input === 'object'
    ? { ...variables, input: { ...input, barcode: newBarcode() } }
    : { ...variables };
}

function restRequest(
  { method, path, body, kind }: Comparison,
  { input, ...variables }: Record<string, unknown>,
): PageRequest {
  const request = { method, path, headers: {}, asUser: isSentAsUser(kind) };
  const fields = Object.fromEntries(
    Object.entries(input ?? variables).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value as unknown,
    ]),
  );
  if (body === 'json') return { ...request, headers: JSON_HEADERS, body: JSON.stringify(fields) };
  if (body === 'form') {
    return {
      ...request,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(fields as Record<string, string>).toString(),
    };
  }
  if (body === 'basic') {
    const credentials = btoa(`${String(fields['username'])}:${String(fields['password'])}`);
    return { ...request, headers: { Authorization: `Basic ${credentials}` } };
  }
  return request;
}

function isSentAsUser(kind: Comparison['kind']): boolean {
  return kind === 'read' || kind === 'create';
}

// A random barcode of the range for use within a company (GS1 prefixes 20 to 29).
function newBarcode(): string {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  const digits = `29${String(random).padStart(10, '0')}`;
  const sum = [...digits].reduce((total, digit, index) => {
    return total + Number(digit) * (index % 2 === 0 ? 1 : 3);
  }, 0);
  return digits + ((10 - (sum % 10)) % 10);
}

// If it fails, the session expires.
async function endSession(body: unknown): Promise<void> {
  const token = stringIn(body, 'access_token');
  const key = stringIn(body, 'session_key');
  const headers: Record<string, string> =
    token === undefined ? { 'X-SESSION-ID': key ?? '' } : { Authorization: `Bearer ${token}` };
  if (token === undefined && key === undefined) return;
  await measure({ method: 'POST', path: LOGOUT_PATH, headers, asUser: false }).catch(
    () => undefined,
  );
}

function stringIn(body: unknown, name: string): string | undefined {
  const value = (body as Record<string, unknown> | null | undefined)?.[name];
  return typeof value === 'string' ? value : undefined;
}
