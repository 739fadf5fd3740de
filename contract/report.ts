import { styleText } from 'node:util';
import type { Level, Section } from './promised.ts';
import type { Result, Verdict } from './run.ts';

type Word = 'passed' | 'failed' | 'differs' | 'skipped';
type Style = 'green' | 'red' | 'yellow' | 'dim' | 'bold';

const STYLES: Record<Word, Style> = {
  passed: 'green',
  failed: 'red',
  differs: 'yellow',
  skipped: 'dim',
};
const PARTS: readonly [Level, string][] = [
  ['interface', 'Interface'],
  ['decision', 'Decisions of Shopfront where the interface is open'],
];

/** The context of a report. */
export interface RunInfo {
  baseUrl: string;
  /** Whether decisions count like the interface. */
  isStrict: boolean;
  logins: { opened: number; remaining: number };
  /** The pk or barcode of each created product. */
  created: readonly string[];
}

/** The number of promises of a level by result. */
interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Whether any promise that counts failed. */
export function hasFailures(
  results: readonly Result[],
  { isStrict }: Pick<RunInfo, 'isStrict'>,
): boolean {
  return results.some(
    ({ promised, verdict }) =>
      verdict.outcome === 'failed' && (isStrict || promised.level === 'interface'),
  );
}

/** The report as text: by part, section and endpoint, with a summary in the last line. */
export function asText(
  sections: readonly Section[],
  results: readonly Result[],
  info: RunInfo,
  isColoured: boolean,
): string {
  const paint = (style: Style, text: string) =>
    isColoured ? styleText(style, text, { validateStream: false }) : text;
  const lines: string[] = [`The contract at ${info.baseUrl}`];
  for (const [level, title] of PARTS) {
    lines.push('', paint('bold', title));
    for (const { number, title: name } of sections) {
      const ofSection = results.filter(
        ({ promised }) => promised.section === number && promised.level === level,
      );
      if (ofSection.length > 0)
        lines.push(
          '',
          `  ${paint('bold', `${number} ${name}`)}`,
          ...linesOf(ofSection, info, paint),
        );
    }
  }
  return [...lines, '', ...notes(info), summaryLine(results, info)].join('\n');
}

/** The report as one JSON document. */
export function asJson(results: readonly Result[], info: RunInfo): string {
  const { baseUrl, isStrict: strict, logins, created } = info;
  const promises = results.map(({ promised: { id, section, endpoint, level, says }, verdict }) => ({
    id,
    section,
    endpoint,
    level,
    says,
    ...verdict,
  }));
  const summary = { interface: count(results, 'interface'), decisions: count(results, 'decision') };
  return JSON.stringify({ baseUrl, strict, summary, logins, created, promises }, null, 2);
}

function linesOf(
  results: readonly Result[],
  info: RunInfo,
  paint: (style: Style, text: string) => string,
): string[] {
  const endpoints = new Set(results.map(({ promised: { endpoint } }) => endpoint));
  return [...endpoints].flatMap((endpoint) => [
    `    ${endpoint}`,
    ...results
      .filter(({ promised }) => promised.endpoint === endpoint)
      .flatMap((result) => checkLines(result, info, paint)),
  ]);
}

function checkLines(
  { promised: { id, level, says }, verdict }: Result,
  { isStrict }: RunInfo,
  paint: (style: Style, text: string) => string,
): string[] {
  const word = wordFor(verdict, level, isStrict);
  const suffix =
    verdict.outcome === 'skipped'
      ? ` (${verdict.reason})`
      : verdict.outcome === 'failed'
        ? ` [${id}]`
        : '';
  const first = `      ${paint(STYLES[word], word.padEnd(7))}  ${says}${suffix}`;
  if (verdict.outcome !== 'failed') return [first];
  return [
    first,
    ...(['request', 'expected', 'response'] as const).map(
      (part) => `               ${part.padEnd(8)}  ${verdict[part]}`,
    ),
  ];
}

function wordFor({ outcome }: Verdict, level: Level, isStrict: boolean): Word {
  return outcome === 'failed' && level === 'decision' && !isStrict ? 'differs' : outcome;
}

function notes({ logins: { opened, remaining }, created }: RunInfo): string[] {
  return [
    ...(created.length > 0
      ? [`Products created, named "Contract check of …, may be deleted": ${created.join(', ')}.`]
      : []),
    ...(opened > 0
      ? [
          `Logins opened: ${opened}, ${remaining === 0 ? 'all ended' : `${remaining} of them not ended`}.`,
        ]
      : []),
  ];
}

function summaryLine(results: readonly Result[], { isStrict }: RunInfo): string {
  const { passed, failed, skipped } = count(results, 'interface');
  const decisions = count(results, 'decision');
  const deviations = `${decisions.failed} ${isStrict ? 'failed' : 'differ'}`;
  return `${passed} passed, ${failed} failed, ${skipped} skipped; decisions: ${decisions.passed} passed, ${deviations}, ${decisions.skipped} skipped`;
}

function count(results: readonly Result[], level: Level): Counts {
  const outcomes = results
    .filter(({ promised }) => promised.level === level)
    .map(({ verdict }) => verdict.outcome);
  const of = (outcome: Verdict['outcome']) => outcomes.filter((other) => other === outcome).length;
  return { passed: of('passed'), failed: of('failed'), skipped: of('skipped') };
}
