import { userInfo } from 'node:os';

/** Returns the name of the OS user, or its uid without a name, as in some containers. */
export function osUserName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${String(process.getuid?.())}`;
  }
}
