import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { SECRET } from './secret.ts';

const ROOT = join(import.meta.dirname, '../..');
/** `sysconf(_SC_CLK_TCK)` of Linux on the machines that we know. */
export const TICKS_PER_SECOND = 100;
const START_MS = 60_000;

/** A server under measurement. */
export interface MeasuredServer {
  port: number;
  pid: number;
  /** Used processor time in seconds. */
  cpu(): number;
  /** Resident memory now and its peak, in MiB. */
  memory(): { now: number; peak: number };
  stop(): Promise<void>;
}

/** Starts our server as in production: on PostgreSQL, with its log on; optionally another checkout's. */
export function startOurs(
  databaseUrl: string,
  env: Record<string, string> = {},
  checkout = ROOT,
): Promise<MeasuredServer> {
  return start(commandIn(checkout), { ...production(databaseUrl), ...env }, '/readyz', checkout);
}

/** Starts our server on the embedded database in this directory. */
export function startEmbedded(directory: string): Promise<MeasuredServer> {
  return start(commandIn(ROOT), { DATA_DIR: directory, NODE_ENV: 'production' }, '/readyz');
}

function commandIn(checkout: string): string[] {
  return [process.execPath, join(checkout, 'dist/src/main.js')];
}

/** Returns the environment of our server. */
export function production(databaseUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    SIGNING_SECRET: SECRET,
    HOST: '127.0.0.1',
    PUBLIC_URL: 'http://shop.example',
    NODE_ENV: 'production',
  };
}

/** Starts the baseline. */
export function startBaseline(databaseUrl: string): Promise<MeasuredServer> {
  return start(
    [process.execPath, join(ROOT, 'dist/bench/baseline.js')],
    { DATABASE_URL: databaseUrl, NODE_ENV: 'production' },
    '/readyz',
  );
}

/** Starts a server that listens on PORT, and waits until this path returns 200. */
export async function start(
  [command = '', ...args]: readonly string[],
  env: Record<string, string>,
  readyAt: string,
  cwd = ROOT,
): Promise<MeasuredServer> {
  const port = await freePort();
  const child = spawn(command, args, {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: String(port), ...env },
    stdio: 'ignore',
  });
  await untilReady(child, port, readyAt);
  const pid = child.pid ?? 0;
  return {
    port,
    pid,
    cpu: () => cpuOf(pid),
    memory: () => memoryOf(pid),
    async stop() {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
}

async function untilReady(child: ChildProcess, port: number, path: string): Promise<void> {
  for (const end = Date.now() + START_MS; Date.now() < end; await setTimeout(10)) {
    if (child.exitCode !== null)
      throw new Error(`${child.spawnargs.join(' ')} exited with ${child.exitCode}`);
    const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer?.ok) return;
  }
  child.kill('SIGKILL');
  throw new Error(`${child.spawnargs.join(' ')} does not respond`);
}

function cpuOf(pid: number): number {
  const fields = statOf(pid);
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Returns the fields of `/proc/PID/stat` after the name. Throws once the process has exited. */
export function statOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
}

/** Returns the resident memory of a process and its peak, in MiB; NaN once it has exited. */
export function memoryOf(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1024;
  return { now: mib('VmRSS'), peak: mib('VmHWM') };
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
