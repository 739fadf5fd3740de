import { Webhook as Signer } from 'standardwebhooks';
import { VERSION } from '../../core/version.ts';

const USER_AGENT = `Shopfront/${VERSION}`;

/** HTTP headers and body of a webhook message. */
export interface Message {
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** Message id, event kind, event time and event data of a message. */
interface WebhookEvent {
  messageId: string;
  kind: string;
  at: Date;
  data: object;
}

/**
 * Returns an event as a message of Standard Webhooks (https://www.standardwebhooks.com), signed
 * with each secret at the time `now`.
 */
export function messageOf(
  { messageId, kind, at, data }: WebhookEvent,
  secrets: readonly string[],
  now: Date,
): Message {
  const body = JSON.stringify({ type: kind, timestamp: at.toISOString(), data });
  return {
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': USER_AGENT,
      'Webhook-Id': messageId,
      'Webhook-Timestamp': String(Math.floor(now.getTime() / 1000)),
      'Webhook-Signature': secrets
        .map((secret) => new Signer(secret).sign(messageId, now, body))
        .join(' '),
    },
    body,
  };
}
