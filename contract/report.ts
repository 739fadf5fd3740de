import { styleText } from 'node:util';
import type { Level, Section } from './promised.ts';
import type { Result, Seen } from './run.ts';

type Word = 'holds' | 'broken' | 'differs' | 'not tried';
type Style = 'green' | 'red' | 'yellow' | 'dim' | 'bold';

const STYLES: Record<Word, Style> = { holds: 'green', broken: 'red', differs: 'yellow', 'not tried': 'dim' };
const PARTS: readonly [Level, string][] = [
  ['interface', 'What the interface promises'],
  ['decision', 'What the interface leaves open, as Shopfront decides it'],
];

/** What is said beside the promises. */
export interface Around {
  baseUrl: string;
  /** Whether decisions count as the interface does. */
  isStrict: boolean;
  logins: { opened: number; left: number };
  /** The products that were created, as their pk or barcode. */
  created: readonly string[];
}

/** How many promises of a level hold, and how many do not. */
interface Counts {
  holds: number;
  broken: number;
  notTried: number;
}

/** Whether anything that counts is broken. */
export function isBroken(results: readonly Result[], { isStrict }: Pick<Around, 'isStrict'>): boolean {
  return results.some(({ promised, seen }) => seen.outcome === 'broken' && (isStrict || promised.level === 'interface'));
}

/** The report for people: by part, section and row, and a line that sums it up. */
export function asText(sections: readonly Section[], results: readonly Result[], around: Around, isColoured: boolean): string {
  const paint = (style: Style, text: string) => (isColoured ? styleText(style, text, { validateStream: false }) : text);
  const lines: string[] = [`The contract at ${around.baseUrl}`];
  for (const [level, title] of PARTS) {
    lines.push('', paint('bold', title));
    for (const { number, title: name } of sections) {
      const ofSection = results.filter(({ promised }) => promised.section === number && promised.level === level);
      if (ofSection.length > 0) lines.push('', `  ${paint('bold', `${number} ${name}`)}`, ...rowsOf(ofSection, around, paint));
    }
  }
  return [...lines, '', ...notes(around), summary(results, around)].join('\n');
}

/** The report for programs: one JSON document. */
export function asJson(results: readonly Result[], around: Around): string {
  const { baseUrl, isStrict: strict, logins, created } = around;
  const promises = results.map(({ promised: { id, section, row, level, says }, seen }) => ({ id, section, row, level, says, ...seen }));
  const summed = { interface: count(results, 'interface'), decisions: count(results, 'decision') };
  return JSON.stringify({ baseUrl, strict, summary: summed, logins, created, promises }, null, 2);
}

function rowsOf(results: readonly Result[], around: Around, paint: (style: Style, text: string) => string): string[] {
  const rows = new Set(results.map(({ promised: { row } }) => row));
  return [...rows].flatMap((row) => [
    `    ${row}`,
    ...results.filter(({ promised }) => promised.row === row).flatMap((result) => linesOf(result, around, paint)),
  ]);
}

function linesOf(
  { promised: { id, level, says }, seen }: Result,
  { isStrict }: Around,
  paint: (style: Style, text: string) => string,
): string[] {
  const word = wordFor(seen, level, isStrict);
  const why = seen.outcome === 'not tried' ? ` (${seen.why})` : seen.outcome === 'broken' ? ` [${id}]` : '';
  const first = `      ${paint(STYLES[word], word.padEnd(9))}  ${says}${why}`;
  if (seen.outcome !== 'broken') return [first];
  return [first, ...(['asked', 'expected', 'came'] as const).map((what) => `                 ${what.padEnd(8)}  ${seen[what]}`)];
}

function wordFor({ outcome }: Seen, level: Level, isStrict: boolean): Word {
  return outcome === 'broken' && level === 'decision' && !isStrict ? 'differs' : outcome;
}

function notes({ logins: { opened, left }, created }: Around): string[] {
  return [
    ...(created.length > 0 ? [`Products created, named "Contract check of …, may be deleted": ${created.join(', ')}.`] : []),
    ...(opened > 0 ? [`Logins opened: ${opened}, ${left === 0 ? 'and all of them ended' : `of which ${left} could not be ended`}.`] : []),
  ];
}

function summary(results: readonly Result[], { isStrict }: Around): string {
  const { holds, broken, notTried } = count(results, 'interface');
  const decisions = count(results, 'decision');
  const others = `${decisions.broken} ${isStrict ? 'broken' : 'differ'}`;
  return `${holds} hold, ${broken} broken, ${notTried} not tried; decisions: ${decisions.holds} hold, ${others}, ${decisions.notTried} not tried`;
}

function count(results: readonly Result[], level: Level): Counts {
  const outcomes = results.filter(({ promised }) => promised.level === level).map(({ seen }) => seen.outcome);
  const of = (outcome: Seen['outcome']) => outcomes.filter((found) => found === outcome).length;
  return { holds: of('holds'), broken: of('broken'), notTried: of('not tried') };
}
