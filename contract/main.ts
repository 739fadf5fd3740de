#!/usr/bin/env node
import { text } from 'node:stream/consumers';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { Deployment, type Given } from './deployment.ts';
import { Broken, type Section } from './promised.ts';
import { sections } from './promises/index.ts';
import { asJson, asText, isBroken } from './report.ts';
import { run } from './run.ts';

/** Nothing is broken, something is, used wrongly, nobody answers (EX_USAGE and EX_UNAVAILABLE of sysexits(3)). */
const EXIT = { kept: 0, broken: 1, usage: 64, unavailable: 69 } as const;
/** What a shell makes of an end by SIGINT. */
const INTERRUPTED = 130;

interface Options {
  username?: string;
  passwordStdin?: boolean;
  disabledUsername?: string;
  sessionPrefix: string;
  write?: boolean;
  strict?: boolean;
  only?: Section[];
  json?: boolean;
}

const program = new Command('shopfront-contract')
  .description('Looks, row by row, which promises of the shop interface a deployment keeps.')
  .argument('<base-url>', 'where the deployment stands, such as https://shop.example/api-root', baseUrlOf)
  .addOption(new Option('--username <name>', 'a user who can sign in').env('CONTRACT_USERNAME'))
  .option('--password-stdin', 'read the password of that user from standard input')
  .addOption(new Option('--disabled-username <name>', 'a user whose account is disabled').env('CONTRACT_DISABLED_USERNAME'))
  .option('--session-prefix <path>', 'where the session router stands', prefixOf, '/session')
  .option('--write', 'create products, too; their names say that they may be deleted')
  .option('--strict', 'count what the interface leaves open and Shopfront has decided as promised, too')
  .option('--only <section...>', 'look at these sections only, such as 4.1, or 5 for 5.1 to 5.3', sectionsOf)
  .option('--json', 'print one JSON document')
  .addHelpText(
    'after',
    `
Secrets come by environment, never as arguments, which everyone on the machine could read:
  CONTRACT_PASSWORD           the password of --username
  CONTRACT_DISABLED_PASSWORD  the password of --disabled-username
  CONTRACT_SIGNING_SECRET     what the deployment signs its tokens with, to try tokens that are signed and wrong

Ends with 0 when nothing is broken, 1 when something is, 64 when used wrongly, 69 when nobody answers.`,
  )
  .showHelpAfterError('(add --help for help)')
  .exitOverride()
  .action(main);

try {
  await program.parseAsync();
} catch (error) {
  // Commander has said what is wrong, or shown the help that was asked for.
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? EXIT.kept : EXIT.usage;
}

async function main(baseUrl: string, options: Options): Promise<void> {
  const chosen = options.only ?? sections;
  const at = new Deployment(await givenBy(baseUrl, options));
  try {
    await at.reach();
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    console.error(`Nobody answers at ${baseUrl}: there is ${error.came}`);
    process.exitCode = EXIT.unavailable;
    return;
  }
  let isInterrupted = false;
  process.once('SIGINT', () => {
    isInterrupted = true;
    at.interrupt();
  });

  const results = await run(chosen, at).catch(async (error: unknown) => {
    await at.leave();
    throw error;
  });
  const left = await at.leave();
  const around = { baseUrl, isStrict: options.strict === true, logins: { opened: at.opened, left }, created: [...at.created] };
  const isColoured = process.stdout.isTTY && !process.env['NO_COLOR'];
  console.log(options.json ? asJson(results, around) : asText(chosen, results, around, isColoured));
  process.exitCode = isInterrupted ? INTERRUPTED : isBroken(results, around) ? EXIT.broken : EXIT.kept;
}

async function givenBy(baseUrl: string, options: Options): Promise<Given> {
  const { CONTRACT_PASSWORD, CONTRACT_DISABLED_PASSWORD, CONTRACT_SIGNING_SECRET } = process.env;
  const { username, passwordStdin, disabledUsername, sessionPrefix, write = false } = options;
  const password = passwordStdin ? (await text(process.stdin)).replace(/\r?\n$/, '') : CONTRACT_PASSWORD;
  if (username !== undefined && !password) {
    program.error('error: --username needs a password, by CONTRACT_PASSWORD or --password-stdin', { exitCode: EXIT.usage });
  }
  if (username === undefined && password) program.error('error: the password needs a --username', { exitCode: EXIT.usage });
  return {
    baseUrl,
    sessionPrefix,
    write,
    user: username !== undefined && password ? { username, password } : undefined,
    disabledUser: disabledUsername === undefined ? undefined : { username: disabledUsername, password: CONTRACT_DISABLED_PASSWORD },
    signingSecret: CONTRACT_SIGNING_SECRET,
  };
}

function baseUrlOf(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol)) throw new InvalidArgumentError('It has to be an http or https address.');
  if (url.username || url.password || url.search || url.hash)
    throw new InvalidArgumentError('It has to be an address and a path, and nothing else.');
  return url.href.replace(/\/+$/, '');
}

function prefixOf(value: string): string {
  if (!/^\/[^?#\s]*$/.test(value)) throw new InvalidArgumentError('It has to be a path, such as /session.');
  return value.replace(/\/+$/, '');
}

function sectionsOf(value: string, others: Section[] = []): Section[] {
  const found = sections.filter(({ number }) => number === value || number.startsWith(`${value}.`));
  if (found.length === 0) throw new InvalidArgumentError(`The sections are ${sections.map(({ number }) => number).join(', ')}.`);
  return sections.filter((one) => others.includes(one) || found.includes(one));
}
