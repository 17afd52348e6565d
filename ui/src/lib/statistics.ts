// Tests whether a share changed by more than noise. Each side is divided into time slices. The variation between slices shows how far the
// share moves without a change. Welch's test compares the two shares. The procedure of Benjamini and Hochberg over all tests limits the
// false positives among hundreds of functions.

/** The value of one function in a time slice, and the value of all functions. */
export interface Slice {
  part: number;
  all: number;
}

export interface Share {
  /** Share over all slices together. */
  share: number;
  /** Variance of the share. */
  variance: number;
  /** Number of slices with a value. */
  slices: number;
}

/** Returns the share over all slices: the sum of the parts divided by the sum of all values. So slices may have different weights. Also returns the variance of this ratio. */
export function shareOf(slices: readonly Slice[]): Share {
  const full = slices.filter(({ all }) => all > 0);
  const all = full.reduce((sum, slice) => sum + slice.all, 0);
  const share = all > 0 ? full.reduce((sum, { part }) => sum + part, 0) / all : 0;
  const count = full.length;
  if (count < 2) return { share, variance: Number.POSITIVE_INFINITY, slices: count };
  const squares = full.reduce((sum, slice) => sum + (slice.part - share * slice.all) ** 2, 0);
  return { share, variance: (squares * count) / (count - 1) / all ** 2, slices: count };
}

/** Returns the p-value: the chance of so large a difference if nothing has changed. */
export function chanceOfNoise(one: Share, two: Share): number {
  const apart = Math.abs(one.share - two.share);
  const variance = one.variance + two.variance;
  // A rounding error is not a change.
  if (!Number.isFinite(variance) || apart <= 1e-12) return 1;
  if (variance <= 1e-24) return 0;
  const freedom = variance ** 2 / ((one.variance ** 2 / (one.slices - 1) || 0) + (two.variance ** 2 / (two.slices - 1) || 0));
  return studentTail(apart / Math.sqrt(variance), freedom);
}

/** Returns which p-values are significant, so that at most the share `rate` of them is expected to be chance. */
export function beyondChance(chances: readonly number[], rate: number): boolean[] {
  const order = chances.map((chance, index) => ({ chance, index })).sort((a, b) => a.chance - b.chance);
  const last = order.findLastIndex(({ chance }, rank) => chance <= (rate * (rank + 1)) / chances.length);
  const picked = new Array<boolean>(chances.length).fill(false);
  for (const { index } of order.slice(0, last + 1)) picked[index] = true;
  return picked;
}

/** Returns the two-sided tail of Student's t distribution. */
export function studentTail(t: number, freedom: number): number {
  return incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

/** The regularized incomplete beta function, by its continued fraction (Lentz). */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = Math.exp(a * Math.log(x) + b * Math.log(1 - x) - logBeta(a, b)) / a;
  const tiny = 1e-300;
  let c = 1;
  let d = 1 / nonZero(1 - ((a + b) * x) / (a + 1), tiny);
  let fraction = d;
  for (let m = 1; m <= 300; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonZero(1 + even * d, tiny);
    c = nonZero(1 + even / c, tiny);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonZero(1 + odd * d, tiny);
    c = nonZero(1 + odd / c, tiny);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-14) break;
  }
  return front * fraction;
}

const nonZero = (value: number, tiny: number): number => (Math.abs(value) < tiny ? tiny : value);
const logBeta = (a: number, b: number): number => logGamma(a) + logGamma(b) - logGamma(a + b);

/** Computes log gamma by Stirling's series, after a shift to arguments for which the series is exact. */
function logGamma(x: number): number {
  let [at, shift] = [x, 0];
  while (at < 10) {
    shift -= Math.log(at);
    at += 1;
  }
  return shift + (at - 0.5) * Math.log(at) - at + 0.5 * Math.log(2 * Math.PI) + 1 / (12 * at) - 1 / (360 * at ** 3) + 1 / (1260 * at ** 5);
}
