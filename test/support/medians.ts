/** Returns the median. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? NaN) + (sorted[Math.floor(middle)] ?? NaN)) / 2;
}

/**
 * Returns the two-sided p-value of the Mann-Whitney U test by the normal approximation, which is
 * accurate from about 20 values per sample.
 */
export function mannWhitneyP(first: readonly number[], second: readonly number[]): number {
  const [n, m] = [first.length, second.length];
  const all = [
    ...first.map((value) => ({ value, own: true })),
    ...second.map((value) => ({ value, own: false })),
  ];
  all.sort((a, b) => a.value - b.value);
  let rankSum = 0;
  let ties = 0;
  for (let from = 0, to = 0; from < all.length; from = to) {
    while (to < all.length && all[to]?.value === all[from]?.value) to++;
    // Equal values share the mean of their ranks, which start at 1.
    rankSum += ((from + 1 + to) / 2) * all.slice(from, to).filter(({ own }) => own).length;
    ties += (to - from) ** 3 - (to - from);
  }
  const u = rankSum - (n * (n + 1)) / 2;
  const deviation = Math.sqrt(((n * m) / 12) * (n + m + 1 - ties / ((n + m) * (n + m - 1))));
  return deviation === 0
    ? 1
    : Math.min(1, 2 * upperTail(Math.max(0, Math.abs(u - (n * m) / 2) - 0.5) / deviation));
}

// The upper tail of the standard normal distribution, accurate to seven digits (Abramowitz and
// Stegun, 26.2.17).
function upperTail(z: number): number {
  const t = 1 / (1 + 0.2316419 * z);
  const weights = [0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429];
  const sum = weights.reduceRight((rest, weight) => (rest + weight) * t, 0);
  return (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * sum;
}
