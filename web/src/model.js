// The page's content for a state: selections, graphs and sums, computed when asked for and kept
// until the selection changes. Knows nothing of the document.

import { FRAME_FOLDED, FRAME_INLINED, FRAME_KERNEL } from './decode.js';
import { ALL, findPath, frameKeys, functionOf, groupTree, isInlined, mergeTree, rowFilter, topDownGraph, weighTree } from './tree.js';
import { transformTree } from './transforms.js';
import { groupRows, usefulGroupings } from './grouping.js';
import { bucketsOf, rowsByCpu } from './moments.js';
import { sourceOf } from './source.js';
import { timeOrderGraph } from './timeorder.js';
import { MAX_BLOCKS } from './estimate.js';
import { functionIntervals, nodeHalf, nodeIntervals } from './intervals.js';
import { bottomUpGraph, callersGraph } from './invert.js';
import { calleesGraph, functionTotals, selfByKey } from './functions.js';
import { layoutGraph } from './layout.js';
import { compileQuery, matchFunctions, matchedWeight } from './search.js';
import { KINDS, MAX_COLOURED_BINARIES, kindIndex } from './colors.js';
import { formatPeriod, isWallEvent, plural } from './format.js';
import { threadRoles } from './roles.js';
import { waitSites } from './waitsites.js';
import { waitFrameName, waitPart, waitSums, waitTree } from './waittree.js';

/** @import { EntryBlocks, Found, Graph, Intervals, IntervalSteps, LaidOut, Moments, PageEvent, Profile, Rows, SampleChoice, Source, State, Thread, TimelineData, TimeRange, Transform, TransformContext, Tree, Weights } from './types.d.ts' */

/** An eighth of a pixel at 4096. */
const UNSEEN_SHARE = 1 / 32768;

/** Source lines that a tooltip names at most. */
const MAX_LINES = 3;

const NO_WEIGHTS = new Float64Array();

export class Model {
  /** @type {{ key: string, tree: Tree }[]} The tree with groups at its root, and that after each transform. */
  trees = [];
  /** @type {PageEvent} */
  event = { name: '', samples: 0, period: 0, lostSamples: 0 };
  /** @type {SampleChoice} */
  selection = { event: 0, threads: null, comms: null };
  filterKey = '';
  byPeriod = false;
  total = 0;
  root = '';
  /** @type {Int32Array} The group of each row. */
  groupOf = new Int32Array();
  /** @type {TimeRange | null} */
  range = null;
  /** @type {TimeRange | null} The same as buckets, where the page has moments. */
  buckets = null;
  /** @type {Uint8Array | null} */
  threadRoles = null;
  /** @type {{ rows: Rows, moments: Moments } | null} */
  byCpu = null;
  /** @type {Tree} The tree of the selection's transforms. */
  tree;
  /** @type {Rows} Rows of all of the time, told apart by CPU where CPUs are the root. */
  allRows;
  /** @type {Moments | null} Their moments. */
  allMoments;
  /** @type {Rows} Rows with the weights that they have in the range. */
  rows;
  /** @type {Weights} */
  weights = { selfSamples: NO_WEIGHTS, selfPeriod: NO_WEIGHTS, totalSamples: NO_WEIGHTS, totalPeriod: NO_WEIGHTS };
  /** @type {Int32Array} Ranks of binaries by their own samples. */
  binaryRank;
  /** @type {string[]} Names of functions, libraries and groups. */
  names;

