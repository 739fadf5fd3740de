import { Webhook as Signer } from 'standardwebhooks';
import { VERSION } from '../../core/version.ts';

const USER_AGENT = `Shopfront/${VERSION}`;

/** What is sent to a webhook. */
export interface Message {
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** What it is made of: the id to tell it by, what has happened and when, and what is told of that. */
interface Contents {
  mid: string;
  kind: string;
  at: Date;
  data: object;
}

/** An event in the form of Standard Webhooks (https://www.standardwebhooks.com), signed at this moment with each of the secrets. */
export function messageOf({ mid, kind, at, data }: Contents, secrets: readonly string[], now: Date): Message {
  const body = JSON.stringify({ type: kind, timestamp: at.toISOString(), data });
  return {
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': USER_AGENT,
      'Webhook-Id': mid,
      'Webhook-Timestamp': String(Math.floor(now.getTime() / 1000)),
      'Webhook-Signature': secrets.map((secret) => new Signer(secret).sign(mid, now, body)).join(' '),
    },
    body,
  };
}
