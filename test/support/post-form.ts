import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';

/** Sends a form: `sent` resolves when it is on its way, `status` when it is answered. */
export function postForm(url: string, form: string): { sent: Promise<unknown>; status: Promise<number | undefined> } {
  const posted = request(url, { method: 'POST', agent: false, headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
  const status = once(posted, 'response').then(([answer]: IncomingMessage[]) => answer?.resume().statusCode);
  const sent = once(posted, 'finish');
  posted.end(form);
  return { sent, status };
}
