import { text } from 'node:stream/consumers';
import promptPassword from '@inquirer/password';
import { DomainError } from '../kit/errors.ts';

/**
 * A password: typed twice and unseen on a terminal, else all of standard input but the end of its last line. Never an
 * argument, which everyone on the machine could read.
 */
export async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return (await text(process.stdin)).replace(/\r?\n$/, '');
  const password = await promptPassword({ message: 'Password' });
  if ((await promptPassword({ message: 'Once more' })) === password) return password;
  throw new DomainError('BAD_USER_INPUT', 'These are two different passwords');
}
