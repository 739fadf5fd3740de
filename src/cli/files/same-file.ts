import { fstatSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CommandContext } from '../command-context.ts';
import { STANDARD } from './reader.ts';

/** Returns whether both paths are the same file, links included. */
export function isSameFile(context: CommandContext, one: string, other: string): boolean {
  if (resolve(one) === resolve(other)) return true;
  const [a, b] = [statOf(context, one), statOf(context, other)];
  return a !== undefined && b !== undefined && a.isFile() && a.dev === b.dev && a.ino === b.ino;
}

// Missing or inaccessible files are reported when they are opened.
function statOf(context: CommandContext, path: string) {
  try {
    return path === STANDARD
      ? fstatSync(context.stdin.fd ?? NaN, { bigint: true })
      : statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}
