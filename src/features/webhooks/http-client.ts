import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { lookup as lookUp } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent';
import type { Message } from './message.ts';
import { isPublic, refusalOf, type TargetRules } from './url-policy.ts';

/** How much of an answer is read before it is broken off, in bytes. */
const MAX_ANSWER = 64 * 1024;

/** What a target has answered. No more of it counts. */
export interface Reply {
  status: number;
  retryAfter: string | undefined;
}

/** Sends a message to an address. Rejects where nothing is answered, and with TargetRefused where nothing may be sent there. */
export type Send = (url: string, message: Message, signal: AbortSignal) => Promise<Reply>;

/** A target that is private, or has become so, and was not connected to. */
export class TargetRefused extends Error {
  override readonly name = 'TargetRefused';
}

/**
 * By HTTP, one connection for each message. Each address that is about to be connected to is looked at, whatever name led there, and redirections are
 * followed nowhere. Names are looked up as the system does it, unless another way is given.
 */
export function openSender(rules: TargetRules, lookup: LookupFunction = lookUp): Send {
  const allowed = { allowPrivateIPAddress: rules.webhookPrivateTargets, allowMetaIPAddress: rules.webhookPrivateTargets };
  const plain = new RequestFilteringHttpAgent(allowed);
  const secure = new RequestFilteringHttpsAgent(allowed);
  return async (url, { headers, body }, signal) => {
    // It was good when the webhook was added; the rules may be others now.
    const refusal = refusalOf(url, rules);
    if (refusal !== undefined) throw new TargetRefused(refusal);
    const agent = url.startsWith('https:') ? secure : plain;
    const sent = request(url, {
      method: 'POST',
      headers,
      agent,
      signal,
      lookup: rules.webhookPrivateTargets ? lookup : publicOnly(lookup),
    });
    // What fails when the answer has begun fails nobody.
    sent.on('error', () => undefined).end(body);
    // Where an answer changes the protocol, which nobody asked for, Node tells of no response, and of no error.
    const begun = Promise.race(['response', 'upgrade'].map((event) => once(sent, event, { signal })));
    try {
      const [answer, socket] = (await begun) as [IncomingMessage, Duplex?];
      if (socket) socket.destroy();
      else await readToEnd(answer);
      return { status: answer.statusCode ?? 0, retryAfter: answer.headers['retry-after'] };
    } catch (error) {
      throw asRefused(error);
    }
  };
}

// Whoever is broken off in the middle of an answer may take that for a failure. What happens to the rest of it does not matter here.
async function readToEnd(answer: IncomingMessage): Promise<void> {
  let size = 0;
  try {
    for await (const piece of answer as AsyncIterable<Buffer>) if ((size += piece.length) > MAX_ANSWER) break;
  } catch {
    // The status has come.
  }
}

// What the agent takes for public, and is not.
function publicOnly(lookup: LookupFunction): LookupFunction {
  return (name, options, callback) =>
    lookup(name, options, (error, found, family) => {
      const hidden = error
        ? undefined
        : [found]
            .flat()
            .map((each) => (typeof each === 'string' ? each : each.address))
            .find((address) => !isPublic(address));
      if (hidden === undefined) callback(error, found, family);
      else callback(new TargetRefused(`DNS lookup ${hidden}(host:${name}) is not allowed. It is no public address.`), '');
    });
}

// The agent's refusals have no code, and no class of their own.
function asRefused(error: unknown): unknown {
  return error instanceof Error && /^DNS lookup .* is not allowed\./.test(error.message) ? new TargetRefused(error.message) : error;
}
