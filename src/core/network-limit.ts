import { DomainError } from './errors.ts';

/** Seconds after which a rejected client should retry. */
const RETRY_S = 5;

/** A maximum per client network. */
export class NetworkLimit {
  private readonly amounts = new Map<string, number>();

  constructor(
    private readonly max: number,
    /** Message of the error above the maximum. */
    private readonly message: string,
  ) {}

  /** Throws RATE_LIMITED if the network would exceed its maximum by this amount. */
  check(network: string, amount = 1): void {
    if (this.amountOf(network) + amount > this.max)
      throw new DomainError('RATE_LIMITED', this.message, [], RETRY_S);
  }

  /** Adds an amount. Returns a function that subtracts it. Throws as `check`. */
  add(network: string, amount = 1): () => void {
    this.check(network, amount);
    this.amounts.set(network, this.amountOf(network) + amount);
    return () => {
      const remaining = this.amountOf(network) - amount;
      if (remaining > 0) this.amounts.set(network, remaining);
      else this.amounts.delete(network);
    };
  }

  private amountOf(network: string): number {
    return this.amounts.get(network) ?? 0;
  }
}