  /** @param {Profile} profile
   *  @param {Source} source */
  constructor(profile, source = sourceOf(profile)) {
    this.profile = profile;
    this.source = source;
    this.moments = profile.moments ?? null;
    this.functionCount = profile.functions.names.length;
    // Behind the functions stand made-up ones: a collapsed library, then the groups at the root.
    this.libraryCount = profile.dsos.length;
    this.realNames = [...profile.functions.names, ...profile.dsos.map((dso) => dso.name)];
    this.names = this.realNames;
    this.binaryRank = new Int32Array(profile.dsos.length);
    this.base = mergeTree(profile);
    this.tree = this.base;
    [this.rows, this.allRows, this.allMoments] = [profile.rows, profile.rows, this.moments];
    this.groupings = usefulGroupings(profile);
    /** @type {Map<string, { variant: string | number, value: unknown }>} */
    this.cache = new Map();
    this.selectionKey = '';
    /** Kind of each key, as an index into KINDS. */
    this.functionKind = new Uint8Array((this.functionCount + this.libraryCount) * 2);
    this.foldedKey = -2;
    /** @type {number[]} Binaries in that order. */
    this.binaryOrder = [];
    this.#plant('none');
    this.#classify();
    this.#rankBinaries();
  }

  /** Kind and flags of each key, from the frames that have it. */
  #classify() {
    const { frames, functions, dsos } = this.profile;
    frameKeys(frames).forEach((key, frame) => {
      const flags = frames.flags[frame];
      const folded = (flags & FRAME_FOLDED) !== 0;
      this.functionKind[key] = kindIndex(dsos[functions.dso[functionOf(key)]].kind, {
        inlined: (flags & FRAME_INLINED) !== 0,
        kernel: (flags & FRAME_KERNEL) !== 0,
        folded,
      });
      this.foldedKey = folded ? key : this.foldedKey;
    });
    dsos.forEach((dso, index) => {
      const kernel = dso.kind === 'kernel';
      this.functionKind[this.libraryKey(index)] = kindIndex(dso.kind, { inlined: false, kernel, folded: false });
    });
  }

  /** Binaries by their own samples in the whole recording, so that colours stay when the selection
   *  changes. */
  #rankBinaries() {
    const { rows, functions, dsos } = this.profile;
    const samples = new Float64Array(dsos.length);
    for (let row = 0; row < rows.node.length; row++) {
      if (rows.node[row] >= 0) {
        const key = this.base.key[this.base.rowNode[row]];
        samples[functions.dso[functionOf(key)]] += rows.samples[row];
      }
    }
    this.binaryOrder = [...dsos.keys()].sort((a, b) => samples[b] - samples[a] || a - b);
    this.binaryOrder.forEach((dso, rank) => {
      this.binaryRank[dso] = rank;
    });
  }

  /** Takes over what the state selects; true where that changed anything.
   *  @param {State} state */
  select(state) {
    const { event, pid, tid, comm, weight, range, root, transforms } = state;
    const selectionKey = JSON.stringify([event, pid, tid, comm, weight, range, root, transforms, this.source.origin(range ?? null)]);
    if (selectionKey === this.selectionKey) {
      return false;
    }
    this.selectionKey = selectionKey;
    // The choice of samples, apart from time and the form of the tree.
    this.filterKey = JSON.stringify([event, pid, tid, comm, weight]);
    this.cache.clear();
    this.event = this.profile.events[event] ?? { name: '', samples: 0, period: 0, lostSamples: 0 };
    this.selection = {
      event,
      threads: this.#threadMask(pid, tid),
      comms: comm === null ? null
        : Uint8Array.from(this.profile.comms, (name) => (name === comm ? 1 : 0)),
    };
    this.#plant(this.groupings.some(({ id }) => id === root) ? root : 'none');
    this.#transform(transforms ?? []);
    this.#cutRange(range ?? null);
    this.weights = weighTree(this.tree, this.rows, this.selection);
    // Without periods (or for those who want it) each sample weighs the same.
    // Waits have no samples.
    this.byPeriod = (weight === 'period' || isWallEvent(this.event.name)) && this.weights.totalPeriod[0] > 0;
    this.total = this.weightsOf(this.weights)[0];
    return true;
  }

  /** The untransformed tree with groups of this kind at its root.
   *  @param {string} root */
  #plant(root) {
    if (this.root === root) {
      return;
    }
    const { profile, base } = this;
    this.root = root;
    const split = root === 'cpu' ? this.splitByCpu() : { rows: profile.rows, moments: this.moments };
    [this.allRows, this.allMoments] = [split.rows, split.moments];
    const { groupOf, names } = groupRows(profile, this.allRows, root);
    this.groupOf = groupOf;
    this.names = root === 'none' ? this.realNames : [...this.realNames, ...names];
    if (root === 'none') {
      this.trees = [{ key: '', tree: base }];
    } else {
      const rowNode = this.allRows === profile.rows ? base.rowNode
        : this.allRows.node.map((node) => (node < 0 ? 0 : base.nodeOf[node]));
      /** @param {number} group */
      const groupKey = (group) => (this.realNames.length + group) * 2;
      const options = { groupKey, functionCount: this.names.length };
      this.trees = [{ key: '', tree: groupTree(base, rowNode, groupOf, names.length, options) }];
    }
    this.tree = this.trees[0].tree;
  }

  /** The moments of the rows.
   *  @returns {Moments} */
  timed() {
    if (this.allMoments === null) {
      throw new Error('this page has no times');
    }
    return this.allMoments;
  }

  /** The buckets of the range.
   *  @returns {TimeRange} */
  #bucketRange() {
    return this.buckets ?? [0, this.timed().buckets];
  }

  /** @returns {{ rows: Rows, moments: Moments }} */
  splitByCpu() {
    this.byCpu ??= rowsByCpu(this.profile.rows, this.timed());
    return this.byCpu;
  }

  /** Applies transforms; those at the front that were applied before are kept.
   *  @param {readonly Transform[]} transforms */
  #transform(transforms) {
    /** @type {TransformContext} */
    const context = {
      functionCount: this.names.length,
      libraryKey: (dso) => this.libraryKey(dso),
        dsoOf: (key) => this.#dsoIndex(functionOf(key)),
      isGroup: (key) => this.isGroup(key),
    };
    transforms.forEach((transform, i) => {
      const key = JSON.stringify(transform);
      if (this.trees[i + 1]?.key !== key) {
        this.trees.length = i + 1;
        this.trees.push({ key, tree: transformTree(this.trees[i].tree, transform, context) });
      }
    });
    this.trees.length = transforms.length + 1;
    this.tree = this.trees[transforms.length].tree;
  }

  /** Rows with the weights that they have in a range of time.
   *  @param {TimeRange | null} range */
  #cutRange(range) {
    this.range = this.moments === null ? null : range;
    const { allMoments: moments, allRows: rows } = this;
    if (moments === null) {
      [this.buckets, this.rows] = [null, rows];
      return;
    }
    this.buckets = bucketsOf(moments, range ?? [0, moments.spanNs + 1]);
    this.rows = range === null ? rows : { ...rows, ...this.source.rowSums(moments, rows.node.length, range, this.buckets) };
  }

  /** Key of the made-up function for a collapsed library.
   *  @param {number} dso */
  libraryKey(dso) {
    return (this.functionCount + dso) * 2;
  }

  /** @param {number} key */
  isGroup(key) {
    return functionOf(key) >= this.realNames.length;
  }

  /** @param {number | null} pid
   *  @param {number | null} tid */
  #threadMask(pid, tid) {
    if (pid === null && tid === null) {
      return null;
    }
    /** @param {Thread} thread */
    const matches = (thread) => (pid === null || thread.pid === pid) && (tid === null || thread.tid === tid);
    return Uint8Array.from(this.profile.threads, (thread) => (matches(thread) ? 1 : 0));
  }

  /** Totals of a graph's nodes in the weight that is shown.
   *  @param {Pick<Weights, 'totalSamples' | 'totalPeriod'>} graph */
  weightsOf(graph) {
    return this.byPeriod ? graph.totalPeriod : graph.totalSamples;
  }

  /** Self weights of a graph's nodes, or null where the graph has none.
   *  @template {Float64Array | null} S
   *  @param {{ selfSamples: S, selfPeriod: S }} graph */
  selfOf(graph) {
    return this.byPeriod ? graph.selfPeriod : graph.selfSamples;
  }

  /** A weight in words: a sum of periods, or samples.
   *  @param {number} weight */
  formatWeight(weight) {
    return this.byPeriod ? formatPeriod(this.event.name, weight) : plural(weight, 'sample');
  }

  /** @template T
   *  @param {string} kind
   *  @param {string | number} variant
   *  @param {() => T} make
   *  @returns {T} */
  #cached(kind, variant, make) {
    const held = this.cache.get(kind);
    if (held?.variant === variant) {
      return /** @type {T} */ (held.value);
    }
    const value = make();
    this.cache.set(kind, { variant, value });
    return value;
  }

  /** @returns {LaidOut}
   *  @param {Graph} graph */
  #laidOut(graph, least = 0) {
    const weight = this.weightsOf(graph);
    return { graph, weight, layout: layoutGraph(graph, weight, this.foldedKey, least) };
  }

  /** The graph of a moving range: frames that are too narrow to be seen are left out. `path` leads to the zoomed node.
   *  @param {readonly number[]} path */
  graphInMotion(path) {
    const graph = topDownGraph(this.tree, this.weights);
    return this.#laidOut(graph, this.weightsOf(graph)[findPath(graph, path)] * UNSEEN_SHARE);
  }

  /** The whole graph, root down or leaf up, for the zoomed node.
   *  @param {State['stacks']} stacks
   *  @param {readonly number[]} path
   *  @param {State['order']} order */
  graph(stacks, path, order = 'weight') {
    if (stacks === 'top-down' && order === 'time' && this.moments !== null) {
      return this.#cached('in-time', '', () => this.#laidOut(timeOrderGraph(this.tree, this.#stacksInTime())));
    }
    if (stacks === 'top-down') {
      return this.#cached('top-down', '', () => this.#laidOut(topDownGraph(this.tree, this.weights)));
    }
    const options = { path, byPeriod: this.byPeriod };
    return this.#cached('bottom-up', path.join(), () => (
      this.#laidOut(bottomUpGraph(this.tree, this.weights, options))));
  }

  /** Callers of a function.
   *  @param {number} fn
   *  @param {readonly number[]} path */
  callers(fn, path) {
    const options = { path, byPeriod: this.byPeriod };
    return this.#cached('callers', [fn, ...path].join(), () => (
      this.#laidOut(callersGraph(this.tree, this.weights, fn, options))));
  }

  /** Callees of a function.
   *  @param {number} fn */
  callees(fn) {
    return this.#cached('callees', fn, () => (
      this.#laidOut(calleesGraph(this.tree, this.weights, fn, this.names.length))));
  }

  /** Sums by function. */
  functionSums() {
    return this.#cached('functions', '', () => functionTotals(this.tree, this.weights, this.names.length));
  }

  /** Self weight by key. */
  selfByKey() {
    return this.#cached('keys', '', () => (
      selfByKey(this.tree, this.selfOf(this.weights), this.names.length)));
  }

  /** The result of the search: a mask of functions, their share of the total, the error of a
   * regular expression; null without a search.
   *  @param {string} text
   *  @param {boolean} isRegex
   *  @returns {Found | null} */
  search(text, isRegex) {
    return this.#cached('search', `${isRegex} ${text}`, () => {
      const query = compileQuery(text, isRegex);
      if (query === null) {
        return null;
      }
      const functions = matchFunctions(this.names, query);
      const weight = matchedWeight(this.tree, this.weightsOf(this.weights), functions);
      return { functions, weight, share: this.total > 0 ? weight / this.total : 0, error: query.error };
    });
  }

  /** The call tree of waits in the selection and its range, from one end; null where the page has no event for them.
   *  `lanes` marks the selected ones, `within` is the range in their time.
   *  @param {TimelineData} timeline
   *  @param {Uint8Array} lanes
   *  @param {TimeRange} within
   *  @param {State['direction']} direction */
  waitTree(timeline, lanes, within, direction) {
    const event = this.profile.events.findIndex(({ name }) => isWallEvent(name));
    if (event < 0) {
      return null;
    }
    const { base } = this;
    const { own, foldedNs } = this.#cached('wait-sums', '', () => waitSums({
      base,
      rows: this.#rowsIn(this.range),
      selection: { ...this.selection, event },
      partOf: (key) => waitPart(this.functionName(functionOf(key)), this.functionDso(functionOf(key)).kind),
      foldedKey: this.foldedKey,
      timeline,
      lanes,
      range: this.range,
      within,
    }));
    /** @param {number} key */
    const name = (key) => waitFrameName(key, (fn) => this.functionName(fn));
    return this.#cached('wait-tree', direction, () => ({ ...waitTree(base, own, direction, name), foldedNs }));
  }

  /** The roles of the page's threads.
   *  @returns {Uint8Array} */
  roles() {
    this.threadRoles ??= threadRoles(this.profile);
    return this.threadRoles;
  }

  /** Waits of the selection and its range by call site; null where the page has no event for them. As for `waitTree`.
   *  @param {TimelineData} timeline
   *  @param {Uint8Array} lanes
   *  @param {TimeRange} within */
  waitSites(timeline, lanes, within) {
    const event = this.profile.events.findIndex(({ name }) => isWallEvent(name));
    if (event < 0) {
      return null;
    }
    const { base } = this;
    return this.#cached('wait-sites', '', () => waitSites(this.profile, {
      rows: this.#rowsIn(this.range),
      selection: { ...this.selection, event },
      timeline,
      lanes,
      roles: this.roles(),
      within,
      isFolded: (node) => base.key[base.nodeOf[node]] === this.foldedKey,
    }));
  }

  /** The rows of the profile in a range of time.
   *  @param {TimeRange | null} range
   *  @returns {Rows} */
  #rowsIn(range) {
    const { moments, profile: { rows } } = this;
    return range === null || moments === null ? rows
      : { ...rows, ...this.source.rowSums(moments, rows.node.length, range, bucketsOf(moments, range)) };
  }

  /** The name of a node as frames and tables show it.
   *  @param {Pick<Graph, 'key' | 'count' | 'parent'>} graph
   *  @param {number} node */
  nodeName(graph, node) {
    const key = graph.key[node];
    if (key === ALL) {
      return 'all';
    }
    if (key === this.foldedKey && graph.count === this.tree.count && graph.parent === this.tree.parent) {
      return `(${plural(this.tree.folded[node], 'small frame')})`;
    }
    return this.functionName(functionOf(key));
  }

  /** @param {number} fn */
  functionName(fn) {
    return this.names[fn];
  }

  /** @param {number} fn */
  functionDso(fn) {
    const dso = this.#dsoIndex(fn);
    return dso < 0 ? { name: '', path: `all of this ${this.root}`, kind: 'group' } : this.profile.dsos[dso];
  }

  /** The binary of a function or a collapsed library; -1 for groups.
   *  @param {number} fn */
  #dsoIndex(fn) {
    if (fn < this.functionCount) {
      return this.profile.functions.dso[fn];
    }
    return fn < this.realNames.length ? fn - this.functionCount : -1;
  }

  /** @param {number} fn */
  dsoOfFunction(fn) {
    return this.#dsoIndex(fn);
  }

  /** @param {number} key */
  kindOf(key) {
    return this.isGroup(key) ? KINDS.length - 1 : this.functionKind[key];
  }

  /** Category of a key for a legend: index of the kind, or rank of the binary.
   *  @param {number} key
   *  @param {State['colour']} colour */
  category(key, colour) {
    if (colour === 'kind') {
      return this.kindOf(key);
    }
    const dso = this.#dsoIndex(functionOf(key));
    return dso < 0 ? MAX_COLOURED_BINARIES : Math.min(this.binaryRank[dso], MAX_COLOURED_BINARIES);
  }

  /** Source lines with most of the samples, and their shares among the lines of the same frames:
   *  of one node of the tree from the root down, or (node null) of all frames with this key.
   *  @param {number} key
   *  @param {number | null} node */
  sourceLines(key, node = null) {
    const { nodes, frames } = this.profile;
    // Only nodes of the merged tree itself lead back to those of the profile.
    /** @type {(i: number) => boolean} */
    const here = node === null || this.tree !== this.base
      ? (i) => frames.function[nodes.frame[i]] === functionOf(key)
        && isInlined(key) === ((frames.flags[nodes.frame[i]] & FRAME_INLINED) !== 0)
      : (i) => this.base.nodeOf[i] === node;
    return this.#cached('lines', `${key} ${node}`, () => this.#collectLines(here)).slice(0, MAX_LINES);
  }

  #nodeTotals() {
    return this.#cached('nodes', '', () => {
      const { rows, profile: { nodes } } = this;
      const totals = new Float64Array(nodes.parent.length);
      const selected = rowFilter(rows, this.selection);
      const weight = this.byPeriod ? rows.period : rows.samples;
      for (let row = 0; row < rows.node.length; row++) {
        if (rows.node[row] >= 0 && this.tree.rowNode[row] >= 0 && selected(row)) {
          totals[rows.node[row]] += weight[row];
        }
      }
      for (let node = totals.length - 1; node >= 0; node--) {
        if (nodes.parent[node] >= 0) {
          totals[nodes.parent[node]] += totals[node];
        }
      }
      return totals;
    });
  }

  /** @param {(node: number) => boolean} here */
  #collectLines(here) {
    const { nodes, frames, files } = this.profile;
    const totals = this.#nodeTotals();
    /** @type {Map<string, number>} */
    const sums = new Map();
    let all = 0;
    for (let node = 0; node < totals.length; node++) {
      const frame = nodes.frame[node];
      if (totals[node] === 0 || frames.file[frame] < 0 || !here(node)) {
        continue;
      }
      const line = `${files[frames.file[frame]]}:${frames.line[frame]}`;
      sums.set(line, (sums.get(line) ?? 0) + totals[node]);
      all += totals[node];
    }
    const lines = [...sums].map(([line, weight]) => ({ line, share: weight / all }));
    return lines.sort((a, b) => b.share - a.share);
  }

  /** Stacks of the selection, thread by thread within each group, each thread's in order of time. */
  #stacksInTime() {
    const { allRows: rows, tree, groupOf } = this;
    const [moments, buckets] = [this.timed(), this.#bucketRange()];
    const selected = rowFilter(rows, this.selection);
    /** @type {Map<number, number[]>} */
    const lists = new Map();
    for (let i = moments.first[buckets[0]]; i < moments.first[buckets[1]]; i++) {
      const row = moments.row[i];
      if (tree.rowNode[row] < 0 || !selected(row)) {
        continue;
      }
      const slot = groupOf[row] * this.profile.threads.length + rows.thread[row];
      const list = lists.get(slot) ?? [];
      list.push(i);
      lists.set(slot, list);
    }
    const inOrder = [...lists].sort(([a], [b]) => a - b).flatMap(([, list]) => list);
    return inOrder.map((i) => ({
      node: tree.rowNode[moments.row[i]], samples: moments.samples[i], period: moments.period[i],
    }));
  }

  /** Half of the 95 % intervals of each function's shares, from the scatter over blocks of time; null where too few
   *  blocks have samples. Takes some time. */
  intervals() {
    const steps = this.intervalSteps();
    for (;;) {
      const { done, value } = steps.next();
      if (done) {
        return value;
      }
    }
  }

  /** The same, in short steps: yields between them, and returns the intervals.
   *  @returns {IntervalSteps} */
  * intervalSteps() {
    if (this.moments === null) {
      return null;
    }
    const { selectionKey } = this;
    const held = this.cache.get('intervals');
    if (held !== undefined) {
      return /** @type {Intervals | null} */ (held.value);
    }
    const value = yield* functionIntervals(this.#blocks(), this.tree, this.names.length);
    if (selectionKey === this.selectionKey) {
      this.cache.set('intervals', { variant: '', value });
    }
    return value;
  }

  /** The selected entries of the range in blocks of time.
   *  @returns {EntryBlocks} */
  #blocks() {
    const { allRows: rows, tree } = this;
    const [moments, [from, to]] = [this.timed(), this.#bucketRange()];
    const selected = rowFilter(rows, this.selection);
    const weight = this.byPeriod ? moments.period : moments.samples;
    const count = Math.min(MAX_BLOCKS, to - from);
    /** @param {number} block */
    const edge = (block) => moments.first[from + Math.round(((to - from) * block) / count)];
    /** @param {number} block
     *  @param {(node: number, value: number) => void} take */
    const each = (block, take) => {
      for (let i = edge(block); i < edge(block + 1); i++) {
        const node = tree.rowNode[moments.row[i]];
        if (node >= 0 && selected(moments.row[i])) {
          take(node, weight[i]);
        }
      }
    };
    return { count, each };
  }

  /** Half of the 95 % interval of the share of a node of the tree from the root down, callees included; NaN where too
   *  few blocks have samples.
   *  @param {number} node */
  nodeHalf(node) {
    return this.moments === null ? NaN : this.#cached('node-half', node, () => nodeHalf(this.#blocks(), this.tree, node));
  }

  /** Intervals of nodes of the tree, in short steps; null where too few blocks have samples.
   *  @param {number[]} wanted
   *  @returns {IntervalSteps} */
  * nodeIntervalSteps(wanted) {
    if (this.moments === null) {
      return null;
    }
    const { selectionKey } = this;
    return yield* nodeIntervals(this.#blocks(), this.tree, wanted, () => selectionKey !== this.selectionKey);
  }

  /** Weights of processes, threads and comms among the samples of the event; threads within the
   *  selected process, comms within the selected thread.
   *  @param {Pick<State, 'event' | 'pid' | 'tid'>} state */
  choices({ event, pid, tid }) {
    const { rows, profile: { threads, comms } } = this;
    const [byThread, byComm] = [new Float64Array(threads.length), new Float64Array(comms.length)];
    const weight = this.byPeriod ? rows.period : rows.samples;
    const mask = this.#threadMask(pid, tid);
    for (let row = 0; row < rows.node.length; row++) {
      if (rows.event[row] === event) {
        byThread[rows.thread[row]] += weight[row];
        byComm[rows.comm[row]] += mask === null || mask[rows.thread[row]] === 1 ? weight[row] : 0;
      }
    }
    return { processes: this.#processes(byThread), threads: this.#threads(byThread, pid), comms: this.#comms(byComm) };
  }

  /** @param {Float64Array} byThread */
  #processes(byThread) {
    /** @type {Map<number, { pid: number, weight: number, comm: number, heaviest: number }>} */
    const processes = new Map();
    this.profile.threads.forEach(({ pid, tid, comm }, index) => {
      const process = processes.get(pid) ?? { pid, weight: 0, comm, heaviest: -1 };
      processes.set(pid, process);
      process.weight += byThread[index];
      // The main thread names its process; where it has no samples, the heaviest thread.
      const rank = tid === pid ? Infinity : byThread[index];
      if (rank > process.heaviest) {
        process.heaviest = rank;
        process.comm = comm;
      }
    });
    const named = [...processes.values()].map((process) => ({
      id: process.pid, name: this.profile.comms[process.comm], weight: process.weight,
    }));
    return named.sort((a, b) => b.weight - a.weight || a.id - b.id);
  }

  /** @param {Float64Array} byThread
   *  @param {number | null} pid */
  #threads(byThread, pid) {
    const named = this.profile.threads.map((thread, index) => ({
      id: thread.tid, pid: thread.pid, name: this.profile.comms[thread.comm], weight: byThread[index],
    }));
    const listed = named.filter((thread) => pid === null || thread.pid === pid);
    return listed.sort((a, b) => b.weight - a.weight || a.id - b.id);
  }

  /** @param {Float64Array} byComm */
  #comms(byComm) {
    /** @type {Map<string, number>} */
    const sums = new Map();
    this.profile.comms.forEach((name, index) => {
      sums.set(name, (sums.get(name) ?? 0) + byComm[index]);
    });
    const named = [...sums].map(([name, weight]) => ({ id: name, name, weight }));
    return named.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight);
  }
}
