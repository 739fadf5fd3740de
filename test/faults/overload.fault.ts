import assert from 'node:assert/strict';
import { countOf, load, timesOf, type LoadResult, type LoadPlan } from '../support/open-load.ts';
import { mixedLoad, shopRequests } from '../support/shop-load.ts';
import type { Fault, Figures } from './fault.ts';
import { portOf, startStocked } from './place.ts';

const PRODUCTS = 10_000;
/** Number of clients that define the normal rate: each waits for its response. */
const CLIENTS = 32;
/** Number of clients that define the peak rate, regardless of response times. */
const CROWD = 128;
const FACTOR = 3;
const SECONDS = 60;
const SHORT_SECONDS = 6;
/** Maximum number of concurrent clients; each has a connection. */
const CONNECTIONS = 1_000;
/** Seconds at the start that are not measured: overload detection takes a moment. */
const SETTLING_S = 2;
const RECOVERY_S = 5;
const GOAL = 0.8;

export const overload: Fault = {
  name: 'overload',
  promise:
    'At three times the rate that it serves to clients that wait for each response, the server serves at least 80 % of that rate, rejects the rest with 503, and is back to normal within 5 s.',
  on: ['postgresql'],
  async run(context) {
    const { server } = await startStocked(context, PRODUCTS, { LOG_LEVEL: 'warn' });
    const parts = mixedLoad(await shopRequests(server.url));
    const plan = { port: portOf(server), parts };
    const seconds = context.short ? SHORT_SECONDS : SECONDS;
    await load({ ...plan, connections: CLIENTS, seconds: context.short ? 2 : 10 });
    const peak = await load({ ...plan, connections: CLIENTS, seconds: Math.min(seconds, 20) });
    const rate = successesASecond(peak);
    const over = await load({
      ...plan,
      connections: CONNECTIONS,
      opened: true,
      rate: FACTOR * rate,
      seconds,
    });
    const after = await load({
      ...plan,
      connections: CONNECTIONS,
      opened: true,
      rate: rate / 2,
      seconds: RECOVERY_S + (context.short ? 2 : 10),
    });
    const goodput = goodputOf(over, seconds);
    const rejected = over.answers[503];
    assert.ok(rejected, 'nothing was rejected');
    for (const loaded of [peak, over, after]) {
      assert.equal(
        countOf(loaded, 200, 299) + countOf(loaded, 503),
        countOf(loaded, 100, 599),
        JSON.stringify(loaded.answers),
      );
      assert.deepEqual([loaded.lost, loaded.unanswered], [0, 0]);
    }
    const back = after.bySecond.findIndex(
      ({ rejected: count }, second) =>
        count === 0 && after.bySecond.slice(second).every((each) => each.rejected === 0),
    );
    if (!context.short) assert.ok(back >= 0 && back <= RECOVERY_S, 'it still rejects requests');
    if (!context.short)
      assert.ok(goodput >= GOAL * rate, `${goodput.toFixed(0)} of ${rate.toFixed(0)} a second`);
    return {
      [`to ${CLIENTS} clients`]: `${rate.toFixed(0)}/s`,
      [`of ${FACTOR} times as many, answered`]: `${goodput.toFixed(0)}/s, ${((100 * goodput) / rate).toFixed(0)} % (goal: ${GOAL * 100} %)`,
      'by REST in (p50 and p99)': `${timesOf(over.byPart['rest'])} (goal: 500 ms)`,
      'pages by GraphQL in': timesOf(over.byPart['graphql']),
      rejected: `${rejected.count}, with an answer in ${timesOf(rejected)} (goal: 50 ms)`,
      'as before after': `${back} s (goal: ${RECOVERY_S} s)`,
      'then answers in': timesOf(after.byPart['rest']),
      ...(!context.short && (await overloadPeak(plan))),
    };
  },
};

/** Sends three times the peak rate: rejections use a part of the capacity. */
async function overloadPeak(plan: Omit<LoadPlan, 'seconds' | 'connections'>): Promise<Figures> {
  const most = successesASecond(await load({ ...plan, connections: CROWD, seconds: 20 }));
  const over = await load({
    ...plan,
    connections: CONNECTIONS,
    opened: true,
    rate: FACTOR * most,
    seconds: SECONDS,
  });
  const goodput = goodputOf(over, SECONDS);
  return {
    [`the most it does, for ${CROWD} clients`]: `${most.toFixed(0)}/s`,
    [`of ${FACTOR} times that, answered`]: `${goodput.toFixed(0)}/s, ${((100 * goodput) / most).toFixed(0)} %`,
    'by REST then in': timesOf(over.byPart['rest']),
  };
}

function successesASecond(loaded: LoadResult): number {
  return countOf(loaded, 200, 299) / loaded.seconds;
}

function goodputOf({ bySecond }: LoadResult, seconds: number): number {
  const counted = bySecond.slice(SETTLING_S, seconds);
  return counted.reduce((sum, { ok }) => sum + ok, 0) / counted.length;
}
