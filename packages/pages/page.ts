import { randomBytes } from 'node:crypto';
import type { Bundle } from './bundle.ts';
import type { PagesOptions } from './index.ts';
import { markup, scriptJson, type Html } from './markup.ts';
import type { PageSettings } from './settings.ts';

/** Definition of a page. */
export interface Page {
  /** Path under BASE_PATH. */
  path: string;
  title: string;
  /** Script in the bundle. */
  entry: string;
  body: Html;
  /** Whether the body has a header of its own, instead of the bar with the pages. */
  hasHeader?: boolean;
  /** Directives added to the Content-Security-Policy of every page. */
  policy?: Readonly<Record<string, string>>;
}

/** A page with a nonce of its own. */
interface Rendered {
  html: string;
  /** Its Content-Security-Policy. */
  policy: string;
}

const LINKS = [
  { path: '/graphql', name: 'GraphQL' },
  { path: '/graphiql', name: 'GraphiQL' },
  { path: '/docs', name: 'REST' },
  { path: '/usage', name: 'Usage' },
];

const EMPTY = markup``;
const CURRENT = markup` aria-current="page"`;

/** Returns the function that renders a page. Its texts only differ by the nonce. */
export function pageRenderer(options: PagesOptions, bundle: Bundle, page: Page): () => Rendered {
  const { basePath } = options;
  const files = basePath + bundle.path;
  const { script, styles } = bundle.partsOf(page.entry);
  const links = styles.map((file) => markup`<link rel="stylesheet" href="${files}/${file}">\n`);
  const settings = scriptJson(settingsOf(options));
  const bar = page.hasHeader ? EMPTY : headerBar(basePath, page.path);
  return () => {
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
<script type="module" nonce="${nonce}" src="${files}/${script}"></script>
</head>
<body>
${bar}
${page.body}
</body>
</html>
`;
    return { html: text, policy: policyOf(nonce, page.policy) };
  };
}

function settingsOf({ basePath, demoUsers }: PagesOptions): PageSettings {
  const users = demoUsers.filter(({ disabled }) => !disabled);
  return {
    base: basePath,
    demoUsers: users.map(({ username, password }) => ({ username, password })),
  };
}

function headerBar(basePath: string, current: string): Html {
  const mark = (path: string): Html => (path === current ? CURRENT : EMPTY);
  const links = LINKS.map(
    ({ path, name }) => markup`<a href="${basePath}${path}"${mark(path)}>${name}</a>\n`,
  );
  return markup`<header class="bar">
<a class="brand" href="${basePath}/"${mark('/')}>Shopfront</a>
<nav aria-label="Pages">
${links}</nav>
<div id="session"></div>
</header>`;
}

// Allows only the listed sources. A script with the nonce may load its own modules.
function policyOf(nonce: string, pagePolicy: Readonly<Record<string, string>> = {}): string {
  const policy = {
    'default-src': "'none'",
    'script-src': `'nonce-${nonce}' 'strict-dynamic'`,
    'style-src': "'self'",
    'connect-src': "'self'",
    'img-src': "'self' data:",
    ...pagePolicy,
    'frame-ancestors': "'none'",
    'base-uri': "'none'",
    'form-action': "'none'",
  };
  return Object.entries(policy)
    .map((directive) => directive.join(' '))
    .join('; ');
}
