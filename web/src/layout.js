// Where each frame of a graph stands: x in units of weight, rows by depth.

/** @import { Graph, Layout } from './types.d.ts' */

const FEW_CHILDREN = 16;

/** Lays a graph out. Children stand side by side from their parent's left edge, heaviest first,
 *  folded ones last; those of a graph in order of time (`inTime`) as they are numbered.
 *
 *  `order` has the nodes with more weight than `least` row by row, from left to right; row d is
 *  `order[rowStart[d] .. rowStart[d + 1]]`. `height` is the number of rows below a node.
 *  @param {Graph} graph
 *  @param {Float64Array} weight
 *  @returns {Layout} */
export function layoutGraph(graph, weight, foldedKey = -2, least = 0) {
  const { count, parent, key } = graph;
  const childStart = childRanges(graph, weight, least);
  const children = new Int32Array(childStart[count]);
  const fill = childStart.slice(0, count);
  for (let node = 1; node < count; node++) {
    if (weight[node] > least) {
      children[fill[parent[node]]++] = node;
    }
  }
  /** @param {number} node */
  const isFolded = (node) => (key[node] === foldedKey ? 1 : 0);
  /** @param {number} a
   *  @param {number} b */
  const before = (a, b) => isFolded(a) - isFolded(b) || weight[b] - weight[a] || key[a] - key[b];
  const x = new Float64Array(count);
  const order = new Int32Array(children.length + 1);
  const rowStart = [0];
  let filled = 1;
  for (let at = 0, rowEnd = 0; at < filled; at++) {
    if (at === rowEnd) {
      rowEnd = filled;
      rowStart.push(filled);
    }
    const node = order[at];
    const [start, end] = [childStart[node], childStart[node + 1]];
    if (end - start > 1 && !graph.inTime) {
      sortRange(children, start, end, before);
    }
    let left = x[node];
    for (let i = start; i < end; i++) {
      const child = children[i];
      x[child] = left;
      left += weight[child];
      order[filled++] = child;
    }
  }
  return { x, order, rowStart: Int32Array.from(rowStart), height: heights(graph, order) };
}

/** Most nodes have few children: those are put in order without a view of the array.
 *  @param {Int32Array} children
 *  @param {number} start
 *  @param {number} end
 *  @param {(a: number, b: number) => number} before */
function sortRange(children, start, end, before) {
  if (end - start > FEW_CHILDREN) {
    children.subarray(start, end).sort(before);
    return;
  }
  for (let i = start + 1; i < end; i++) {
    const child = children[i];
    let at = i;
    for (; at > start && before(child, children[at - 1]) < 0; at--) {
      children[at] = children[at - 1];
    }
    children[at] = child;
  }
}

/** @param {Graph} graph
 *  @param {Float64Array} weight
 *  @param {number} least */
function childRanges({ count, parent }, weight, least) {
  const start = new Int32Array(count + 1);
  for (let node = 1; node < count; node++) {
    if (weight[node] > least) {
      start[parent[node] + 1] += 1;
    }
  }
  for (let node = 0; node < count; node++) {
    start[node + 1] += start[node];
  }
  return start;
}

/** @param {Graph} graph
 *  @param {Int32Array} order */
function heights({ count, parent }, order) {
  const height = new Int32Array(count);
  for (let i = order.length - 1; i > 0; i--) {
    const above = parent[order[i]];
    height[above] = Math.max(height[above], height[order[i]] + 1);
  }
  return height;
}

/** Rows of a layout.
 *  @param {Layout} layout */
export function rowCount(layout) {
  return layout.rowStart.length - 1;
}

/** Index into `order` of the last frame in the row that begins at or before `x`; the row's first
 *  where none does.
 *  @param {Layout} layout
 *  @param {number} row
 *  @param {number} x */
export function findInRow(layout, row, x) {
  let [low, high] = [layout.rowStart[row], layout.rowStart[row + 1]];
  const first = low;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (layout.x[layout.order[middle]] <= x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return Math.max(first, low - 1);
}

/** The node at depth `row` and position `x`, or -1.
 *  @param {Layout} layout
 *  @param {Float64Array} weight
 *  @param {number} row
 *  @param {number} x */
export function nodeAt(layout, weight, row, x) {
  if (row < 0 || row >= rowCount(layout)) {
    return -1;
  }
  const node = layout.order[findInRow(layout, row, x)];
  return x >= layout.x[node] && x < layout.x[node] + weight[node] ? node : -1;
}

/** The neighbour of a node: `step` -1 or 1 within its row, or -1 where the row ends.
 *  @param {Graph} graph
 *  @param {Layout} layout
 *  @param {number} node
 *  @param {number} step */
export function neighbour(graph, layout, node, step) {
  const row = graph.depth[node];
  const at = findInRow(layout, row, layout.x[node]) + step;
  return at >= layout.rowStart[row] && at < layout.rowStart[row + 1] ? layout.order[at] : -1;
}

/** The child with the largest part between two positions, or -1 where none has any.
 *  @param {Graph} graph
 *  @param {Layout} layout
 *  @param {Float64Array} weight
 *  @param {number} node
 *  @param {number[]} [within] */
export function heaviestChild(graph, layout, weight, node, [from, to] = [-Infinity, Infinity]) {
  const row = graph.depth[node] + 1;
  if (row >= rowCount(layout)) {
    return -1;
  }
  let [best, most] = [-1, 0];
  for (let at = findInRow(layout, row, Math.max(from, layout.x[node])); at < layout.rowStart[row + 1]; at++) {
    const child = layout.order[at];
    if (layout.x[child] >= Math.min(to, layout.x[node] + weight[node])) {
      break;
    }
    const part = Math.min(to, layout.x[child] + weight[child]) - Math.max(from, layout.x[child]);
    if (graph.parent[child] === node && part > most) {
      [best, most] = [child, part];
    }
  }
  return best;
}
