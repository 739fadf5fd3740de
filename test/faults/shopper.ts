import assert from 'node:assert/strict';
import { checkDigit } from '../../src/features/products/ean13.ts';

/** Users of the demo data: who may write to the catalogue, and who may not. */
export const WRITER = { username: 'alice', password: 'alice-demo-1' };
export const READER = { username: 'bob', password: 'bob-demo-1' };

const PAGE = '/api/v2/shop/products';
const PRODUCT = '/api/v1/shop/product/';

/** What came back, or 0 where nothing did. */
export interface Reply {
  status: number;
  text: string;
}

/** A product as the REST door gives it. */
export interface Sold {
  pk: number;
  name: string;
  barcode: string;
  price: number;
}

/** Asks, and never throws. */
export async function ask(url: string, init: RequestInit = {}): Promise<Reply> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(20_000), ...init });
    return { status: answer.status, text: await answer.text() };
  } catch (error) {
    return { status: 0, text: String(error instanceof Error ? (error.cause ?? error) : error) };
  }
}

/** Tries to get an access token. */
export function signIn(url: string, { username, password }: typeof WRITER, headers: Record<string, string> = {}): Promise<Reply> {
  return ask(`${url}/token`, { method: 'POST', headers, body: new URLSearchParams({ username, password }) });
}

/** An access token of a user who signs in there. */
export async function tokenOf(url: string, who = WRITER): Promise<string> {
  const { status, text } = await signIn(url, who);
  assert.equal(status, 200, text);
  return (JSON.parse(text) as { access_token: string }).access_token;
}

/** The header of a user who has signed in there. */
export async function bearer(url: string, who = WRITER): Promise<Record<string, string>> {
  return { Authorization: `Bearer ${await tokenOf(url, who)}` };
}

/** Opens a session and returns its key. */
export async function openSession(url: string, who = WRITER): Promise<string> {
  const { status, text } = await post(`${url}/session/login`, who);
  assert.equal(status, 200, text);
  return (JSON.parse(text) as { session_key: string }).session_key;
}

/** Sends JSON. */
export function post(url: string, json: unknown, headers: Record<string, string> = {}): Promise<Reply> {
  return ask(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(json) });
}

/** Adds a product. */
export function create(url: string, token: Record<string, string>, barcode: string, name = 'Tin kettle'): Promise<Reply> {
  return post(url + PRODUCT, { name, barcode, price: 7.5 }, token);
}

/** The page of products with this query. */
export function page(url: string, query = '', headers: Record<string, string> = {}): Promise<Reply> {
  return ask(url + PAGE + query, { headers });
}

/** The product with this primary key. */
export function product(url: string, pk: number, headers: Record<string, string> = {}): Promise<Reply> {
  return ask(`${url}${PRODUCT}${pk}`, { headers });
}

/** What was sold, as an answer of 200 or 201 says. */
export function sold({ text }: Reply): Sold {
  return JSON.parse(text) as Sold;
}

let made = 0;

/** A barcode that no run has given out before. */
export function newBarcode(): string {
  const digits = `29${String(++made).padStart(10, '0')}`;
  return digits + checkDigit(digits);
}

/** Whatever part of the times lies below it, in ms. */
export function percentile(times: readonly number[], part: number): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
  return at === undefined ? 'none' : `${at.toFixed(at < 10 ? 1 : 0)} ms`;
}
