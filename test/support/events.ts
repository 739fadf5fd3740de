import type { RequestOptions, Shop } from './shop.ts';
import { until } from './until.ts';

/** An event as a browser would have it. */
interface ReceivedEvent {
  event: string;
  id?: string;
  // What a test finds in it is what it asserts.
  data: any;
}

/** A stream of server-sent events that is open. */
export interface EventStreamOf {
  status: number;
  headers: Headers;
  /** The next event, comments left out; undefined once the server has ended the stream. */
  next(): Promise<ReceivedEvent | undefined>;
  close(): void;
}

const open = new Set<AbortController>();

/** Opens a stream by POST; who sees its head is listening. */
export async function listen(
  shop: Shop,
  query: string,
  variables: Record<string, unknown> = {},
  { as, token, sessionKey, headers = {}, json }: RequestOptions = {},
): Promise<EventStreamOf> {
  const bearer = token ?? (as && shop.tokenOf(as));
  const stream = await openStream(`${shop.url}/graphql`, {
    method: 'POST',
    headers: {
      Accept: 'text/event-stream',
      'Content-Type': 'application/json',
      ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
      ...(sessionKey !== undefined && { 'X-SESSION-ID': sessionKey }),
      ...headers,
    },
    body: JSON.stringify(json ?? { query, variables }),
  });
  const next = async () => {
    const event = await stream.next();
    shop.recorder.answer(JSON.stringify(event ?? ''));
    return event;
  };
  return { ...stream, next };
}

/** Opens the stream of a request. */
export async function openStream(url: string, request: RequestInit): Promise<EventStreamOf> {
  const controller = new AbortController();
  open.add(controller);
  const { status, headers, body } = await fetch(url, { ...request, signal: controller.signal });
  // Locked at once: a body that nobody reads yet is cancelled when its response is collected as garbage.
  const events = eventsIn((body ?? new ReadableStream()).values());
  return {
    status,
    headers,
    next: async () => (await events.next()).value ?? undefined,
    close: () => controller.abort(),
  };
}

/** Closes what tests have left open. */
export function closeStreams(): void {
  for (const controller of open) controller.abort();
  open.clear();
}

async function* eventsIn(body: AsyncIterable<Uint8Array>): AsyncGenerator<ReceivedEvent, undefined> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]),
      );
      const { event, id, data } = fields;
      if (event !== undefined)
        yield { event, ...(id !== undefined && { id }), data: data === '' || data === undefined ? null : JSON.parse(data) };
    }
  }
  // What is no stream of events is one answer.
  if (text !== '') yield { event: 'body', data: JSON.parse(text) };
  return undefined;
}

/** Makes products until what waits for an event has come: from then on, it is known to listen. */
export async function writtenUntil<T>(shop: Shop, told: Promise<T>): Promise<T> {
  const state = { isTold: false };
  void told.finally(() => (state.isTold = true)).catch(() => undefined);
  await until(async () => {
    await shop.makeProduct();
    return state.isTold;
  }, 'an event');
  return told;
}
