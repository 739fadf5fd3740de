import { headersOf, type SentRequest } from './request.ts';
import type { Secrets } from './secrets.ts';

/** Maximum length of a command, in characters. */
const MAX_LENGTH = 1_000;

/**
 * The request as a command of curl, with shell variables in place of secrets. Undefined if it would
 * contain a credential, or be too long to read.
 */
export function curlOf(
  { base, path, method, options }: SentRequest,
  secrets: Secrets,
): string | undefined {
  const { 'User-Agent': _, ...headers } = headersOf(options);
  const { form = {}, json, body } = options;
  const data = json === undefined ? body : JSON.stringify(json);
  const words = [
    // The quoted path, with the base URL, which has no quotes.
    secrets.shellWord(path)?.replace("'", () => `'${base}`),
    ...Object.entries(headers).flatMap(([name, value]) => [
      '-H',
      secrets.shellWord(`${name}: ${value}`),
    ]),
    ...Object.entries(form).flatMap(([name, value]) => [
      '--data-urlencode',
      secrets.shellWord(`${name}=${value}`),
    ]),
    ...(data === undefined ? [] : ['--data-raw', secrets.shellWord(data)]),
  ];
  if (secrets.hasShort || words.includes(undefined)) return undefined;
  const start =
    method === 'HEAD' ? 'curl -I' : method === 'GET' ? 'curl -i' : `curl -i -X ${method}`;
  const command = `${start} ${words.join(' ')}`;
  return command.length > MAX_LENGTH ? undefined : command;
}
