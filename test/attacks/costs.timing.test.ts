import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';
import { closeSockets, connectSocket, type RawSocket } from '../support/sockets.ts';
import { compare, expectAtMost } from '../support/timing.ts';

const hidden = useShop({ GRAPHQL_EXPLORER: 'false', LOG_LEVEL: 'silent' });

const ROUNDS = 18;
const LENGTH = 90_000;
/** Maximum ratio of the time of a text to that of a plain text of the same length. */
const AT_MOST = 4;

const filled = (text: string) => text.repeat(Math.floor(LENGTH / text.length));
const PLAIN = filled('Had you known ');

describe('P22 errors that repeat input', () => {
  test.each([
    ['hints', filled(' Did you mean ')],
    ['rejections', `${filled(' cannot represent')} b`],
  ])(
    'P22 take as long as for any text of the same length, in variables and in literals: %s',
    async (_what, text) => {
      const timeOf = async (value: string, attempt: number) => {
        const start = performance.now();
        const answers = [
          await hidden.graphql(
            `query Q${attempt} ($f: ProductOrderField!) { products(orderBy: { field: $f }) { totalCount } }`,
            {
              f: value,
            },
          ),
          await hidden.graphql(`query Q${attempt} { products(first: "${value}") { totalCount } }`),
        ];
        const time = performance.now() - start;
        for (const { status } of answers) expect(status).toBe(400);
        return time;
      };
      expectAtMost(
        await compare(
          (attempt) => timeOf(PLAIN, attempt),
          (attempt) => timeOf(text, attempt),
          ROUNDS,
        ),
        AT_MOST,
      );
    },
  );
});

describe('P22 errors of subscriptions', () => {
  let socket: RawSocket;
  beforeAll(async () => void (socket = await connectSocket(hidden)));
  afterAll(closeSockets);

  test('P22 take as long for a variable as for any text of the same length', async () => {
    const query = 'subscription ($b: Boolean!) { productChanged { cursor @include(if: $b) } }';
    const timeOf = async (b: string, attempt: number) => {
      // The server limits the messages per second of a socket.
      if (attempt % 40 === 39) socket = await connectSocket(hidden);
      const start = performance.now();
      socket.send({ id: String(attempt), type: 'subscribe', payload: { query, variables: { b } } });
      expect(await socket.next()).toMatchObject({ type: 'error' });
      return performance.now() - start;
    };
    expectAtMost(
      await compare(
        (attempt) => timeOf(PLAIN, attempt),
        (attempt) => timeOf(filled(' Did you mean '), attempt),
        ROUNDS,
      ),
      AT_MOST,
    );
  });
});
