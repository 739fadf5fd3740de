import { text } from 'node:stream/consumers';
import promptPassword from '@inquirer/password';
import { DomainError } from '../core/errors.ts';
import type { CommandContext } from './command-context.ts';

/**
 * Reads a password: prompted twice without echo on a terminal, otherwise all of standard input
 * without line breaks at its end. Never from an argument, which every user of the machine can read.
 */
export async function readPassword({
  stdin,
  stdout,
}: Pick<CommandContext, 'stdin' | 'stdout'>): Promise<string> {
  if (!stdin.isTTY) return (await text(stdin)).replace(/[\r\n]+$/, '');
  const prompt = (message: string) => promptPassword({ message }, { input: stdin, output: stdout });
  const password = await prompt('Password');
  if ((await prompt('Repeat password')) === password) return password;
  throw new DomainError('BAD_USER_INPUT', 'The passwords do not match');
}
