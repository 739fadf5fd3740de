import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { untilResponding, freePort } from './process.ts';

const CONFIGURATION = ['instances.conf', 'shopfront.conf'].map((name) =>
  join(import.meta.dirname, '../../../deploy/nginx', name),
);

/** nginx in front of instances, configured by deploy/nginx. */
export interface Nginx {
  url: string;
  /** Returns the number of requests to each instance, by port. */
  requestCounts(): Promise<Map<number, number>>;
  stop(): Promise<void>;
}

/**
 * Starts nginx with its files in the directory, in front of the servers on these ports, with
 * additional directives in `server`.
 */
export async function startNginx(
  directory: string,
  ports: readonly number[],
  directives = '',
): Promise<Nginx> {
  const port = await freePort();
  const own = join(directory, 'shopfront.conf');
  const log = join(directory, 'access.log');
  const texts = await Promise.all(CONFIGURATION.map((path) => readFile(path, 'utf8')));
  await writeFile(own, configurationFor(texts.join('\n'), port, ports, log, directives));
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(directory, name)};`,
  );
  const main = join(directory, 'nginx.conf');
  await writeFile(
    main,
    `daemon off; worker_processes 1; pid ${join(directory, 'nginx.pid')}; error_log ${join(directory, 'error.log')};
events { worker_connections 4096; }
http { log_format instance '$upstream_addr'; ${paths.join(' ')} include ${own}; }
`,
  );
  const child = spawn('nginx', ['-p', directory, '-c', main, '-e', join(directory, 'error.log')], {
    stdio: 'ignore',
  });
  const url = `http://127.0.0.1:${port}`;
  await untilResponding(`${url}/livez`);
  return {
    url,
    async requestCounts() {
      const counts = new Map<number, number>();
      // With a retry, the line ends with the instance that responded.
      for (const [, instance] of (await readFile(log, 'utf8')).matchAll(/:(\d+)$/gm))
        counts.set(Number(instance), (counts.get(Number(instance)) ?? 0) + 1);
      return counts;
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

// Replaces the addresses, and adds an access log with the instance of each request.
function configurationFor(
  text: string,
  port: number,
  ports: readonly number[],
  log: string,
  directives: string,
): string {
  const [first = ''] = /^ *server 127.*$/m.exec(text) ?? [];
  const servers = ports.map((at) => first.replace(/:\d+/, `:${at}`)).join('\n');
  const configuration = text
    .replace(/(?:^ *server 127.*\n)+/m, `${servers}\n`)
    .replace('listen 80;', () => `listen 127.0.0.1:${port};\n${directives}`)
    .replace(/access_log .*;/, `access_log ${log} instance;`);
  if (
    ![...ports.map((at) => `:${at} `), `:${port};`, log].every((part) =>
      configuration.includes(part),
    )
  )
    throw new Error('deploy/nginx has unexpected lines');
  return configuration;
}
