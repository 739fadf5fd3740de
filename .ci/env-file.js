// Makes .env from .env.example, where every setting is commented out: with no such file, Node would say so at each start. One that
// exists stays as it is. Only its owner may read it, as it may come to hold secrets.
import { readFileSync, writeFileSync } from 'node:fs';

try {
  writeFileSync('.env', readFileSync('.env.example'), { flag: 'wx', mode: 0o600 });
} catch (error) {
  if (error.code !== 'EEXIST') throw error;
}
