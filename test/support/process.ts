import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Recorder } from './leaks.ts';

/** What a process that has ended left. */
export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A server in a process of its own, as `npm start` runs it. */
export interface RunningServer {
  child: ChildProcess;
  url: string;
  /** What it printed when it was ready. */
  welcome: string;
  /** Resolves when it has ended. */
  ended: Promise<Ended>;
}

/** Who a process runs as; whoever runs the tests, where none is named. */
type SystemUser = Pick<SpawnOptions, 'uid' | 'gid'>;

const CLEAN_ENV = {
  PATH: process.env['PATH'] ?? '',
  HOME: process.env['HOME'] ?? '',
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
};

/** Runs an entry point of the app to its end, with only these settings, and as another user where one is given. */
export async function run(
  entry: string,
  args: readonly string[],
  env: Record<string, string>,
  input = '',
  user: SystemUser = {},
): Promise<Ended> {
  const { child, ended } = launch(entry, args, env, user);
  child.stdin?.end(input);
  return ended;
}

/** Runs a command of the operator's command line. */
export function cli(args: readonly string[], env: Record<string, string>, input?: string): Promise<Ended> {
  return run('cli/main.js', args, env, input);
}

/** Runs this in a shell to its end, with our own Node and only these settings. */
export async function shell(command: string, env: Record<string, string>): Promise<Ended> {
  const PATH = `${dirname(process.execPath)}:${CLEAN_ENV.PATH}`;
  const child = spawn('bash', ['-c', command], { env: { ...CLEAN_ENV, PATH, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}

/** Starts this in a shell on a terminal of its own (script of util-linux), which has what is written to the child's input for typed. */
export function onTerminal(command: string, env: Record<string, string>): { child: ChildProcess; ended: Promise<Ended> } {
  const PATH = `${dirname(process.execPath)}:${CLEAN_ENV.PATH}`;
  const child = spawn('script', ['-qec', `stty rows 40 columns 120; ${command}`, '/dev/null'], {
    env: { ...CLEAN_ENV, PATH, ...env, SHELL: '/bin/sh' },
  });
  return { child, ended: leftBy(child) };
}

/** Runs the contract kit, as `npm run contract` does. */
export function contract(args: readonly string[], env: Record<string, string> = {}, input?: string): Promise<Ended> {
  return run('../contract/main.js', args, env, input);
}

/** Starts the server on a free port and waits until it says that it listens. */
export async function startServer(env: Record<string, string>, user: SystemUser = {}): Promise<RunningServer> {
  const { child, ended } = launch('main.js', [], { PORT: '0', LOG_LEVEL: 'error', ...env }, user);
  const welcome = await new Promise<string>((done, fail) => {
    let printed = '';
    child.stdout?.on('data', (piece: Buffer) => {
      printed += piece.toString();
      if (/listens on [^\n]*\n/.test(printed)) setImmediate(() => done(printed));
    });
    void ended.then(({ code, stderr }) => fail(new Error(`the server ended with ${code}: ${stderr}`)));
  });
  return { child, ended, welcome, url: /listens on (http:\/\/[^\s,]+)/.exec(welcome)?.[1] ?? '' };
}

/** Asks a server to end and waits until it has. */
export async function stopServer({ child, ended }: RunningServer, signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
  child.kill(signal);
  return ended;
}

/** Runs `npm` with these arguments to its end, or until the work with what it has printed is done. */
export async function npm(
  args: readonly string[],
  env: Record<string, string>,
  until?: { prints: RegExp; work: (printed: string) => Promise<void> },
): Promise<Ended> {
  const child = spawn('npm', args, { env: { ...CLEAN_ENV, ...env } });
  const ended = leftBy(child);
  if (until) {
    let printed = '';
    await new Promise<void>((done, fail) => {
      child.stdout.on('data', (piece: Buffer) => until.prints.test((printed += piece.toString())) && done());
      void ended.then(({ stderr }) => fail(new Error(stderr)));
    });
    await until.work(printed);
    child.kill('SIGTERM');
  }
  return ended;
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** Starts a process that is to stay, without waiting for anything. */
export function launch(
  entry: string,
  args: readonly string[],
  env: Record<string, string>,
  user: SystemUser = {},
): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [join(process.cwd(), 'dist/src', entry), ...args], { env: { ...CLEAN_ENV, ...env }, ...user });
  return { child, ended: leftBy(child) };
}

/** Resolves when something answers there. */
export async function answering(url: string): Promise<void> {
  for (;;) {
    try {
      return void (await fetch(url));
    } catch {
      await new Promise((done) => void setTimeout(done, 20));
    }
  }
}

async function leftBy(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return checkLeaks({ code: child.exitCode, stdout, stderr });
}

/** Returns what was printed. Throws where it has what nothing may print (leaks.ts). */
export function checkLeaks(ended: Ended): Ended {
  const recorder = new Recorder();
  // A key or secret that is all of what a command prints, but for an id, is what it was asked for.
  for (const printed of [ended.stdout.replace(/^([\da-f-]{36} {2})?(sk_[\w-]{43}|whsec_[\w+/]{43}=)\n$/, ''), ended.stderr])
    recorder.log(printed);
  recorder.assertClean();
  return ended;
}
