import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { startServer, stopServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { openCluster, settingsFor } from './place.ts';
import { bearer, create, newBarcode } from './shopper.ts';

const CLIENTS = 20;

/** A request with a key. */
interface Named {
  key: string;
  barcode: string;
  /** The response; missing if the instance was killed first. */
  answer?: string;
}

export const idempotency: Fault = {
  name: 'idempotency',
  promise:
    'A write with an Idempotency-Key is executed once. After an instance was killed during the write, the same key on another instance, or on the restarted one, executes the write or returns the first response.',
  on: ['postgresql'],
  async run(context) {
    const { short, atEnd } = context;
    const cluster = await openCluster(context);
    const env = { ...settingsFor(cluster), LOG_LEVEL: 'silent', DATABASE_POOL_MAX: '5' };
    const other = await startServer(env);
    atEnd(() => stopServer(other, 'SIGKILL'));
    const token = await bearer(other.url);
    const kills = short ? 2 : 20;
    const all: Named[] = [];
    let done = 0;
    for (let kill = 0; kill < kills; kill++) {
      const victim = await startServer(env);
      atEnd(() => stopServer(victim, 'SIGKILL'));
      const named: Named[] = [];
      const clients = Array.from({ length: CLIENTS }, async (_, client) => {
        for (let turn = 0; ; turn++) {
          const request: Named = { key: `${kill}-${client}-${turn}`, barcode: newBarcode() };
          named.push(request);
          const { status, text } = await create(
            victim.url,
            { ...token, 'Idempotency-Key': request.key },
            request.barcode,
          );
          // The instance was killed.
          if (status === 0) return;
          assert.equal(status, 201, text);
          request.answer = text;
        }
      });
      await setTimeout(500 + Math.random() * 500);
      await stopServer(victim, 'SIGKILL');
      await Promise.all(clients);
      const stored = new Set(
        (await cluster.sql('select barcode from product')).map(({ barcode }) => barcode),
      );
      done += named.filter(
        ({ answer, barcode }) => answer === undefined && stored.has(barcode),
      ).length;
      // Every second time the same instance is restarted.
      const again = kill % 2 ? await startServer(env) : other;
      await Promise.all(
        Array.from({ length: CLIENTS }, async (_, client) => {
          for (const { key, barcode, answer } of named.filter(
            (_request, index) => index % CLIENTS === client,
          )) {
            const { status, text } = await create(
              again.url,
              { ...token, 'Idempotency-Key': key },
              barcode,
            );
            assert.equal(status, 201, text);
            if (answer !== undefined) assert.equal(text, answer);
          }
        }),
      );
      if (again !== other) await stopServer(again);
      all.push(...named);
    }
    const rows = await cluster.sql(`select barcode from product where barcode like '29%'`);
    assert.equal(rows.length, all.length);
    assert.deepEqual(
      new Set(rows.map(({ barcode }) => barcode)),
      new Set(all.map(({ barcode }) => barcode)),
    );
    return {
      kills,
      'writes with a key': all.length,
      'of these without an answer when the instance died': all.filter(
        ({ answer }) => answer === undefined,
      ).length,
      'and executed all the same': done,
      'products in the end': rows.length,
    };
  },
};
