import { userInfo } from 'node:os';

/** The name of the operating system's user that runs this process; the number, where that has no name, as in some containers. */
export function osUserName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${String(process.getuid?.())}`;
  }
}
