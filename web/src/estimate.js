// How far a share can be trusted: the scatter of blocks of time, as crates/read/whit-estimate computes it.

/** Blocks that a range of time is parted into at most. */
export const MAX_BLOCKS = 64;
const TAIL = 0.025;
/** Fewer degrees of freedom tell nothing of an error. */
const MIN_FREEDOM = 0.5;
/** Fewer blocks say nothing of how much neighbours depend on each other. */
const MIN_NEIGHBOURS = 12;

/** @param {number} x */
function logGamma(x) {
  // Lanczos' approximation, to 15 digits.
  const terms = [76.18009172947146, -86.50532032941677, 24.01409824083091, -1.231739572450155, 1.208650973866179e-3, -5.395239384953e-6];
  const t = x + 5.5;
  const sum = terms.reduce((all, term, i) => all + term / (x + 1 + i), 1.000000000190015);
  return (x + 0.5) * Math.log(t) - t + Math.log((2.5066282746310005 * sum) / x);
}

/** The continued fraction of the incomplete beta function.
 *  @param {number} a
 *  @param {number} b
 *  @param {number} x */
function betaFraction(a, b, x) {
  const tiny = 1e-300;
  /** @param {number} value */
  const guard = (value) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / guard(1 - ((a + b) * x) / (a + 1));
  let h = d;
  for (let m = 1; m < 300; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    h *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    h *= d * c;
    if (Math.abs(d * c - 1) < 1e-14) {
      break;
    }
  }
  return h;
}

/** Probability that Student's t with these degrees of freedom exceeds `t` > 0.
 *  @param {number} t
 *  @param {number} freedom */
function upperTail(t, freedom) {
  const [a, b, x] = [freedom / 2, 0.5, freedom / (freedom + t * t)];
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x));
  const beta = x < (a + 1) / (a + b + 2) ? (front * betaFraction(a, b, x)) / a : 1 - (front * betaFraction(b, a, 1 - x)) / b;
  return beta / 2;
}

/** The t that is exceeded in 2.5 % of all cases.
 *  @param {number} freedom */
export function studentQuantile(freedom) {
  let [low, high] = [1e-9, 1];
  while (upperTail(high, freedom) > TAIL && high < 1e12) {
    high *= 2;
  }
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    [low, high] = upperTail(middle, freedom) > TAIL ? [middle, high] : [low, middle];
  }
  return (low + high) / 2;
}

/** Blocks with these weights, for ratios to their sum; null where they tell nothing of an error.
 *  @param {Float64Array} weights */
export function blocksOf(weights) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const freedom = 1 / weights.reduce((sum, weight) => sum + (weight / total) ** 2, 0) - 1;
  if (!(total > 0) || !(freedom >= MIN_FREEDOM)) {
    return null;
  }
  // A block pulls the ratio towards its own: its residual is too small by its share of the weight.
  const factors = weights.map((weight) => 1 / (1 - weight / total));
  const squares = weights.reduce((sum, weight, i) => sum + factors[i] * weight * weight, 0);
  const count = weights.reduce((n, weight) => n + (weight > 0 ? 1 : 0), 0);
  const products = weights.reduce((sum, weight, i) => sum + weight * (weights[i + 1] ?? 0), 0);
  const neighbours = count < MIN_NEIGHBOURS ? 0 : products;
  return { weights, total, factors, squares, neighbours, t: studentQuantile(freedom) };
}

/** Ratios of many quantities to the blocks' weight, and half of their 95 % intervals. */
export class Ratios {
  /** @param {NonNullable<ReturnType<typeof blocksOf>>} blocks
   *  @param {number} count */
  constructor(blocks, count) {
    this.blocks = blocks;
    this.sum = new Float64Array(count);
    this.squares = new Float64Array(count);
    this.products = new Float64Array(count);
    // Products of the values of neighbours, and of values and the weights around them.
    this.neighbours = new Float64Array(count);
    this.around = new Float64Array(count);
    this.lastBlock = new Int32Array(count).fill(-2);
    this.lastValue = new Float64Array(count);
  }

  /** Each block is added once, in order.
   *  @param {number} block
   *  @param {number} index
   *  @param {number} value */
  add(block, index, value) {
    const { weights, factors } = this.blocks;
    this.sum[index] += value;
    this.squares[index] += factors[block] * value * value;
    this.products[index] += factors[block] * value * weights[block];
    this.neighbours[index] += block === this.lastBlock[index] + 1 ? value * this.lastValue[index] : 0;
    this.around[index] += value * ((weights[block - 1] ?? 0) + (weights[block + 1] ?? 0));
    this.lastBlock[index] = block;
    this.lastValue[index] = value;
  }

  /** Half of the interval of a quantity's share.
   *  @param {number} index */
  half(index) {
    const { total, squares, neighbours, t } = this.blocks;
    const share = this.sum[index] / total;
    const residuals = Math.max(0, this.squares[index] - 2 * share * this.products[index] + share * share * squares);
    // The scatter of a sum counts twice what lasts from one block into the next.
    const lasting = neighbours > 0 ? this.neighbours[index] - share * this.around[index] + share * share * neighbours : 0;
    return (t * Math.sqrt(residuals + 2 * Math.min(Math.max(0, lasting), residuals))) / total;
  }
}
