import { readdirSync, readFileSync } from 'node:fs';
import bcrypt from 'bcrypt';
import { PASSWORD, USERS } from './catalogue.ts';
import { load, type BenchRequest, type Load } from './load.ts';
import type { MeasuredServer } from './processes.ts';
import type { Work } from './works.ts';

const HASH_MS = 2_000;
const LOGIN_CLIENTS = 8;
const BCRYPT_COST = 10;

/** Reads alone, and during a storm of logins, in one round. */
export interface StormRound {
  quiet: Load;
  storm: Load;
  logins: Load;
  /** Cores used by the hashing threads, and the maximum number of logins per second on these. */
  cores: number;
  limit: number;
}

/** Loads the server with reads, first alone and then during logins of many users. */
export async function storm(
  ours: MeasuredServer,
  reads: Work,
  seconds: number,
): Promise<StormRound> {
  const requests = Array.from({ length: reads.different }, (_, index) => reads.request(index));
  const quiet = await load(ours.port, requests, seconds);
  const before = hashingSeconds(ours.pid);
  const [beside, logins] = await Promise.all([
    load(ours.port, requests, seconds),
    load(ours.port, allLogins(), seconds, LOGIN_CLIENTS),
  ]);
  const cores = (hashingSeconds(ours.pid) - before) / seconds;
  return { quiet, storm: beside, logins, cores, limit: cores * hashesOfOneCore() };
}

/** Returns a login of each user. */
export function allLogins(): BenchRequest[] {
  return Array.from({ length: USERS }, (_, index) => ({
    method: 'POST',
    path: '/token',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ username: `user${index + 1}`, password: PASSWORD }).toString(),
  }));
}

// Only the hashing threads have a positive nice value.
function hashingSeconds(pid: number): number {
  return readdirSync(`/proc/${pid}/task`)
    .map(
      (task) =>
        readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [],
    )
    .filter((fields) => Number(fields[16]) > 0)
    .reduce((sum, fields) => sum + (Number(fields[11]) + Number(fields[12])) / 100, 0);
}

function hashesOfOneCore(): number {
  const hash = bcrypt.hashSync(PASSWORD, BCRYPT_COST);
  const start = process.cpuUsage();
  let done = 0;
  for (const end = performance.now() + HASH_MS; performance.now() < end; done++)
    bcrypt.compareSync(PASSWORD, hash);
  const { user, system } = process.cpuUsage(start);
  return done / ((user + system) / 1e6);
}
