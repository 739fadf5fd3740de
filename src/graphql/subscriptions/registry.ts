import { AsyncResource } from 'node:async_hooks';
import { lapsesOf } from '../../features/auth/sessions/credential-expiry.service.ts';
import type { Caller } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { gauge } from '../../core/metrics.ts';
import { unavailable } from '../../http/http-error.ts';
import type { Services } from '../../http/dependencies.ts';

/** How often it is looked whether the credentials of who listens are still good, in ms. */
const LOOK_EVERY_MS = 500;
/** At every so many looks, connections are shown to be alive: every 12 s. */
const LOOKS_A_BEAT = 24;
/** When it is worth asking again, in seconds. */
const RETRY_S = 5;

/** A connection on which somebody listens: a WebSocket, or a stream of events. */
export interface Listener {
  readonly network: string;
  /** Who listens, once that is known. */
  readonly caller: Caller | undefined;
  /** Ends it because the caller's credentials are no longer good. */
  lapse(refusal: DomainError): void;
  /** Ends it because this process is on its way out, so that the client comes back and meets another. */
  goAway(): void;
  /** Sends a sign of life, and gives up who gives none. */
  beat(): void;
}

/** Tells the log of one who is let go. */
export function tellBehind({ log }: Pick<Services, 'log'>, network: string): void {
  log.info({ event: 'subscription.behind', network }, 'a listener that fell behind is let go');
}

/** All who listen to this process. Their credentials are looked at together, by one statement. */
export class Listeners {
  private readonly all = new Set<Listener>();
  /** Those who have been told, and may still be reading it. */
  private readonly lapsed = new WeakSet<Listener>();
  private readonly byNetwork = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;
  private looks = 0;
  private isLooking = false;
  private isClosed = false;

  // As part of nobody's request, whoever is the first to listen.
  private readonly startLooking = AsyncResource.bind(() => setInterval(() => void this.look(), LOOK_EVERY_MS).unref());

  constructor(private readonly services: Services) {
    gauge('shopfront_listeners', 'WebSockets and streams of events that are open.', () => this.count);
  }

  /** How many there are. */
  get count(): number {
    return this.all.size;
  }

  /** Throws UNAVAILABLE where there can be no more, and RATE_LIMITED where there can be no more from this network. */
  refuseMore(network: string): void {
    const { maxLiveConnections, maxLivePerAddress } = this.services.config;
    if (this.isClosed || this.services.isDraining() || this.all.size >= maxLiveConnections) throw unavailable();
    if ((this.byNetwork.get(network) ?? 0) < maxLivePerAddress) return;
    throw new DomainError('RATE_LIMITED', 'There are too many live connections from this address', [], RETRY_S);
  }

  /** Adds one, and returns what takes it away again. Throws as `refuseMore`. */
  add(listener: Listener): () => void {
    const { network } = listener;
    this.refuseMore(network);
    this.all.add(listener);
    this.byNetwork.set(network, (this.byNetwork.get(network) ?? 0) + 1);
    this.timer ??= this.startLooking();
    return () => {
      if (!this.all.delete(listener)) return;
      const others = (this.byNetwork.get(network) ?? 1) - 1;
      if (others > 0) this.byNetwork.set(network, others);
      else this.byNetwork.delete(network);
      if (this.all.size > 0) return;
      clearInterval(this.timer);
      this.timer = undefined;
    };
  }

  /** Sends everyone away, and takes no more. */
  close(): void {
    this.isClosed = true;
    for (const listener of this.all) listener.goAway();
  }

  private async look(): Promise<void> {
    if (++this.looks % LOOKS_A_BEAT === 0) for (const listener of this.all) listener.beat();
    if (this.isLooking) return;
    this.isLooking = true;
    try {
      await this.endLapsed();
    } catch {
      // While the database is away, nobody can be shown to have gone. Requests tell of its trouble.
    } finally {
      this.isLooking = false;
    }
  }

  private async endLapsed(): Promise<void> {
    const { database, now, log } = this.services;
    const known = [...this.all].flatMap((listener) => (listener.caller ? [{ listener, caller: listener.caller }] : []));
    const statements = known.length > 0 ? database()?.statements : undefined;
    if (!statements) return;
    const lapses = await lapsesOf(
      { statements, now },
      known.map(({ caller }) => caller),
    );
    for (const { listener, caller } of known) {
      const lapse = lapses.get(caller);
      if (!lapse || !this.all.has(listener) || this.lapsed.has(listener)) continue;
      this.lapsed.add(listener);
      const reason = lapse.reason ?? (caller.apiKeyId === undefined ? 'TOKEN' : 'API_KEY');
      log.info({ event: 'auth.lapsed', user: caller.username, reason }, 'a listener has lost its credentials');
      listener.lapse(lapse);
    }
  }
}
