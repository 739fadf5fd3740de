import escapeHtml from 'escape-html';
import {
  causesOf,
  NOTHING_BROKEN,
  notes,
  summaryLine,
  variablesOf,
  wordFor,
  type Cause,
  type RunInfo,
} from './report.ts';
import type { Result } from './run.ts';

const STYLE = `
  :root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  h1 { font-size: 1.5rem } h2 { font-size: 1.125rem; margin-top: 2.5rem; overflow-wrap: anywhere }
  pre { overflow-x: auto; padding: .75rem; border: 1px solid color-mix(in srgb, currentcolor 25%, transparent); border-radius: .375rem }
  table { border-collapse: collapse; width: 100% }
  td, th { text-align: start; vertical-align: top; padding: .25rem .75rem .25rem 0; overflow-wrap: anywhere }
  .failed { color: light-dark(#b42318, #ff9c92) } .differs { color: light-dark(#8a5300, #f5c451) }
  .passed { color: light-dark(#137333, #7fd49a) }`;

/** The report as one HTML page without external files: broken promises by cause, then all. */
export function asPage(results: readonly Result[], info: RunInfo): string {
  const causes = causesOf(results);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Contract of ${escapeHtml(info.baseUrl)}</title>
<style>${STYLE}
</style>
<h1>The contract at ${escapeHtml(info.baseUrl)}</h1>
${[summaryLine(results, info), ...notes(info), ...(causes.length === 0 ? [NOTHING_BROKEN] : [])].map((line) => `<p>${escapeHtml(line)}</p>`).join('\n')}
${causes.map((cause) => causeSection(cause, info)).join('\n')}
${variablesOf(causes)
  .map((line) => `<p>${escapeHtml(line)}</p>`)
  .join('\n')}
<h2>All promises</h2>
<table>
<tr><th scope="col">Result<th scope="col">Endpoint<th scope="col">Promise
${results.map((result) => promiseRow(result, info)).join('\n')}
</table>
</html>
`;
}

function causeSection({ failure, promises }: Cause, info: RunInfo): string {
  const { expected, response, command, request } = failure;
  return `<h2>Expected ${escapeHtml(expected)}</h2>
<p>Response: ${escapeHtml(response)}</p>
<pre tabindex="0"><code>${escapeHtml(command ?? request)}</code></pre>
<ul>
${promises.map(({ level, endpoint, says, id }) => `<li>${coloured(wordFor(failure, level, info.isStrict))} ${escapeHtml(`${endpoint}: ${says} [${id}]`)}`).join('\n')}
</ul>`;
}

function promiseRow({ promised, verdict }: Result, { isStrict }: RunInfo): string {
  const { id, level, endpoint, says } = promised;
  const reason = verdict.outcome === 'skipped' ? ` (${verdict.reason})` : '';
  return `<tr><td>${coloured(wordFor(verdict, level, isStrict))}<td>${escapeHtml(endpoint)}<td>${escapeHtml(`${says} [${id}]${reason}`)}`;
}

function coloured(word: string): string {
  return `<span class="${word}">${word}</span>`;
}
