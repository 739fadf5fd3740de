#!/usr/bin/env node
import { writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { Deployment, type DeploymentOptions } from './deployment.ts';
import { asPage } from './page.ts';
import { Failed, Skipped, type Section } from './promised.ts';
import { sections } from './promises/index.ts';
import { asJson, asText, hasFailures } from './report.ts';
import { run } from './run.ts';

/**
 * Exit statuses; those of errors are EX_USAGE, EX_UNAVAILABLE, EX_CANTCREAT and EX_NOPERM of
 * sysexits(3).
 */
const EXIT = {
  passed: 0,
  failed: 1,
  usage: 64,
  unavailable: 69,
  cannotCreate: 73,
  noLogin: 77,
} as const;
/** Exit status after SIGINT, as shells report it. */
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
  broken?: boolean;
  html?: string;
}

const program = new Command('shopfront-contract')
  .description('Checks a deployment against the shop interface, endpoint by endpoint.')
  .argument('<base-url>', 'URL of the deployment, such as https://shop.example/api-root', baseUrlOf)
  .addOption(new Option('--username <name>', 'a user who can sign in').env('CONTRACT_USERNAME'))
  .option('--password-stdin', 'read the password of that user from standard input')
  .addOption(
    new Option('--disabled-username <name>', 'a user whose account is disabled').env(
      'CONTRACT_DISABLED_USERNAME',
    ),
  )
  .option('--session-prefix <path>', 'path of the session router', prefixOf, '/session')
  .option('--write', 'also create products; their names say that they may be deleted')
  .option('--strict', 'also require the decisions of Shopfront where the interface is open')
  .option(
    '--only <section...>',
    'check these sections only, such as 4.1, or 5 for 5.1 to 5.3',
    sectionsOf,
  )
  .option('--broken', 'print only the broken promises, by cause')
  .option('--html <file>', 'also write the report as a page to this file')
  .addOption(new Option('--json', 'print one JSON document').conflicts('broken'))
  .addHelpText(
    'after',
    `
Secrets are environment variables, because every user of the machine can read arguments:
  CONTRACT_PASSWORD           the password of --username
  CONTRACT_DISABLED_PASSWORD  the password of --disabled-username
  CONTRACT_SIGNING_SECRET     the signing secret of the deployment, to send invalid tokens with valid signatures

Exit status: 0 if no check fails, 1 if one fails, 64 for invalid usage, 69 without a response,
73 if the file cannot be written, 77 if the user cannot sign in.`,
  )
  .showHelpAfterError('(add --help for help)')
  .exitOverride()
  .action(main);

try {
  await program.parseAsync();
} catch (error) {
  // Commander has printed the error or the help.
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? EXIT.passed : EXIT.usage;
}

async function main(baseUrl: string, options: Options): Promise<void> {
  if (options.html !== undefined && !(await createFile(options.html))) {
    process.exitCode = EXIT.cannotCreate;
    return;
  }
  const selected = options.only ?? sections;
  const at = new Deployment(await deploymentOptions(baseUrl, options));
  try {
    await at.checkReachable();
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    console.error(`Cannot reach ${baseUrl}: ${error.response}`);
    process.exitCode = EXIT.unavailable;
    return;
  }
  let isInterrupted = false;
  process.once('SIGINT', () => {
    isInterrupted = true;
    at.interrupt();
  });
  if (at.has('user')) {
    try {
      await at.checkLogin();
    } catch (error) {
      if (!(error instanceof Skipped)) throw error;
      await at.logOutAll();
      const reason = at.secrets.redact(error.message);
      console.error(`${at.user.username} cannot sign in at ${baseUrl}: ${reason}`);
      process.exitCode = isInterrupted ? INTERRUPTED : EXIT.noLogin;
      return;
    }
  }

  const results = await run(selected, at).catch(async (error: unknown) => {
    await at.logOutAll();
    throw error;
  });
  const remaining = await at.logOutAll();
  const info = {
    baseUrl,
    isStrict: options.strict === true,
    logins: { opened: at.opened, remaining },
    created: [...at.created].map((created) => at.secrets.redact(created)),
  };
  const isColoured = process.stdout.isTTY && !process.env['NO_COLOR'];
  console.log(
    options.json
      ? asJson(results, info)
      : asText(selected, results, info, { isColoured, brokenOnly: options.broken === true }),
  );
  if (options.html !== undefined) await writeFile(options.html, asPage(results, info));
  process.exitCode = isInterrupted
    ? INTERRUPTED
    : hasFailures(results, info)
      ? EXIT.failed
      : EXIT.passed;
}

// Creates the file before the checks. Returns whether it could; prints why not.
async function createFile(file: string): Promise<boolean> {
  try {
    await writeFile(file, '');
    return true;
  } catch (error) {
    console.error(`Cannot write ${file}: ${(error as NodeJS.ErrnoException).code}`);
    return false;
  }
}

async function deploymentOptions(baseUrl: string, options: Options): Promise<DeploymentOptions> {
  const { CONTRACT_PASSWORD, CONTRACT_DISABLED_PASSWORD, CONTRACT_SIGNING_SECRET } = process.env;
  const { username, passwordStdin, disabledUsername, sessionPrefix, write = false } = options;
  const password = passwordStdin
    ? (await text(process.stdin)).replace(/[\r\n]+$/, '')
    : CONTRACT_PASSWORD;
  if (username !== undefined && !password) {
    program.error('error: --username needs a password: CONTRACT_PASSWORD or --password-stdin', {
      exitCode: EXIT.usage,
    });
  }
  if (username === undefined && password)
    program.error('error: The password needs --username', { exitCode: EXIT.usage });
  return {
    baseUrl,
    sessionPrefix,
    write,
    user: username !== undefined && password ? { username, password } : undefined,
    disabledUser:
      disabledUsername === undefined
        ? undefined
        : { username: disabledUsername, password: CONTRACT_DISABLED_PASSWORD },
    signingSecret: CONTRACT_SIGNING_SECRET,
  };
}

function baseUrlOf(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new InvalidArgumentError('Must be an http or https URL.');
  if (url.username || url.password || url.search || url.hash)
    throw new InvalidArgumentError('Must not have credentials, a query or a fragment.');
  return url.href.replaceAll("'", '%27').replace(/\/+$/, '');
}

function prefixOf(value: string): string {
  if (!/^\/[^?#\s]*$/.test(value))
    throw new InvalidArgumentError('Must be a path, such as /session.');
  return value.replace(/\/+$/, '');
}

function sectionsOf(value: string, previous: Section[] = []): Section[] {
  const found = sections.filter(({ number }) => number === value || number.startsWith(`${value}.`));
  if (found.length === 0)
    throw new InvalidArgumentError(
      `Must be a section: ${sections.map(({ number }) => number).join(', ')}.`,
    );
  return sections.filter((one) => previous.includes(one) || found.includes(one));
}
