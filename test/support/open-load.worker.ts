import { connect, type Socket } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';
import { checkDigit } from '../../src/features/products/ean13.ts';
import { NEW_BARCODE, type LoadPlan, type LoadResult } from './open-load.ts';
import { Times } from './times.ts';

const LAST_ANSWERS_MS = 15_000;
const HEAD_END = Buffer.from('\r\n\r\n');

/** A connection, which carries one request at a time. */
interface Connection {
  socket: Socket;
  /** Scheduled time of its request; undefined while idle. */
  since: number | undefined;
  part: string;
  /** Start of an incomplete response head. */
  head: Buffer | undefined;
  /** Bytes of the response that are missing; undefined before its head is complete. */
  missing: number | undefined;
  status: number;
  isLast: boolean;
}

const plan = workerData as LoadPlan;
let began = performance.now();
let end = Infinity;
const byStatus = new Times<number>();
const byPart = new Times<string>();
const bySecond: { ok: number; rejected: number }[] = [];
const idle: Connection[] = [];
/** Scheduled times of requests that wait for a connection. */
const waiting: number[] = [];
const shares = plan.parts.map(({ name, share, requests }) => ({
  name,
  share,
  requests: requests.map((text) => Buffer.from(text, 'latin1')),
  next: 0,
}));
const total = shares.reduce((sum, { share }) => sum + share, 0);
let open = 0;
let busy = 0;
let [sent, lost, unconnected, closing] = [0, 0, 0, 0];
let barcode = Date.now() % 1e11;
let nextArrival = 0;
let hasBegun = false;
let isOver = false;

parentPort?.once('message', () => (isOver = true));
if (plan.opened) for (let count = 0; count < plan.connections; count++) openFor(undefined);
else begin();

function begin(): void {
  nextArrival = began = performance.now();
  end = began + plan.seconds * 1000;
  tick();
}

// Late responses do not delay the schedule: otherwise a slow server would reduce its own load.
function tick(): void {
  const now = performance.now();
  isOver ||= now >= end;
  if (!isOver) {
    if (plan.rate === undefined) {
      while (busy + waiting.length < plan.connections) arrive(now);
    } else {
      for (; nextArrival <= now; nextArrival += (-Math.log(1 - Math.random()) * 1000) / plan.rate)
        arrive(nextArrival);
    }
  }
  const isDone = isOver && ((busy === 0 && waiting.length === 0) || now > end + LAST_ANSWERS_MS);
  if (isDone) report(now);
  else setTimeout(tick, 1);
}

function arrive(since: number): void {
  const free = idle.shift();
  if (free) send(free, since);
  else if (open < plan.connections) openFor(since);
  else waiting.push(since);
}

function openFor(since: number | undefined): void {
  open++;
  if (since !== undefined) busy++;
  const socket = connect(plan.port, '127.0.0.1');
  const connection: Connection = {
    socket,
    since,
    part: '',
    head: undefined,
    missing: undefined,
    status: 0,
    isLast: false,
  };
  let isConnected = false;
  socket.setNoDelay(true);
  socket.on('connect', () => {
    isConnected = true;
    if (since !== undefined) {
      busy--;
      send(connection, since);
      return;
    }
    idle.push(connection);
    if (end === Infinity && idle.length === plan.connections) begin();
  });
  socket.on('data', (piece: Buffer) => receive(connection, piece));
  let wasReset = false;
  socket.on('error', (error) => (wasReset = 'code' in error && error.code === 'ECONNRESET'));
  socket.on('close', () => {
    open--;
    if (!isConnected && plan.opened && end === Infinity)
      throw new Error('The connections could not be opened');
    const isAccepted = !plan.stopsListening || !wasReset || connection.status !== 0;
    if (!isConnected) unconnected++;
    else if (connection.since !== undefined && isAccepted) lost++;
    else if (connection.since !== undefined) {
      unconnected++;
      sent--;
    }
    if (connection.since !== undefined) busy--;
    connection.since = undefined;
    const at = idle.indexOf(connection);
    if (at >= 0) idle.splice(at, 1);
    const next = waiting.shift();
    if (next !== undefined) arrive(next);
  });
}

function send(connection: Connection, since: number): void {
  connection.since = since;
  busy++;
  sent++;
  connection.socket.write(pick(connection));
}

function pick(connection: Connection): Buffer {
  let at = Math.random() * total;
  const part = shares.find(({ share }) => (at -= share) < 0) ?? shares[0];
  const request = part?.requests[part.next++ % part.requests.length];
  if (!part || !request) throw new Error('The load has no requests');
  connection.part = part.name;
  return request.includes(NEW_BARCODE)
    ? Buffer.from(request.toString('latin1').replace(NEW_BARCODE, newBarcode()))
    : request;
}

function newBarcode(): string {
  const digits = `4${String(barcode++).padStart(11, '0')}`;
  return digits + checkDigit(digits);
}

function receive(connection: Connection, piece: Buffer): void {
  let rest = piece;
  if (connection.missing === undefined) {
    const all = connection.head ? Buffer.concat([connection.head, piece]) : piece;
    const at = all.indexOf(HEAD_END);
    if (at < 0) return void (connection.head = all);
    const head = all.toString('latin1', 0, at);
    connection.head = undefined;
    connection.status = Number(head.slice(9, 12));
    connection.missing = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    connection.isLast = /\r\nconnection: close/i.test(head);
    rest = all.subarray(at + HEAD_END.length);
  }
  connection.missing -= rest.length;
  if (connection.missing <= 0) finish(connection);
}

function finish(connection: Connection): void {
  const now = performance.now();
  const ms = now - (connection.since ?? now);
  if (!hasBegun) parentPort?.postMessage('begun', []);
  hasBegun = true;
  record(connection, ms, now);
  connection.since = undefined;
  connection.missing = undefined;
  busy--;
  if (connection.isLast) {
    closing++;
    connection.socket.destroy();
    return;
  }
  const next =
    waiting.shift() ?? (plan.rate === undefined && now < end && !isOver ? now : undefined);
  if (next === undefined) idle.push(connection);
  else send(connection, next);
}

function record({ status, part }: Connection, ms: number, now: number): void {
  byStatus.record(status, ms);
  if (status < 300) byPart.record(part, ms);
  const second = (bySecond[Math.floor((now - began) / 1000)] ??= { ok: 0, rejected: 0 });
  if (status === 503) second.rejected++;
  if (status < 300) second.ok++;
}

function report(now: number): void {
  const none = { ok: 0, rejected: 0 };
  const loaded: LoadResult = {
    seconds: (Math.min(now, end) - began) / 1000,
    sent,
    answers: byStatus.summed(),
    byPart: byPart.summed(),
    lost,
    unconnected,
    unanswered: busy + waiting.length,
    closing,
    bySecond: Array.from(bySecond, (second) => second ?? none),
  };
  parentPort?.postMessage(loaded, []);
}
