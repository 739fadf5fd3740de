#!/usr/bin/env -S node --env-file-if-exists=.env
import { requireNodeVersion } from '../core/node-version.ts';

requireNodeVersion();
const { createProgram } = await import('./program.ts');

const { env, stdout, stderr } = process;
const program = createProgram({
  env,
  get stdin() {
    return process.stdin;
  },
  stdout,
  stderr,
  signals: process,
  clock: { now: () => new Date(), elapsedMs: () => performance.now() },
  exit: (code) => process.exit(code),
});
process.exitCode = await program.run(process.argv.slice(2));
