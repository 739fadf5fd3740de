import assert from 'node:assert/strict';
import { abuse } from '../support/abuse.ts';
import { countOf, load, timesOf } from '../support/open-load.ts';
import { shopRequests } from '../support/shop-load.ts';
import type { Fault } from './fault.ts';
import { portOf, startStocked } from './place.ts';

const PRODUCTS = 10_000;
const CLIENTS = 32;
const PART = 0.3;
const ATTACKS_A_SECOND = 20;
const SECONDS = 30;
const SHORT_SECONDS = 4;

export const attacksBeside: Fault = {
  name: 'attacks-beside',
  promise:
    'Beside 20 attacks per second, a load of 30 % of the capacity has no failed request and at most twice the 99th percentile of response times.',
  on: ['postgresql'],
  async run(context) {
    const { server } = await startStocked(context, PRODUCTS);
    const { rest, pages } = await shopRequests(server.url);
    const parts = [
      { name: 'rest', share: 80, requests: rest },
      { name: 'pages', share: 20, requests: pages },
    ];
    const plan = { port: portOf(server), parts, seconds: context.short ? SHORT_SECONDS : SECONDS };
    const best = await load({ ...plan, connections: CLIENTS, seconds: context.short ? 3 : 10 });
    const rate = (PART * countOf(best, 200, 299)) / best.seconds;
    const quiet = await load({ ...plan, connections: 256, rate });
    const [beside, attacks] = await Promise.all([
      load({ ...plan, connections: 256, rate }),
      load({ ...plan, parts: abuse(), connections: 100, rate: ATTACKS_A_SECOND }),
    ]);
    for (const loaded of [quiet, beside]) {
      assert.equal(countOf(loaded, 200, 299), loaded.sent, JSON.stringify(loaded.answers));
      assert.deepEqual([loaded.lost, loaded.unanswered], [0, 0]);
    }
    assert.equal(countOf(attacks, 500, 599), 0, JSON.stringify(attacks.answers));
    const ratio = (beside.byPart['rest']?.p99 ?? 0) / (quiet.byPart['rest']?.p99 ?? 1);
    return {
      load: `${rate.toFixed(0)}/s`,
      attacks: attacks.sent,
      'p50 and p99 of reads, quiet': timesOf(quiet.byPart['rest']),
      'beside the attacks': `${timesOf(beside.byPart['rest'])}, ${ratio.toFixed(1)} times the p99 (goal: 2)`,
    };
  },
};
