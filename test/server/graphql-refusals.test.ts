import { describe, expect, test } from '../support/jest.ts';
import { useShop, type RequestOptions } from '../support/shop.ts';

const shop = useShop({}, { graphqlMaxResponseBytes: 1_000 });

const LEGACY = 'application/json; charset=utf-8';
const NEWER = 'application/graphql-response+json; charset=utf-8';
/** Accept headers of clients, and the media types of their responses. */
const ACCEPTED: [accept: string, type: string][] = [
  ['*/*', LEGACY],
  ['application/json', LEGACY],
  ['image/png', LEGACY],
  ['text/event-stream', LEGACY],
  ['application/problem+json', LEGACY],
  ['application/json, application/graphql-response+json;q=0.5', LEGACY],
  ['application/graphql-response+json', NEWER],
  // Apollo Client 4
  ['application/graphql-response+json,application/json;q=0.9', NEWER],
  // urql 5
  [
    'application/graphql-response+json, application/graphql+json, application/json, text/event-stream, multipart/mixed',
    NEWER,
  ],
];

const TYPENAME = { query: '{ __typename }' };
const JSON_TYPE = { 'Content-Type': 'application/json' };

/** Error, expected status and code, request, and method. */
const REJECTIONS: [string, number, string, RequestOptions, string?][] = [
  ['a token that is not valid', 401, 'UNAUTHENTICATED', { json: TYPENAME, token: 'x' }],
  ['an unknown session key', 401, 'UNAUTHENTICATED', { json: TYPENAME, sessionKey: 'x' }],
  ['a body that is too large', 413, 'PAYLOAD_TOO_LARGE', { json: { query: '#'.repeat(200_000) } }],
  ['another content type', 415, 'UNSUPPORTED_MEDIA_TYPE', { body: '{}' }],
  ['JSON that does not parse', 400, 'BAD_REQUEST', { body: '{', headers: JSON_TYPE }],
  ['text in place of an object', 400, 'BAD_REQUEST', { body: '""', headers: JSON_TYPE }],
  ['another method', 405, 'METHOD_NOT_ALLOWED', {}, 'PUT'],
];

describe('a rejection before a document runs has the format of GraphQL errors and the media type that the client accepts', () => {
  test.each(REJECTIONS)('%s: %i %s', async (_what, status, code, request, method = 'POST') => {
    for (const [accept, type] of ACCEPTED) {
      // For text/event-stream alone, errors of the operation are events.
      if (accept === 'text/event-stream' && request.json !== undefined && status === 400) continue;
      const answer = await shop.rest(method, '/graphql', {
        ...request,
        headers: { ...request.headers, Accept: accept },
      });
      expect([accept, answer.status, answer.headers.get('Content-Type')]).toEqual([
        accept,
        status,
        type,
      ]);
      expect(answer.body).toEqual({
        errors: [{ message: expect.any(String), extensions: { code } }],
      });
      expect(answer.headers.get('Cache-Control')).toBe('no-store');
    }
  });

  test('a response that is too long: 400 QUERY_TOO_COMPLEX', async () => {
    // A client that accepts neither JSON type gets 406.
    for (const [accept, type] of ACCEPTED.filter(([name]) =>
      /\*|\bapplication\/(graphql-response\+)?json/.test(name),
    )) {
      const answer = await shop.rest('GET', '/graphql?query={__schema{types{name}}}', {
        headers: { Accept: accept },
      });
      expect([accept, answer.status, answer.headers.get('Content-Type')]).toEqual([
        accept,
        400,
        type,
      ]);
      expect(answer.body).toEqual({
        errors: [{ message: expect.any(String), extensions: { code: 'QUERY_TOO_COMPLEX' } }],
      });
    }
  });
});
