import { randomBytes } from 'node:crypto';
import { demoUsers } from '../features/demo-data.ts';
import type { Config } from '../core/config.ts';
import { codingFor, sendCompressed } from '../http/compression.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Bundle } from './bundle.ts';
import { markup, scriptJson, type Html } from './markup.ts';
import type { PageSettings } from './settings.ts';

/** A page, before it is asked for. */
export interface Page {
  /** Where it is, under BASE_PATH. */
  path: string;
  title: string;
  /** Its script in the bundle. */
  entry: string;
  body: Html;
  /** What it may do beyond what every page may. */
  policy?: Readonly<Record<string, string>>;
}

const HTML_TYPE = 'text/html; charset=utf-8';

const EXPLORERS = [
  { path: '/graphql', name: 'GraphQL' },
  { path: '/graphiql', name: 'GraphiQL' },
  { path: '/docs', name: 'REST' },
];

const NOTHING = markup``;
const CURRENT = markup` aria-current="page"`;

/** Makes what answers a page: the same text each time but for its nonce. */
export function pageAnswerer(config: Config, bundle: Bundle, page: Page): (exchange: Exchange) => Promise<void> {
  const { basePath } = config;
  const { script, styles } = bundle.partsOf(page.entry);
  const links = styles.map((file) => markup`<link rel="stylesheet" href="${basePath}/${file}">\n`);
  const settings = scriptJson(settingsOf(config));
  const bar = barOf(basePath, page.path);
  return async (exchange) => {
    const nonce = randomBytes(16).toString('base64');
    const { text } = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${page.title}</title>
<link rel="icon" type="image/svg+xml" href="${basePath}/favicon.ico">
${links}<script type="application/json" id="settings">${settings}</script>
<script type="module" nonce="${nonce}" src="${basePath}/${script}"></script>
</head>
<body>
${bar}
${page.body}
</body>
</html>
`;
    exchange.set({ 'Cache-Control': 'no-store', 'Content-Security-Policy': policyOf(nonce, page.policy) });
    await sendCompressed(exchange, codingFor(exchange, config, text), 200, { body: text }, HTML_TYPE);
  };
}

function settingsOf({ basePath, databaseUrl }: Config): PageSettings {
  const users = databaseUrl === undefined ? demoUsers.filter(({ disabled }) => !disabled) : [];
  return { base: basePath, demoUsers: users.map(({ username, password }) => ({ username, password })) };
}

function barOf(basePath: string, current: string): Html {
  const mark = (path: string): Html => (path === current ? CURRENT : NOTHING);
  const explorers = EXPLORERS.map(({ path, name }) => markup`<a href="${basePath}${path}"${mark(path)}>${name}</a>\n`);
  return markup`<header class="bar">
<a class="brand" href="${basePath}/"${mark('/')}>Shopfront</a>
<nav aria-label="Explorers">
${explorers}</nav>
<div id="session"></div>
</header>`;
}

// Nothing but what is named. A script that came with the nonce may load what it is made of.
function policyOf(nonce: string, own: Readonly<Record<string, string>> = {}): string {
  const policy = {
    'default-src': "'none'",
    'script-src': `'nonce-${nonce}' 'strict-dynamic'`,
    'style-src': "'self'",
    'connect-src': "'self'",
    'img-src': "'self' data:",
    ...own,
    'frame-ancestors': "'none'",
    'base-uri': "'none'",
    'form-action': "'none'",
  };
  return Object.entries(policy)
    .map((directive) => directive.join(' '))
    .join('; ');
}
