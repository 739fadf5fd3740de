import {
  spawn,
  type ChildProcess,
  type ChildProcessWithoutNullStreams,
  type SpawnOptions,
} from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Recorder } from './leaks.ts';

/** Exit code and output of a process. */
export interface ProcessResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A server in a process of its own, as `npm start` runs it. */
export interface RunningServer {
  child: ChildProcess;
  url: string;
  /** Its output at startup. */
  banner: string;
  /** Resolves when it has exited. */
  ended: Promise<ProcessResult>;
}

/** The user that a process runs as; by default, the current user. */
type SystemUser = Pick<SpawnOptions, 'uid' | 'gid'>;

const CLEAN_ENV = {
  PATH: process.env['PATH'] ?? '',
  HOME: process.env['HOME'] ?? '',
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
};

/**
 * Runs an entry point of the app until it exits, with only these settings, optionally as another
 * user.
 */
export async function run(
  entry: string,
  args: readonly string[],
  env: Record<string, string>,
  input = '',
  user: SystemUser = {},
): Promise<ProcessResult> {
  const { child, ended } = launch(entry, args, env, user);
  child.stdin?.end(input);
  return ended;
}

/** Runs a CLI command. */
export function cli(
  args: readonly string[],
  env: Record<string, string>,
  input?: string,
): Promise<ProcessResult> {
  return run('cli/main.js', args, env, input);
}

/** Runs a shell command until it exits, with our Node and only these settings. */
export async function shell(command: string, env: Record<string, string>): Promise<ProcessResult> {
  const PATH = `${dirname(process.execPath)}:${CLEAN_ENV.PATH}`;
  const child = spawn('bash', ['-c', command], { env: { ...CLEAN_ENV, PATH, ...env } });
  child.stdin.end();
  return outputOf(child);
}

/** Runs the contract kit, as `npm run contract` does. */
export function contract(
  args: readonly string[],
  env: Record<string, string> = {},
  input?: string,
): Promise<ProcessResult> {
  return run('../packages/contract/main.js', args, env, input);
}

/** Starts the server on a free port and waits until it listens. */
export async function startServer(
  env: Record<string, string>,
  user: SystemUser = {},
  entry = 'main.js',
): Promise<RunningServer> {
  const { child, ended } = launch(entry, [], { PORT: '0', LOG_LEVEL: 'error', ...env }, user);
  const banner = await new Promise<string>((done, fail) => {
    let printed = '';
    child.stdout?.on('data', (piece: Buffer) => {
      printed += piece.toString();
      if (/listens on [^\n]*\n/.test(printed)) setImmediate(() => done(printed));
    });
    void ended.then(({ code, stderr }) =>
      fail(new Error(`The server exited with ${code}: ${stderr}`)),
    );
  });
  return {
    child,
    ended,
    banner,
    url: /listens on (http:\/\/[^\s,]+)/.exec(banner)?.[1] ?? '',
  };
}

/** Sends a signal to a server and waits until it exits. */
export async function stopServer(
  { child, ended }: RunningServer,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<ProcessResult> {
  child.kill(signal);
  return ended;
}

/** Sends a signal to a process, unless it has exited, and waits until it exits. */
export async function endProcess(
  child: ChildProcess | undefined,
  signal: NodeJS.Signals = 'SIGTERM',
): Promise<void> {
  if (!child || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** Returns the pid of the embedded database of this data directory, while it is running. */
export async function databaseProcessOf(dataDir: string): Promise<number> {
  const lockFile = await readFile(join(dataDir, 'postgresql', 'postmaster.pid'), 'utf8');
  return Number(lockFile.split('\n')[0]);
}

/** Runs `npm` until it exits. */
export async function npm(
  args: readonly string[],
  env: Record<string, string>,
): Promise<ProcessResult> {
  return resultOf(spawn('npm', args, { env: { ...CLEAN_ENV, ...env } }));
}

/** Returns a free port. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a long-running process; does not wait. */
export function launch(
  entry: string,
  args: readonly string[],
  env: Record<string, string>,
  user: SystemUser = {},
): { child: ChildProcess; ended: Promise<ProcessResult> } {
  const child = spawn(process.execPath, [join(process.cwd(), 'dist/src', entry), ...args], {
    env: { ...CLEAN_ENV, ...env },
    ...user,
  });
  return { child, ended: resultOf(child) };
}

/** Resolves when the URL responds. */
export async function untilResponding(url: string): Promise<void> {
  for (;;) {
    try {
      return void (await fetch(url, { redirect: 'manual' }));
    } catch {
      await new Promise((done) => void setTimeout(done, 20));
    }
  }
}

async function resultOf(child: ChildProcessWithoutNullStreams): Promise<ProcessResult> {
  return checkLeaks(await outputOf(child));
}

async function outputOf(child: ChildProcessWithoutNullStreams): Promise<ProcessResult> {
  const [stdout, stderr] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: child.exitCode, stdout, stderr };
}

/** Returns the result. Throws if its output has a leak (leaks.ts). */
export function checkLeaks(ended: ProcessResult): ProcessResult {
  const recorder = new Recorder();
  // A new key or secret is the expected output of its command, alone or after an id.
  for (const printed of [
    ended.stdout.replace(/^([\da-f-]{36} {2})?(sk_[\w-]{43}|whsec_[\w+/]{43}=)\n$/, ''),
    ended.stderr,
  ])
    recorder.log(printed);
  recorder.assertClean();
  return ended;
}
