import assert from 'node:assert/strict';
import { countOf, load, timesOf, type Loaded, type LoadPlan } from '../support/open-load.ts';
import { mixed, shopRequests } from '../support/shop-load.ts';
import type { Fault, Figures } from './fault.ts';
import { addProducts, portOf, makePlace, QUIET, startShop } from './place.ts';

const PRODUCTS = 10_000;
/** What can be served is what so many clients get who wait for each answer. */
const CLIENTS = 32;
/** So many get the most that is done at all, in whatever time. */
const CROWD = 128;
const FACTOR = 3;
const SECONDS = 60;
const SHORT_SECONDS = 6;
/** Clients that wait at the same time: each has a connection. */
const CONNECTIONS = 1_000;
/** Of the overload, these seconds are left out at its start: it takes a moment to be noticed. */
const NOTICED_AFTER_S = 2;
const BACK_WITHIN_S = 5;
const GOAL = 0.8;

export const overload: Fault = {
  name: 'overload',
  promise:
    'Asked three times as much as it serves to clients who wait for each answer, it serves as much as before, in good time, and refuses the rest at once with 503; then it is as before.',
  rows: ['L4'],
  on: ['postgresql'],
  async run(world) {
    const { cluster, env } = await makePlace(world, QUIET);
    if (cluster) await addProducts(cluster, PRODUCTS);
    const server = await startShop(world, { ...env, LOG_LEVEL: 'warn' });
    const parts = mixed(await shopRequests(server.url));
    const plan = { port: portOf(server), parts };
    const seconds = world.short ? SHORT_SECONDS : SECONDS;
    await load({ ...plan, connections: CLIENTS, seconds: world.short ? 2 : 10 });
    const peak = await load({ ...plan, connections: CLIENTS, seconds: Math.min(seconds, 20) });
    const rate = successesASecond(peak);
    const over = await load({ ...plan, connections: CONNECTIONS, opened: true, rate: FACTOR * rate, seconds });
    const after = await load({
      ...plan,
      connections: CONNECTIONS,
      opened: true,
      rate: rate / 2,
      seconds: BACK_WITHIN_S + (world.short ? 2 : 10),
    });
    const goodput = goodputOf(over, seconds);
    const refused = over.answers[503];
    assert.ok(refused, 'nothing was refused');
    for (const loaded of [peak, over, after]) {
      assert.equal(countOf(loaded, 200, 299) + countOf(loaded, 503), countOf(loaded, 100, 599), JSON.stringify(loaded.answers));
      assert.deepEqual([loaded.lost, loaded.unanswered], [0, 0]);
    }
    const back = after.bySecond.findIndex(
      ({ refused: count }, second) => count === 0 && after.bySecond.slice(second).every((each) => each.refused === 0),
    );
    if (!world.short) assert.ok(back >= 0 && back <= BACK_WITHIN_S, 'it still refuses');
    if (!world.short) assert.ok(goodput >= GOAL * rate, `${goodput.toFixed(0)} of ${rate.toFixed(0)} a second`);
    return {
      [`to ${CLIENTS} clients`]: `${rate.toFixed(0)}/s`,
      [`of ${FACTOR} times as many, answered`]: `${goodput.toFixed(0)}/s, ${((100 * goodput) / rate).toFixed(0)} % (goal: ${GOAL * 100} %)`,
      'by REST in (p50 and p99)': `${timesOf(over.byPart['rest'])} (goal: 500 ms)`,
      'pages by GraphQL in': timesOf(over.byPart['graphql']),
      refused: `${refused.count}, with an answer in ${timesOf(refused)} (goal: 50 ms)`,
      'as before after': `${back} s (goal: ${BACK_WITHIN_S} s)`,
      'then answers in': timesOf(after.byPart['rest']),
      ...(!world.short && (await beyondAll(plan))),
    };
  },
};

/** Asks for three times the most that is done at all: to refuse costs a part of what is left. */
async function beyondAll(plan: Omit<LoadPlan, 'seconds' | 'connections'>): Promise<Figures> {
  const most = successesASecond(await load({ ...plan, connections: CROWD, seconds: 20 }));
  const over = await load({ ...plan, connections: CONNECTIONS, opened: true, rate: FACTOR * most, seconds: SECONDS });
  const goodput = goodputOf(over, SECONDS);
  return {
    [`the most it does, for ${CROWD} clients`]: `${most.toFixed(0)}/s`,
    [`of ${FACTOR} times that, answered`]: `${goodput.toFixed(0)}/s, ${((100 * goodput) / most).toFixed(0)} %`,
    'by REST then in': timesOf(over.byPart['rest']),
  };
}

function successesASecond(loaded: Loaded): number {
  return countOf(loaded, 200, 299) / loaded.seconds;
}

function goodputOf({ bySecond }: Loaded, seconds: number): number {
  const counted = bySecond.slice(NOTICED_AFTER_S, seconds);
  return counted.reduce((sum, { ok }) => sum + ok, 0) / counted.length;
}
