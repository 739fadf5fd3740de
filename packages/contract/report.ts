import { styleText } from 'node:util';
import type { Level, Promised, Section } from './promised.ts';
import type { Failure, Result, Verdict } from './run.ts';

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

/** Length of a status at the start of a response. */
const STATUS_LENGTH = 3;

/** What each shell variable of the commands is; the others are those of `--help`. */
const VARIABLES: ReadonlyMap<string, string> = new Map([
  ['TOKEN', 'the access_token of a login'],
  ['REFRESH_TOKEN', 'the refresh_token of a login'],
  ['SESSION_KEY', 'the session_key of a session login'],
  ['ALTERED_TOKEN', 'a token with other claims, signed with the signing secret'],
  ['BASIC', 'username:password in Base64'],
]);

/** The report of broken promises if there are none. */
export const NOTHING_BROKEN = 'No promise is broken.';

/** Broken promises with the same expectation and the same kind of response. */
export interface Cause {
  /** The failure of the first of them that has a command. */
  failure: Failure;
  promises: readonly Promised[];
}

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

/**
 * Groups the broken promises by expectation and status of the response. Groups with the most
 * promises of the interface are first, then the largest.
 */
export function causesOf(results: readonly Result[]): Cause[] {
  const causes = new Map<string, { failure: Failure; promises: Promised[] }>();
  for (const { promised, verdict } of results) {
    if (verdict.outcome !== 'failed') continue;
    const key = `${verdict.expected}\n${verdict.response.slice(0, STATUS_LENGTH)}`;
    const cause = causes.get(key) ?? { failure: verdict, promises: [] };
    causes.set(key, cause);
    cause.promises.push(promised);
    if (cause.failure.command === undefined && verdict.command !== undefined)
      cause.failure = verdict;
  }
  const ofInterface = ({ promises }: Cause) =>
    promises.filter(({ level }) => level === 'interface').length;
  return [...causes.values()].toSorted(
    (a, b) => ofInterface(b) - ofInterface(a) || b.promises.length - a.promises.length,
  );
}

/** What a reader of the commands needs to know: their shell variables, and who can read them. */
export function variablesOf(causes: readonly Cause[]): string[] {
  const has = (text: string) => causes.some(({ failure }) => failure.command?.includes(text));
  return [
    ...[...VARIABLES]
      .filter(([name]) => has(`"$${name}"`))
      .map(([name, meaning]) => `${name} is ${meaning}.`),
    ...(has('"$')
      ? ['Every user of the machine can read the arguments of a running command.']
      : []),
  ];
}

/**
 * The report as text: by part, section and endpoint; then the broken promises by cause, and a
 * summary in the last line. With `brokenOnly`, without the first part.
 */
export function asText(
  sections: readonly Section[],
  results: readonly Result[],
  info: RunInfo,
  { isColoured, brokenOnly }: { isColoured: boolean; brokenOnly: boolean },
): string {
  const paint = (style: Style, text: string) =>
    isColoured ? styleText(style, text, { validateStream: false }) : text;
  return [
    `The contract at ${info.baseUrl}`,
    ...(brokenOnly ? [] : promiseLines(sections, results, info, paint)),
    ...brokenLines(causesOf(results), info, paint),
    '',
    ...notes(info),
    summaryLine(results, info),
  ].join('\n');
}

type Paint = (style: Style, text: string) => string;

function promiseLines(
  sections: readonly Section[],
  results: readonly Result[],
  info: RunInfo,
  paint: Paint,
): string[] {
  const lines: string[] = [];
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
  return lines;
}

function brokenLines(causes: readonly Cause[], info: RunInfo, paint: Paint): string[] {
  if (causes.length === 0) return ['', NOTHING_BROKEN];
  const variables = variablesOf(causes);
  return [
    '',
    paint('bold', 'Broken promises, by cause'),
    ...causes.flatMap(({ failure, promises }) => [
      '',
      `  expected  ${failure.expected}`,
      `  response  ${failure.response}`,
      `  try       ${failure.command ?? failure.request}`,
      ...promises.map(({ id, level, endpoint, says }) => {
        const word = wordFor(failure, level, info.isStrict);
        return `    ${paint(STYLES[word], word.padEnd(7))}  ${endpoint}  ${says} [${id}]`;
      }),
    ]),
    ...(variables.length > 0 ? ['', ...variables] : []),
  ];
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
  const causes = causesOf(results).map(({ failure, promises: broken }) => ({
    expected: failure.expected,
    response: failure.response,
    request: failure.request,
    command: failure.command,
    promises: broken.map(({ id }) => id),
  }));
  return JSON.stringify({ baseUrl, strict, summary, logins, created, causes, promises }, null, 2);
}

function linesOf(results: readonly Result[], info: RunInfo, paint: Paint): string[] {
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
  paint: Paint,
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

export function wordFor({ outcome }: Verdict, level: Level, isStrict: boolean): Word {
  return outcome === 'failed' && level === 'decision' && !isStrict ? 'differs' : outcome;
}

export function notes({ logins: { opened, remaining }, created }: RunInfo): string[] {
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

export function summaryLine(results: readonly Result[], { isStrict }: RunInfo): string {
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
