import type { Command } from 'commander';
import { FORMATS, type Format } from '../../features/products/files/file-columns.ts';
import { STANDARD } from './reader.ts';

const EXTENSIONS: Readonly<Record<string, Format>> = {
  csv: 'csv',
  ndjson: 'ndjson',
  jsonl: 'ndjson',
};

/**
 * Returns the format of a file: the requested one, or by its extension, before a `.gz`. Otherwise
 * fails with a usage error.
 */
export function formatOf(command: Command, path: string, requested: Format | undefined): Format {
  const [, extension = ''] = /\.([a-z]+)(?:\.gz)?$/.exec(path.toLowerCase()) ?? [];
  const format = requested ?? (path === STANDARD ? undefined : EXTENSIONS[extension]);
  return (
    format ?? command.error(`error: unknown file format; use --format with ${FORMATS.join(' or ')}`)
  );
}
