import { memberOf, type HttpResponse } from '../response.ts';
import { newBarcode } from '../barcode.ts';
import { basicCredentials, type Deployment } from '../deployment.ts';
import { firstEntries, listOf } from '../expectations.ts';
import { Skipped } from '../promised.ts';

export const ME = '/users/me/';
export const ITEMS = '/users/me/items/';
export const BLOG = '/blog';
export const USERS = '/api/users';
export const V1_PRODUCTS = '/api/v1/shop/products';
export const V1_PRODUCT = '/api/v1/shop/product/';
export const V2_PRODUCTS = '/api/v2/shop/products';
export const V2_LOGIN = '/api/v2/auth/login';

/** Endpoints that need authentication. */
export const PROTECTED = [ME, ITEMS, BLOG, USERS] as const;

/** Patterns that messages have to match. */
export const MESSAGES = {
  wrongCredentials: /incorrect|invalid|wrong/i,
  badToken: /valid|credential/i,
  inactivity: /inactive|disabled/i,
  badKey: /invalid|unknown/i,
  success: /success/i,
  missingLogin: /authenticat/i,
  method: /not allowed/i,
} as const;

/** A product in a request. */
export interface ProductInput {
  name: string;
  barcode: string;
  price: number | string;
}

/** The cached response of a form login with unknown credentials. */
export function wrongForm(at: Deployment, path: string): Promise<HttpResponse> {
  return at.cached(`wrong ${path}`, () =>
    at.send('POST', path, { form: { username: at.unknownUsername, password: 'wrong' } }),
  );
}

/** The cached response of a session login with unknown credentials. */
export function wrongSessionLogin(at: Deployment): Promise<HttpResponse> {
  return at.cached('wrong session login', () =>
    at.send('POST', at.session('login'), {
      json: { username: at.unknownUsername, password: 'wrong' },
    }),
  );
}

/** The cached response of a session logout with an unknown key. */
export function wrongLogout(at: Deployment): Promise<HttpResponse> {
  return at.cached('wrong logout', () =>
    at.send('POST', at.session('logout'), { json: { session_key: 'A'.repeat(43) } }),
  );
}

/** The cached response of a form login of the user. */
export function rightForm(at: Deployment, path: string): Promise<HttpResponse> {
  return at.cached(`right ${path}`, () => at.send('POST', path, { form: { ...at.user } }));
}

/** The cached response of a session login of the user. */
export function rightSessionLogin(at: Deployment): Promise<HttpResponse> {
  return at.cached('right session login', () =>
    at.send('POST', at.session('login'), { json: at.user }),
  );
}

/** The cached response of a protected endpoint to the user's token. */
export async function getAsUser(at: Deployment, path: string): Promise<HttpResponse> {
  const token = await at.token();
  return at.cached(`user ${path}`, () => at.send('GET', path, { token }));
}

/** The Authorization header of HTTP Basic. */
export function basic(username: string, password: string): { Authorization: string } {
  return { Authorization: `Basic ${basicCredentials({ username, password })}` };
}

/** The start of the whole list, cached. */
export function wholeList(at: Deployment): Promise<HttpResponse> {
  return at.cached('whole list', () => at.readStart(V1_PRODUCTS));
}

/** The first page of products, cached. */
export function firstPage(at: Deployment): Promise<HttpResponse> {
  return at.cached('first page', () => at.send('GET', `${V2_PRODUCTS}?page=1`));
}

/** Throws `Skipped` if the list has fewer entries. */
export async function needsEntries(at: Deployment, path: string, count: number): Promise<void> {
  const token = path === USERS ? await at.token() : undefined;
  const last = await at.cached(`entry ${count} of ${path}`, () =>
    at.send('GET', `${path}?limit=1&offset=${count - 1}`, { token }),
  );
  if (last.status === 200 && listOf(last).length === 0)
    throw new Skipped(`${path} has fewer than ${count} entries`);
}

/** A page of a list; with the user's token if the list is not public. */
export async function getPage(at: Deployment, path: string, query: string): Promise<HttpResponse> {
  const token = path === USERS ? await at.token() : undefined;
  return at.send('GET', `${path}?${query}`, { token });
}

/** The first product of the whole list. */
export async function aProduct(
  at: Deployment,
): Promise<Record<string, unknown> & { pk: number | string }> {
  const [first] = firstEntries(await wholeList(at));
  if (first === undefined) throw new Skipped('the catalogue is empty');
  const pk = memberOf(first, 'pk') ?? memberOf(first, 'id');
  if (typeof pk !== 'number' && typeof pk !== 'string') throw new Skipped('the list has no pk');
  return { ...(first as Record<string, unknown>), pk };
}

/** A product that is recognizable as a test. */
export function newProduct(): ProductInput {
  return {
    name: `Contract check of ${new Date().toISOString()}, may be deleted`,
    barcode: newBarcode(),
    price: 12.5,
  };
}

/** Creates a product as the user. */
export async function create(
  at: Deployment,
  json: object,
  headers: Record<string, string> = {},
): Promise<HttpResponse> {
  const response = await at.send('POST', V1_PRODUCT, { token: await at.token(), json, headers });
  if (response.status === 403) throw new Skipped('the user may not create products');
  return response;
}

/** A created product and the response, shared between checks. */
export function created(at: Deployment): Promise<{ sent: ProductInput; response: HttpResponse }> {
  return at.cached('created', async () => {
    const sent = newProduct();
    return { sent, response: await create(at, sent) };
  });
}
