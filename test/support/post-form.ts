import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';

/** Sends a form: `sent` resolves when it is sent, `status` when the response arrives. */
export function postForm(
  url: string,
  form: string,
): { sent: Promise<unknown>; status: Promise<number | undefined> } {
  const req = request(url, {
    method: 'POST',
    agent: false,
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  });
  const status = once(req, 'response').then(
    ([answer]: IncomingMessage[]) => answer?.resume().statusCode,
  );
  const sent = once(req, 'finish');
  req.end(form);
  return { sent, status };
}
