import { expect, test } from '../support/jest.ts';
import { compare, limitVerdictOf, verdictOf, type Comparison } from '../support/timing.ts';

// What the timing tests conclude from their measurements.

const QUIET = { ratio: 1.01, p: 0.4 };
const measured = (ratio: number, p: number, control = QUIET): Comparison => ({
  difference: { ratio, p },
  control,
});

test.each([
  ['as long', 1, 0.9],
  ['slightly longer, by chance or not', 1.05, 1e-9],
  ['slightly shorter', 0.96, 1e-9],
])('conclusive, alike: %s', (_what, ratio, p) => {
  expect(verdictOf(measured(ratio, p))).toBe('alike');
});

test.each([
  ['longer', 1.06, 1e-5],
  ['shorter', 0.9, 1e-5],
  ['much longer', 12, 1e-30],
])('conclusive, different: %s', (_what, ratio, p) => {
  expect(verdictOf(measured(ratio, p))).toBe('different');
});

test.each([
  ['a difference that may be chance', measured(1.2, 1e-3)],
  ['a control group that takes longer', measured(1.5, 1e-9, { ratio: 1.04, p: 0.2 })],
  ['a control group that takes less', measured(1, 0.9, { ratio: 0.97, p: 0.2 })],
  ['a control group that differs by more than chance', measured(1, 0.9, { ratio: 1.02, p: 0.005 })],
  ['a control group of no numbers', measured(1, 0.9, { ratio: NaN, p: 1 })],
])('inconclusive: %s', (_what, comparison) => {
  expect(verdictOf(comparison)).toBe('inconclusive');
});

test('a limit may be undercut by any amount, and leaves room for more noise', () => {
  const noisy = { ratio: 3, p: 0.1 };
  expect(limitVerdictOf(measured(0.001, 1e-9, noisy), 20)).toBe('alike');
  expect(limitVerdictOf(measured(20, 1e-9, noisy), 20)).toBe('alike');
  expect(limitVerdictOf(measured(21, 1e-9, noisy), 20)).toBe('different');
  expect(limitVerdictOf(measured(21, 1e-9, { ratio: 5, p: 0.1 }), 20)).toBe('inconclusive');
});

test('each is measured equally often, in each order, every attempt with its own number', async () => {
  const attempts: number[] = [];
  const took = (ms: number) => async (attempt: number) => {
    attempts.push(attempt);
    return ms;
  };
  const { difference, control } = await compare(took(1), took(2), 12);
  expect([difference.ratio, control]).toEqual([2, { ratio: 1, p: 1 }]);
  expect(verdictOf({ difference, control })).toBe('different');
  expect(attempts).toEqual(Array.from({ length: 4 + 3 * 12 }, (_, index) => index));
});
