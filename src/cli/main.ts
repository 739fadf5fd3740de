#!/usr/bin/env -S node --env-file-if-exists=.env
import { requireNodeVersion } from '../core/node-version.ts';

requireNodeVersion();
const { runProgram } = await import('./program.ts');

const { env, stdout, stderr } = process;
const io = {
  env,
  get stdin() {
    return process.stdin;
  },
  stdout,
  stderr,
};
process.exitCode = await runProgram(io, process.argv.slice(2));
