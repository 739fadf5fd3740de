import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { request, type RequestOptions } from 'node:https';
import { connect as connectPlain, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll } from './jest.ts';
import { makeDataDir, removeDirectory } from './directories.ts';
import { HEADER, manyRows } from './import-files.ts';
import { Recorder } from './leaks.ts';
import { startTlsNginx, type Edits, type TlsNginx } from './nginx.ts';
import { cli, startServer, stopServer, type RunningServer } from './process.ts';

const PAGE = '/api/v2/shop/products';
/** A name of 1 KB. */
const LONG_NAME = '🧀'.repeat(245);

/** A response, and the connection that it came on. */
export interface Reply {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
}

/** The app as a process, and nginx in front of it as deploy/nginx configures it. */
export class ProxiedShop {
  server!: RunningServer;
  nginx!: TlsNginx;
  private readonly sockets = new Set<Socket>();
  private readonly recorder = new Recorder();
  private directories: string[] = [];
  private clients = 0;
  private log = '';

  /** Starts both, with this number of products with long names. */
  async start(edits: Edits, products: number, env: Record<string, string>): Promise<void> {
    const [data, directory] = [await makeDataDir(), await mkdtemp(join(tmpdir(), 'shopfront-'))];
    this.directories = [data, directory];
    if (products > 0) {
      const file = join(directory, 'products.csv');
      const rows = manyRows(products).map((row) => row.replace('Row', LONG_NAME));
      await writeFile(file, `${HEADER}\n${rows.join('')}`);
      const { code, stderr } = await cli(['products', 'import', file], { DATA_DIR: data });
      if (code !== 0) throw new Error(stderr);
    }
    this.server = await startServer({
      DATA_DIR: data,
      TRUST_PROXY: '127.0.0.1',
      LOG_LEVEL: 'info',
      LOG_FORMAT: 'json',
      ...env,
    });
    this.server.child.stderr?.on('data', (piece: Buffer) => (this.log += piece.toString()));
    this.nginx = await startTlsNginx(directory, [this.instancePort], edits);
  }

  /** Closes all sockets, and checks responses for leaks. */
  closeSockets(): void {
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
    this.recorder.assertClean();
  }

  async stop(): Promise<void> {
    await this.nginx?.stop();
    if (this.server) await stopServer(this.server);
    for (const directory of this.directories) await removeDirectory(directory);
  }

  get port(): number {
    return Number(new URL(this.nginx.url).port);
  }

  get instancePort(): number {
    return Number(new URL(this.server.url).port);
  }

  /** The lines of the instance's log so far. */
  get logged(): Record<string, unknown>[] {
    const whole = this.log.slice(0, this.log.lastIndexOf('\n') + 1);
    return whole
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Returns an address of this machine that no client has used. */
  newAddress(): string {
    this.clients++;
    return `127.0.1.${this.clients}`;
  }

  /** Opens a connection through TLS. */
  async open(localAddress?: string, ALPNProtocols = ['http/1.1']): Promise<TLSSocket> {
    const socket = await this.openPlain(this.port, localAddress);
    const secure = connect({ ...this.target, socket, ALPNProtocols });
    this.track(secure);
    await once(secure, 'secureConnect');
    return secure;
  }

  /** Opens a connection that has not begun with TLS. */
  async openPlain(port = this.port, localAddress = this.newAddress()): Promise<Socket> {
    const socket = connectPlain({ port, host: '127.0.0.1', localAddress });
    this.track(socket);
    await once(socket, 'connect');
    return socket;
  }

  /** Sends the text. Returns the response when nginx has closed the connection. */
  async raw(sent: string, localAddress?: string): Promise<string> {
    const socket = await this.open(localAddress);
    const answer = untilClosed(socket);
    socket.write(sent, 'latin1');
    const received = await answer;
    this.recorder.answer(received);
    return received;
  }

  /** Sends a request on a connection of its own. */
  async send(
    path: string,
    { body, ...options }: RequestOptions & { body?: string } = {},
  ): Promise<Reply> {
    const localAddress = options.localAddress ?? this.newAddress();
    const sent = request({ ...this.target, agent: false, path, ...options, localAddress });
    const answered = once(sent, 'response');
    sent.end(body);
    const [res] = (await answered) as [import('node:http').IncomingMessage];
    const received = await text(res);
    this.recorder.answer(received);
    return { status: res.statusCode ?? 0, headers: res.headers, text: received };
  }

  /** Throws unless requests of another client succeed. */
  async expectServed(): Promise<void> {
    for (const path of [PAGE, '/readyz', '/livez']) {
      const { status } = await this.send(path, { localAddress: '127.0.0.2' });
      if (status !== 200) throw new Error(`${path}: ${status}`);
    }
  }

  /** Returns the number of open connections to the instance. */
  upstreamConnections(): number {
    return connectionsTo(this.instancePort);
  }

  /** Returns the number of open connections to nginx. */
  connections(): number {
    return connectionsTo(this.port);
  }

  /** Returns what the instance has open: paths of files, and sockets. */
  openFiles(): string[] {
    const directory = `/proc/${this.server.child.pid}/fd`;
    return readdirSync(directory).flatMap((descriptor) => {
      try {
        return readlinkSync(join(directory, descriptor));
      } catch {
        return [];
      }
    });
  }

  /** The address of nginx for TLS. */
  get target() {
    return { host: '127.0.0.1', port: this.port, ca: this.nginx.certificate };
  }

  private track(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => undefined);
  }
}

/**
 * Returns the shop behind nginx of all tests of a file. The edits shorten time-outs; products have
 * names of 1 KB.
 */
export function useProxiedShop(
  edits: Edits = [],
  products = 0,
  env: Record<string, string> = {},
): ProxiedShop {
  const shop = new ProxiedShop();
  beforeAll(() => shop.start(edits, products, env));
  afterEach(() => shop.closeSockets());
  afterAll(() => shop.stop());
  return shop;
}

/** Returns what a client receives until its connection is closed or reset. */
export function untilClosed(socket: Socket): Promise<string> {
  let received = '';
  socket.on('data', (piece: Buffer) => (received += piece.toString('latin1')));
  return new Promise((done) => void socket.once('close', () => done(received)));
}

/** Waits until a socket is closed or reset. */
export function closed(socket: Socket): Promise<void> {
  return new Promise((done) => (socket.closed ? done() : void socket.once('close', () => done())));
}

/** Returns the statuses of all responses, in order. */
export function statusesOf(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status));
}

// Counts the connections to a port of 127.0.0.1 that are not closed (proc(5), tcp). A client may have
// the same port at another address.
function connectionsTo(port: number): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const [LISTEN, TIME_WAIT] = ['0A', '06'];
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, address, , state]) => address === local && state !== LISTEN && state !== TIME_WAIT)
    .length;
}
