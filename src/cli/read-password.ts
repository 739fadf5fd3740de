import { text } from 'node:stream/consumers';
import promptPassword from '@inquirer/password';
import { DomainError } from '../core/errors.ts';
import type { CommandContext } from './command-context.ts';

/**
 * A password: typed twice and unseen on a terminal, else all of standard input but the end of its last line. Never an
 * argument, which everyone on the machine could read.
 */
export async function readPassword({ stdin, stdout }: Pick<CommandContext, 'stdin' | 'stdout'>): Promise<string> {
  if (!stdin.isTTY) return (await text(stdin)).replace(/\r?\n$/, '');
  const ask = (message: string) => promptPassword({ message }, { input: stdin, output: stdout });
  const password = await ask('Password');
  if ((await ask('Once more')) === password) return password;
  throw new DomainError('BAD_USER_INPUT', 'These are two different passwords');
}
