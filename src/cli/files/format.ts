import type { Command } from 'commander';
import { FORMATS, type Format } from '../../features/products/files/file-columns.ts';
import { STANDARD } from './reader.ts';

const ENDINGS: Readonly<Record<string, Format>> = { csv: 'csv', ndjson: 'ndjson', jsonl: 'ndjson' };

/** Which format a file has: as asked for, or by the end of its name, before a `.gz`. Where neither says it, the command is used wrongly. */
export function formatOf(command: Command, path: string, asked: Format | undefined): Format {
  const [, ending = ''] = /\.([a-z]+)(?:\.gz)?$/.exec(path.toLowerCase()) ?? [];
  const format = asked ?? (path === STANDARD ? undefined : ENDINGS[ending]);
  return format ?? command.error(`error: say with --format which of ${FORMATS.join(' and ')} it is`);
}
