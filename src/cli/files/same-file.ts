import { fstatSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { STANDARD } from './source.ts';

/** Whether both names are of one file, by whatever links. */
export function isSameFile(one: string, other: string): boolean {
  if (resolve(one) === resolve(other)) return true;
  const [a, b] = [found(one), found(other)];
  return a !== undefined && b !== undefined && a.isFile() && a.dev === b.dev && a.ino === b.ino;
}

// What is not there, or cannot be looked at, is told of by who opens it.
function found(path: string) {
  try {
    return path === STANDARD ? fstatSync(process.stdin.fd, { bigint: true }) : statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}
