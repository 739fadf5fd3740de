import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError } from 'graphql';
import { CloseCode, type Server } from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { Caller, Context } from '../../kit/context.ts';
import { DomainError } from '../../kit/errors.ts';
import { findCaller, isAnonymous } from '../credentials.ts';
import { unavailable, visibleError } from '../http-error.ts';
import { isFull } from '../in-flight.ts';
import { contextOf, type Services } from '../services.ts';
import { tellBehind, type Listener, type Listeners } from './listeners.ts';
import { Listening } from './listening.ts';
import { GRACE_MS } from './live.ts';
import type { Prepared } from './subscription.ts';

/** What WebSockets are closed with (RFC 6455, 7.4.1), and of our own the one for clients that fall behind. */
const GOING_AWAY = 1001;
const TOO_MANY_MESSAGES = 1008;
const TRY_AGAIN_LATER = 1013;
const FELL_BEHIND = 4410;
/** The reason has to fit into a frame of 125 bytes. */
const MAX_REASON = 120;
/** How many messages a client may send at once, and how many a second from then on. */
const BURST = 100;
const PER_SECOND = 10;

/** One WebSocket with its subscriptions. */
export class SocketListener implements Listener {
  caller: Caller | undefined;
  private readonly operations = new Map<string, Listening>();
  private isAlive = true;
  private isLeaving = false;
  private allowance = BURST;
  private countedAt = performance.now();
  private onIdle: (() => void) | undefined;

  constructor(
    private readonly socket: WebSocket,
    private readonly req: IncomingMessage,
    private readonly services: Services,
    readonly network: string,
  ) {}

  /** Speaks the protocol, until the socket closes. */
  open(protocol: Server<SocketListener>, listeners: Listeners): void {
    const { socket } = this;
    const remove = listeners.add(this);
    socket.on('error', () => socket.terminate());
    socket.on('pong', () => (this.isAlive = true));
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (text) => this.send(text),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (take) =>
          socket.on('message', (bytes: Buffer) => {
            if (!this.mayTake()) socket.close(TOO_MANY_MESSAGES, 'Too many messages');
            else take(bytes.toString()).catch((error: unknown) => this.fail(error));
          }),
      },
      this,
    );
    socket.once('close', (code, reason) => {
      for (const operation of this.operations.values()) operation.end();
      remove();
      void closed(code, reason.toString());
    });
  }

  /** Makes who the parameters of `connection_init` name the caller; without credentials there, those of the request's headers. */
  async identify(params: Readonly<Record<string, unknown>>): Promise<boolean> {
    const named = Object.entries(params).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    const headers = Object.fromEntries(named.map(([name, value]) => [name.toLowerCase(), value]));
    const ctx = this.contextFor(new Listening(this.req));
    try {
      if (isFull()) throw unavailable();
      const bearer = isAnonymous({ headers }) ? this.req : { headers };
      if (!isAnonymous(bearer)) await findCaller(ctx, bearer);
      this.caller = ctx.caller;
      return true;
    } catch (error) {
      const refusal = visibleError(error);
      if (!(refusal instanceof DomainError)) throw error;
      this.close(refusal.code === 'UNAVAILABLE' ? TRY_AGAIN_LATER : CloseCode.Forbidden, refusal.message);
      return false;
    }
  }

  /** Begins a subscription, as far as what prepares it does not refuse. */
  begin(
    id: string,
    prepare: (ctx: Context, listening: Listening) => Prepared | readonly GraphQLError[],
  ): Prepared | readonly GraphQLError[] {
    const most = this.services.config.maxSubscriptionsPerSocket;
    try {
      if (isFull()) throw unavailable();
      if (this.operations.size >= most) throw new DomainError('RATE_LIMITED', `This connection has ${most} subscriptions already`);
      const listening = new Listening(this.req);
      const ctx = this.contextFor(listening);
      if (this.caller) ctx.caller = this.caller;
      const prepared = prepare(ctx, listening);
      if (!('listening' in prepared)) return prepared;
      this.operations.set(id, listening);
      listening.onGiveUp(() => {
        if (listening.refusal?.code !== 'FELL_BEHIND' || this.isLeaving) return;
        tellBehind(this.services, this.network);
        void this.leave(FELL_BEHIND, listening.refusal);
      });
      return prepared;
    } catch (error) {
      const refusal = visibleError(error);
      if (!refusal) throw error;
      if (refusal instanceof DomainError) return [new GraphQLError(refusal.message, { originalError: refusal })];
      return [new GraphQLError(refusal.message, { extensions: { code: ApolloServerErrorCode.BAD_REQUEST } })];
    }
  }

  /** A subscription has ended, and the client knows. */
  complete(id: string): void {
    this.operations.get(id)?.end();
    this.operations.delete(id);
    if (this.operations.size === 0) this.onIdle?.();
  }

  lapse(refusal: DomainError): void {
    void this.leave(CloseCode.Forbidden, refusal);
  }

  goAway(): void {
    this.close(GOING_AWAY, 'Going away');
  }

  beat(): void {
    if (!this.isAlive) return this.socket.terminate();
    this.isAlive = false;
    this.socket.ping();
  }

  private contextFor(listening: Listening): Context {
    return contextOf(this.services, listening);
  }

  // What is not taken by the network yet is waited for, so that no more than one answer of a subscription ever lies here.
  private send(text: string): Promise<void> {
    if (this.socket.readyState !== this.socket.OPEN) return Promise.resolve();
    return new Promise((done) => this.socket.send(text, () => done()));
  }

  // First what each subscription is told, as far as the client reads it, and then the end.
  private async leave(code: number, refusal: DomainError): Promise<void> {
    if (this.isLeaving) return;
    this.isLeaving = true;
    for (const operation of this.operations.values()) operation.end(refusal);
    if (this.operations.size > 0) {
      const told = new Promise<void>((done) => (this.onIdle = done));
      await Promise.race([told, delay(GRACE_MS, undefined, { ref: false })]);
    }
    this.close(code, refusal.message);
  }

  private close(code: number, reason: string): void {
    this.socket.close(code, reason.slice(0, MAX_REASON));
    setTimeout(() => this.socket.terminate(), GRACE_MS).unref();
  }

  private fail(error: unknown): void {
    this.services.log.error({ err: error }, 'a message of a WebSocket failed');
    this.close(CloseCode.InternalServerError, 'Internal server error');
  }

  private mayTake(): boolean {
    const now = performance.now();
    this.allowance = Math.min(BURST, this.allowance + ((now - this.countedAt) / 1000) * PER_SECOND);
    this.countedAt = now;
    return --this.allowance >= 0;
  }
}
