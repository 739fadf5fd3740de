import { fstatSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { CommandContext } from '../command-context.ts';
import { STANDARD } from './reader.ts';

/** Whether both names are of one file, by whatever links. */
export function isSameFile(context: CommandContext, one: string, other: string): boolean {
  if (resolve(one) === resolve(other)) return true;
  const [a, b] = [found(context, one), found(context, other)];
  return a !== undefined && b !== undefined && a.isFile() && a.dev === b.dev && a.ino === b.ino;
}

// What is not there, or cannot be looked at, is told of by who opens it.
function found(context: CommandContext, path: string) {
  try {
    return path === STANDARD ? fstatSync(context.stdin.fd ?? NaN, { bigint: true }) : statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}
