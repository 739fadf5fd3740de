import type { RequestOptions, Shop } from './shop.ts';
import { until } from './until.ts';

/** A parsed server-sent event. */
interface ReceivedEvent {
  event: string;
  id?: string;
  // Untyped: tests assert its shape.
  data: any;
}

/** An open stream of server-sent events. */
export interface OpenEventStream {
  status: number;
  headers: Headers;
  /** The next event, without comments; undefined at the end of the stream. */
  next(): Promise<ReceivedEvent | undefined>;
  close(): void;
}

const open = new Set<AbortController>();

/** Opens a subscription by POST. It is active when the response head arrives. */
export async function openSubscription(
  shop: Shop,
  query: string,
  variables: Record<string, unknown> = {},
  { as, token, sessionKey, headers = {}, json }: RequestOptions = {},
): Promise<OpenEventStream> {
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
export async function openStream(url: string, request: RequestInit): Promise<OpenEventStream> {
  const controller = new AbortController();
  open.add(controller);
  const { status, headers, body } = await fetch(url, { ...request, signal: controller.signal });
  // Locked at once: an unread body is cancelled when its response is garbage-collected.
  const events = eventsIn((body ?? new ReadableStream()).values());
  return {
    status,
    headers,
    next: async () => (await events.next()).value ?? undefined,
    close: () => controller.abort(),
  };
}

/** Closes all open streams. */
export function closeStreams(): void {
  for (const controller of open) controller.abort();
  open.clear();
}

async function* eventsIn(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<ReceivedEvent, undefined> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const piece of body) {
    text += decoder.decode(piece, { stream: true });
    const blocks = text.split('\n\n');
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block
          .split('\n')
          .map((line) => [
            line.slice(0, line.indexOf(':')),
            line.slice(line.indexOf(':') + 1).trim(),
          ]),
      );
      const { event, id, data } = fields;
      if (event !== undefined)
        yield {
          event,
          ...(id !== undefined && { id }),
          data: data === '' || data === undefined ? null : JSON.parse(data),
        };
    }
  }
  // A response that is not an event stream has one body.
  if (text !== '') yield { event: 'body', data: JSON.parse(text) };
  return undefined;
}

/** Creates products until an event arrives, so that the subscription is known to be active. */
export async function writeUntil<T>(shop: Shop, event: Promise<T>): Promise<T> {
  const state = { hasArrived: false };
  void event.finally(() => (state.hasArrived = true)).catch(() => undefined);
  await until(async () => {
    await shop.makeProduct();
    return state.hasArrived;
  }, 'an event');
  return event;
}
