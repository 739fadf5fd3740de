import assert from 'node:assert/strict';
import { checkDigit } from '../../src/features/products/ean13.ts';

/** Demo users with and without write scopes. */
export const WRITER = { username: 'alice', password: 'alice-demo-1' };
export const READER = { username: 'bob', password: 'bob-demo-1' };

const PAGE = '/api/v2/shop/products';
const PRODUCT = '/api/v1/shop/product/';

/** A response; status 0 is a failed connection. */
export interface Reply {
  status: number;
  headers: Headers;
  text: string;
}

/** A product as the REST API returns it. */
export interface ListedProduct {
  pk: number;
  name: string;
  barcode: string;
  price: number;
}

/** Sends a request. Never throws. */
export async function send(url: string, init: RequestInit = {}): Promise<Reply> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(20_000), ...init });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  } catch (error) {
    const text = String(error instanceof Error ? (error.cause ?? error) : error);
    return { status: 0, headers: new Headers(), text };
  }
}

/** Requests an access token. */
export function signIn(
  url: string,
  { username, password }: typeof WRITER,
  headers: Record<string, string> = {},
): Promise<Reply> {
  return send(`${url}/token`, {
    method: 'POST',
    headers,
    body: new URLSearchParams({ username, password }),
  });
}

/** Signs in and returns the access token. */
export async function tokenOf(url: string, user = WRITER): Promise<string> {
  const { status, text } = await signIn(url, user);
  assert.equal(status, 200, text);
  return (JSON.parse(text) as { access_token: string }).access_token;
}

/** Signs in and returns the Authorization header. */
export async function bearer(url: string, user = WRITER): Promise<Record<string, string>> {
  return { Authorization: `Bearer ${await tokenOf(url, user)}` };
}

/** Opens a session and returns its key. */
export async function openSession(url: string, user = WRITER): Promise<string> {
  const { status, text } = await post(`${url}/session/login`, user);
  assert.equal(status, 200, text);
  return (JSON.parse(text) as { session_key: string }).session_key;
}

/** Sends JSON. */
export function post(
  url: string,
  json: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  return send(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(json),
  });
}

/** Adds a product. */
export function create(
  url: string,
  token: Record<string, string>,
  barcode: string,
  name = 'Tin kettle',
): Promise<Reply> {
  return post(url + PRODUCT, { name, barcode, price: 7.5 }, token);
}

/** Requests a page of products with this query. */
export function page(
  url: string,
  query = '',
  headers: Record<string, string> = {},
): Promise<Reply> {
  return send(url + PAGE + query, { headers });
}

/** Requests the product with this primary key. */
export function product(
  url: string,
  pk: number,
  headers: Record<string, string> = {},
): Promise<Reply> {
  return send(`${url}${PRODUCT}${pk}`, { headers });
}

/** Parses a product from a response with 200 or 201. */
export function parseProduct({ text }: Reply): ListedProduct {
  return JSON.parse(text) as ListedProduct;
}

let made = 0;

/** Returns a new barcode. */
export function newBarcode(): string {
  const digits = `29${String(++made).padStart(10, '0')}`;
  return digits + checkDigit(digits);
}

/** Formats a percentile of times in ms. */
export function percentile(times: readonly number[], part: number): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
  return at === undefined ? 'none' : `${at.toFixed(at < 10 ? 1 : 0)} ms`;
}
