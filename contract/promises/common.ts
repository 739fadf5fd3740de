import { memberOf, type Answer } from '../answer.ts';
import { newBarcode } from '../barcode.ts';
import type { Deployment } from '../deployment.ts';
import { beginningOf, listOf } from '../expectations.ts';
import { NotTried } from '../promised.ts';

export const ME = '/users/me/';
export const ITEMS = '/users/me/items/';
export const BLOG = '/blog';
export const USERS = '/api/users';
export const V1_PRODUCTS = '/api/v1/shop/products';
export const V1_PRODUCT = '/api/v1/shop/product/';
export const V2_PRODUCTS = '/api/v2/shop/products';
export const V2_LOGIN = '/api/v2/auth/login';

/** The rows that want to know who asks. */
export const PROTECTED = [ME, ITEMS, BLOG, USERS] as const;

/** What messages have to speak of, in whatever words. */
export const SPEAKS = {
  ofWrongCredentials: /incorrect|invalid|wrong/i,
  ofBadToken: /valid|credential/i,
  ofInactivity: /inactive|disabled/i,
  ofBadKey: /invalid|unknown/i,
  ofSuccess: /success/i,
  ofMissingLogin: /authenticat/i,
  ofMethod: /not allowed/i,
} as const;

/** A product as it is sent. */
export interface Sent {
  name: string;
  barcode: string;
  price: number | string;
}

/** Credentials that nobody has, tried once at a door that takes a form. */
export function wrongForm(at: Deployment, path: string): Promise<Answer> {
  return at.once(`wrong ${path}`, () => at.ask('POST', path, { form: { username: at.nobody, password: 'wrong' } }));
}

/** Credentials that nobody has, tried once at the session router. */
export function wrongSessionLogin(at: Deployment): Promise<Answer> {
  return at.once('wrong session login', () => at.ask('POST', at.session('login'), { json: { username: at.nobody, password: 'wrong' } }));
}

/** A key that no session has, at the session router's logout. */
export function wrongLogout(at: Deployment): Promise<Answer> {
  return at.once('wrong logout', () => at.ask('POST', at.session('logout'), { json: { session_key: 'A'.repeat(43) } }));
}

/** The user's credentials, at a door that takes a form. */
export function rightForm(at: Deployment, path: string): Promise<Answer> {
  return at.once(`right ${path}`, () => at.ask('POST', path, { form: { ...at.user } }));
}

/** The user's credentials, at the session router. */
export function rightSessionLogin(at: Deployment): Promise<Answer> {
  return at.once('right session login', () => at.ask('POST', at.session('login'), { json: at.user }));
}

/** A protected row, asked with the user's token. */
export async function askAsUser(at: Deployment, path: string): Promise<Answer> {
  const token = await at.token();
  return at.once(`user ${path}`, () => at.ask('GET', path, { token }));
}

/** The header of HTTP Basic. */
export function basic(username: string, password: string): { Authorization: string } {
  return { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

/** The beginning of the whole list. */
export function wholeList(at: Deployment): Promise<Answer> {
  return at.once('whole list', () => at.askBeginning(V1_PRODUCTS));
}

/** The first page of the listing. */
export function firstPage(at: Deployment): Promise<Answer> {
  return at.once('first page', () => at.ask('GET', `${V2_PRODUCTS}?page=1`));
}

/** Cannot go on unless the list has this many entries. */
export async function needsEntries(at: Deployment, path: string, count: number): Promise<void> {
  const token = path === USERS ? await at.token() : undefined;
  const last = await at.once(`entry ${count} of ${path}`, () => at.ask('GET', `${path}?limit=1&offset=${count - 1}`, { token }));
  if (last.status === 200 && listOf(last).length === 0) throw new NotTried(`${path} has fewer than ${count} entries`);
}

/** A page of a list, asked with the user's token where the list is not public. */
export async function askPage(at: Deployment, path: string, query: string): Promise<Answer> {
  const token = path === USERS ? await at.token() : undefined;
  return at.ask('GET', `${path}?${query}`, { token });
}

/** The first product of the whole list. */
export async function aProduct(at: Deployment): Promise<Record<string, unknown> & { pk: number | string }> {
  const [first] = beginningOf(await wholeList(at));
  if (first === undefined) throw new NotTried('the catalogue is empty');
  const pk = memberOf(first, 'pk') ?? memberOf(first, 'id');
  if (typeof pk !== 'number' && typeof pk !== 'string') throw new NotTried('the list does not tell the pk of a product');
  return { ...(first as Record<string, unknown>), pk };
}

/** A product that nobody will take for a real one. */
export function newProduct(): Sent {
  return { name: `Contract check of ${new Date().toISOString()}, may be deleted`, barcode: newBarcode(), price: 12.5 };
}

/** Sends a product as the user. */
export async function create(at: Deployment, json: object, headers: Record<string, string> = {}): Promise<Answer> {
  const answer = await at.ask('POST', V1_PRODUCT, { token: await at.token(), json, headers });
  if (answer.status === 403) throw new NotTried('the user may not create products');
  return answer;
}

/** A product that was created, and the answer to that; the same for all who only need one. */
export function created(at: Deployment): Promise<{ sent: Sent; answer: Answer }> {
  return at.once('created', async () => {
    const sent = newProduct();
    return { sent, answer: await create(at, sent) };
  });
}
