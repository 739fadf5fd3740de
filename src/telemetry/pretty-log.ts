import { styleText } from 'node:util';
import { prettyFactory } from 'pino-pretty';

/** Members of a request's line (request-log.ts). */
interface RequestLine {
  time: string;
  method: string;
  endpoint?: string;
  operation?: string;
  type?: string;
  status?: number;
  end?: string;
  user: string | null;
  ms: number;
}

/** Returns a function that formats the lines of the log for people. A request is one short line. */
export function prettyFormat(): (line: string) => string {
  const format = prettyFactory({
    colorize: process.stderr.isTTY && process.stderr.hasColors(),
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'event',
    singleLine: true,
  });
  return (line) => {
    const entry = JSON.parse(line, printable) as { event?: string } & RequestLine;
    return entry.event === 'request' ? formatRequest(entry) : format(entry);
  };
}

// The text of a client must not control the terminal.
function printable(_key: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return value.replace(
    /\p{Cc}/gu,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function formatRequest(entry: RequestLine): string {
  const { time, method, endpoint = method, type, operation = '', status, end, user, ms } = entry;
  const parts = [
    dim(new Date(time).toTimeString().slice(0, 8)),
    type === undefined ? endpoint : `${method} ${type} ${operation}`.trimEnd(),
    styleText(colorOf(status), String(status ?? end), { stream: process.stderr }),
    dim(`${ms.toFixed(1)} ms`),
    ...(user === null ? [] : [user]),
  ];
  return `${parts.join(' ')}\n`;
}

function dim(text: string): string {
  return styleText('dim', text, { stream: process.stderr });
}

function colorOf(status = 0): 'green' | 'cyan' | 'yellow' | 'red' {
  if (status < 200 || status >= 500) return 'red';
  if (status >= 400) return 'yellow';
  return status >= 300 ? 'cyan' : 'green';
}
