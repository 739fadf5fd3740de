// Creates .env from .env.example, whose settings are all commented out; without it, Node warns at
// each start. Keeps an existing
// one. Only the owner may read it, because it may contain secrets.
import { readFileSync, writeFileSync } from 'node:fs';

try {
  writeFileSync('.env', readFileSync('.env.example'), { flag: 'wx', mode: 0o600 });
} catch (error) {
  if (error.code !== 'EEXIST') throw error;
}
