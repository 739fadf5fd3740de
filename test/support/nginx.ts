import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { endProcess, untilResponding, freePort } from './process.ts';

const DEPLOY = join(import.meta.dirname, '../../../deploy');

/** nginx in front of instances, configured by deploy/nginx. */
export interface Nginx {
  url: string;
  pid: number;
  /** Returns the number of requests to each instance, by port. */
  requestCounts(): Promise<Map<number, number>>;
  stop(): Promise<void>;
}

/** nginx with TLS. */
export interface TlsNginx extends Nginx {
  /** Its URL for clients without TLS. */
  plainUrl: string;
  /** Its certificate, for 127.0.0.1. */
  certificate: string;
  /** Returns its logs of requests and of errors. */
  logs(): Promise<string>;
}

/** Replacements in a configuration, each of which must change it. */
export type Edits = [from: string | RegExp, to: string][];

/**
 * Starts nginx with its files in the directory, in front of the servers on these ports, as
 * docker-compose.yml does: without TLS and limits. Adds the directives to its `server`.
 */
export async function startNginx(
  directory: string,
  ports: readonly number[],
  directives = '',
): Promise<Nginx> {
  const port = await freePort();
  const log = join(directory, 'access.log');
  return start(directory, ports, `http://127.0.0.1:${port}`, 'compose/nginx.conf', [
    ['listen 80;', `listen 127.0.0.1:${port};\n${directives}`],
    ['access_log off;', `access_log ${log} instance;`],
  ]);
}

/** Starts nginx as deploy/nginx/shopfront.conf configures it, with a certificate of its own. */
export async function startTlsNginx(
  directory: string,
  ports: readonly number[],
  edits: Edits = [],
): Promise<TlsNginx> {
  const [port, plain] = [await freePort(), await freePort()];
  const [key, certificate] = [join(directory, 'key.pem'), join(directory, 'certificate.pem')];
  const subject = ['-subj', '/CN=shop.example', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const own = ['-newkey', 'rsa:2048', '-noenc', '-keyout', key, '-out', certificate];
  await promisify(execFile)('openssl', ['req', '-x509', '-days', '2', ...own, ...subject]);
  const errors = join(directory, 'server-error.log');
  const log = join(directory, 'access.log');
  const nginx = await start(
    directory,
    ports,
    `https://127.0.0.1:${port}`,
    'nginx/shopfront.conf',
    [
      ['listen 80;', `listen 127.0.0.1:${plain};`],
      ['listen 443 ', `listen 127.0.0.1:${port} `],
      [/access_log \S+ shopfront;/g, `access_log ${log} shopfront;`],
      ['/var/log/nginx/error.log', errors],
      ['/etc/ssl/shopfront/fullchain.pem', certificate],
      ['/etc/ssl/shopfront/privkey.pem', key],
      ...edits,
    ],
    `http://127.0.0.1:${plain}/`,
  );
  return {
    ...nginx,
    plainUrl: `http://127.0.0.1:${plain}`,
    certificate: await readFile(certificate, 'utf8'),
    logs: async () =>
      (await Promise.all([log, errors].map((file) => readFile(file, 'utf8')))).join(''),
  };
}

async function start(
  directory: string,
  ports: readonly number[],
  url: string,
  server: string,
  edits: Edits,
  probe = `${url}/livez`,
): Promise<Nginx> {
  const log = join(directory, 'access.log');
  const read = (name: string) => readFile(join(DEPLOY, name), 'utf8');
  const instances = await read('nginx/instances.conf');
  const [first = ''] = /^ *server 127.*$/m.exec(instances) ?? [];
  const servers = ports.map((at) => `${first.replace(/:\d+/, `:${at}`)}\n`).join('');
  const snippet = join(directory, 'shopfront-proxy.conf');
  await writeFile(snippet, await read('nginx/shopfront-proxy.conf'));
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(directory, name)};`,
  );
  // Started by root, a worker runs as another user.
  await chmod(directory, 0o755);
  const main = join(directory, 'nginx.conf');
  await writeFile(
    main,
    `daemon off; worker_processes 1; pid ${join(directory, 'nginx.pid')}; error_log ${join(directory, 'error.log')};
events { worker_connections 4096; }
http {
log_format instance '$upstream_addr'; ${paths.join(' ')}
${edited(instances, [[/(?:^ *server 127.*\n)+/m, servers]])}
${edited(await read(server), [...edits, ['/etc/nginx/snippets/shopfront-proxy.conf', snippet]])}
}
`,
  );
  const child = spawn('nginx', ['-p', directory, '-c', main, '-e', join(directory, 'error.log')], {
    stdio: 'ignore',
  });
  const failed = once(child, 'exit').then(async () => {
    throw new Error(await readFile(join(directory, 'error.log'), 'utf8'));
  });
  await Promise.race([untilResponding(probe), failed]);
  // Later, it exits when it is stopped.
  failed.catch(() => undefined);
  return {
    url,
    pid: child.pid ?? 0,
    async requestCounts() {
      const counts = new Map<number, number>();
      // With a retry, the line ends with the instance that responded.
      for (const [, instance] of (await readFile(log, 'utf8')).matchAll(/:(\d+)$/gm))
        counts.set(Number(instance), (counts.get(Number(instance)) ?? 0) + 1);
      return counts;
    },
    stop: () => endProcess(child),
  };
}

function edited(text: string, edits: Edits): string {
  return edits.reduce((before, [from, to]) => {
    const after = before.replace(from, () => to);
    if (after === before) throw new Error(`deploy/nginx lacks ${from}`);
    return after;
  }, text);
}
