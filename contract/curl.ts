import { headersOf, type SentRequest } from './request.ts';
import type { Secrets } from './secrets.ts';

/** Maximum length of a command, in characters. */
const MAX_LENGTH = 1_000;

/**
 * The request as a command of curl, with shell variables in place of secrets; undefined if it is
 * too long to read.
 */
export function curlOf(
  { url, method, options }: SentRequest,
  secrets: Secrets,
): string | undefined {
  const { 'User-Agent': _, ...headers } = headersOf(options);
  const { form = {}, json, body } = options;
  const data = json === undefined ? body : JSON.stringify(json);
  const parts: [option: string, value: string][] = [
    ...Object.entries(headers).map(
      ([name, value]) => ['-H', `${name}: ${value}`] as [string, string],
    ),
    ...Object.entries(form).map(
      ([name, value]) => ['--data-urlencode', `${name}=${value}`] as [string, string],
    ),
    ...(data === undefined ? [] : [['--data-raw', data] as [string, string]]),
  ];
  const command = [
    method === 'HEAD' ? 'curl -I' : method === 'GET' ? 'curl -i' : `curl -i -X ${method}`,
    secrets.shellWord(url),
    ...parts.map(([option, value]) => `${option} ${secrets.shellWord(value)}`),
  ].join(' ');
  return command.length > MAX_LENGTH ? undefined : command;
}
