import { get, type ClientRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { wire, type LoadPart } from './open-load.ts';

const json = { 'Content-Type': 'application/json' };
const deep = `{ me ${'{ blog { nodes { creator '.repeat(3)}{ username } ${'} } }'.repeat(3)} }`;
const nested = `${'{ a '.repeat(5_000)}${'}'.repeat(5_000)}`;
const bomb = gzipSync(Buffer.alloc(10 * 2 ** 20, ' ')).toString('latin1');

/**
 * Expensive requests of docs/generated/attacks.md: queries that are too deep, wide or long, and
 * invalid bodies.
 */
export function abuse(): LoadPart[] {
  const queries = [
    deep,
    `{ __typename ${'@a '.repeat(10_000)} }`,
    `{ __typename ${'@include(if: true) '.repeat(51)} }`,
    `{ ${'__typename '.repeat(500)} }`,
    `{ ${'__typename '.repeat(3_000)} }`,
    `{ __typename ${' '.repeat(90_000)} }`,
    '{ products(first: 100000) { nodes { pk } } }',
    `{ ${Array.from({ length: 101 }, (_, index) => `a${index}: __typename`).join(' ')} }`,
    nested,
  ];
  const bodies = [
    '{"a":',
    '[]',
    'null',
    `{"name":"${'n'.repeat(16_000)}"}`,
    `{"name":"${'n'.repeat(20_000)}"}`,
    '['.repeat(8_000),
  ];
  return [
    {
      name: 'graphql',
      share: 50,
      requests: queries.map((query) => wire('POST', '/graphql', {}, JSON.stringify({ query }))),
    },
    {
      name: 'bodies',
      share: 30,
      requests: bodies.map((body) => wire('POST', '/api/v1/shop/product/', json, body)),
    },
    { name: 'packed', share: 5, requests: [packed()] },
    {
      name: 'paths',
      share: 15,
      requests: [
        wire('GET', `/${'x'.repeat(8_000)}`),
        wire('PUT', '/graphql'),
        wire('GET', '/%zz'),
        many(),
      ],
    },
  ];
}

/** Reads the whole list repeatedly, with this number of concurrent readers. */
export function readListsRepeatedly(
  url: string,
  readers: number,
): { count(): number; stop(): void } {
  let [count, isOver] = [0, false];
  const open = new Set<ClientRequest>();
  const read = (): void => {
    if (isOver) return;
    const request = get(`${url}/api/v1/shop/products`, (res) => {
      res.resume();
      res.on('end', () => count++);
    });
    open.add(request);
    request
      .on('error', () => undefined)
      .on('close', () => {
        open.delete(request);
        read();
      });
  };
  for (let reader = 0; reader < readers; reader++) read();
  return {
    count: () => count,
    stop() {
      isOver = true;
      for (const request of open) request.destroy();
    },
  };
}

// 10 MB of spaces in 10 KB of gzip, one character per byte.
function packed(): string {
  return wire('POST', '/graphql', { ...json, 'Content-Encoding': 'gzip' }, bomb).replace(
    /Content-Length: \d+/,
    `Content-Length: ${bomb.length}`,
  );
}

function many(): string {
  return wire(
    'GET',
    '/',
    Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`X-${index}`, 'x'])),
  );
}
