// The page's content for a state: selections, graphs and sums, computed when asked for and kept
// until the selection changes. Knows nothing of the document.

import { FRAME_FOLDED, FRAME_INLINED, FRAME_KERNEL } from './decode.js';
import { ALL, frameKeys, functionOf, isInlined, mergeTree, rowFilter, topDownGraph, weighTree } from './tree.js';
import { bottomUpGraph, callersGraph } from './invert.js';
import { calleesGraph, functionTotals, selfByKey } from './functions.js';
import { layoutGraph } from './layout.js';
import { compileQuery, matchFunctions, matchedWeight } from './search.js';
import { MAX_COLOURED_BINARIES, kindIndex } from './colors.js';
import { plural } from './format.js';

/** Source lines that a tooltip names at most. */
const MAX_LINES = 3;

export class Model {
  constructor(profile) {
    this.profile = profile;
    this.functionCount = profile.functions.names.length;
    this.tree = mergeTree(profile);
    this.cache = new Map();
    this.selectionKey = '';
    this.#classify();
    this.#rankBinaries();
  }

  /** Kind and flags of each key, from the frames that have it. */
  #classify() {
    const { frames, functions, dsos } = this.profile;
    this.keyKind = new Uint8Array(this.functionCount * 2);
    this.foldedKey = -2;
    frameKeys(frames).forEach((key, frame) => {
      const flags = frames.flags[frame];
      const folded = (flags & FRAME_FOLDED) !== 0;
      this.keyKind[key] = kindIndex(dsos[functions.dso[functionOf(key)]].kind, {
        inlined: (flags & FRAME_INLINED) !== 0,
        kernel: (flags & FRAME_KERNEL) !== 0,
        folded,
      });
      this.foldedKey = folded ? key : this.foldedKey;
    });
  }

  /** Binaries by their own samples in the whole recording, so that colours stay when the selection
   *  changes. */
  #rankBinaries() {
    const { rows, functions, dsos } = this.profile;
    const samples = new Float64Array(dsos.length);
    for (let row = 0; row < rows.node.length; row++) {
      if (rows.node[row] >= 0) {
        const key = this.tree.key[this.tree.nodeOf[rows.node[row]]];
        samples[functions.dso[functionOf(key)]] += rows.samples[row];
      }
    }
    this.binaryOrder = [...dsos.keys()].sort((a, b) => samples[b] - samples[a] || a - b);
    this.binaryRank = new Int32Array(dsos.length);
    this.binaryOrder.forEach((dso, rank) => {
      this.binaryRank[dso] = rank;
    });
  }

  /** Takes over what the state selects; true where that changed anything. */
  select(state) {
    const { event, pid, tid, comm, weight } = state;
    const selectionKey = JSON.stringify([event, pid, tid, comm, weight]);
    if (selectionKey === this.selectionKey) {
      return false;
    }
    this.selectionKey = selectionKey;
    this.cache.clear();
    this.event = this.profile.events[event] ?? { name: '', samples: 0, period: 0, lostSamples: 0 };
    this.selection = {
      event,
      threads: this.#threadMask(pid, tid),
      comms: comm === null ? null
        : Uint8Array.from(this.profile.comms, (name) => (name === comm ? 1 : 0)),
    };
    this.weights = weighTree(this.tree, this.profile.rows, this.selection);
    // Without periods (or for those who want it) each sample weighs the same.
    this.byPeriod = weight === 'period' && this.weights.totalPeriod[0] > 0;
    this.total = this.weightsOf(this.weights)[0];
    return true;
  }

  #threadMask(pid, tid) {
    if (pid === null && tid === null) {
      return null;
    }
    const matches = (thread) => (pid === null || thread.pid === pid) && (tid === null || thread.tid === tid);
    return Uint8Array.from(this.profile.threads, (thread) => (matches(thread) ? 1 : 0));
  }

  /** Totals of a graph's nodes in the weight that is shown. */
  weightsOf(graph) {
    return this.byPeriod ? graph.totalPeriod : graph.totalSamples;
  }

  /** Self weights of a graph's nodes, or null where the graph has none. */
  selfOf(graph) {
    return this.byPeriod ? graph.selfPeriod : graph.selfSamples;
  }

  #cached(kind, variant, make) {
    const held = this.cache.get(kind);
    if (held?.variant === variant) {
      return held.value;
    }
    const value = make();
    this.cache.set(kind, { variant, value });
    return value;
  }

  #laidOut(graph) {
    const weight = this.weightsOf(graph);
    return { graph, weight, layout: layoutGraph(graph, weight, this.foldedKey) };
  }

  /** The whole graph, root down or leaf up, for the zoomed node. */
  graph(stacks, path) {
    if (stacks === 'top-down') {
      return this.#cached('top-down', '', () => this.#laidOut(topDownGraph(this.tree, this.weights)));
    }
    const options = { path, byPeriod: this.byPeriod };
    return this.#cached('bottom-up', path.join(), () => (
      this.#laidOut(bottomUpGraph(this.tree, this.weights, options))));
  }

  /** Callers of a function. */
  callers(fn, path) {
    const options = { path, byPeriod: this.byPeriod };
    return this.#cached('callers', [fn, ...path].join(), () => (
      this.#laidOut(callersGraph(this.tree, this.weights, fn, options))));
  }

  /** Callees of a function. */
  callees(fn) {
    return this.#cached('callees', fn, () => (
      this.#laidOut(calleesGraph(this.tree, this.weights, fn, this.functionCount))));
  }

  /** Sums by function. */
  functionSums() {
    return this.#cached('functions', '', () => functionTotals(this.tree, this.weights, this.functionCount));
  }

  /** Self weight by key. */
  selfByKey() {
    return this.#cached('keys', '', () => (
      selfByKey(this.tree, this.selfOf(this.weights), this.functionCount)));
  }

  /** The result of the search: a mask of functions, their share of the total, the error of a
   * regular expression; null without a search. */
  search(text, isRegex) {
    return this.#cached('search', `${isRegex} ${text}`, () => {
      const query = compileQuery(text, isRegex);
      if (query === null) {
        return null;
      }
      const functions = matchFunctions(this.profile.functions.names, query);
      const weight = matchedWeight(this.tree, this.weightsOf(this.weights), functions);
      return { functions, weight, share: this.total > 0 ? weight / this.total : 0, error: query.error };
    });
  }

  /** The name of a node as frames and tables show it. */
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

  functionName(fn) {
    return this.profile.functions.names[fn];
  }

  functionDso(fn) {
    return this.profile.dsos[this.profile.functions.dso[fn]];
  }

  /** Category of a key for a legend: index of the kind, or rank of the binary. */
  category(key, colour) {
    if (colour === 'kind') {
      return this.keyKind[key];
    }
    const rank = this.binaryRank[this.profile.functions.dso[functionOf(key)]];
    return Math.min(rank, MAX_COLOURED_BINARIES);
  }

  /** Source lines with most of the samples, and their shares among the lines of the same frames:
   *  of one node of the tree from the root down, or (node null) of all frames with this key. */
  sourceLines(key, node = null) {
    const { nodes, frames } = this.profile;
    const here = node === null
      ? (i) => frames.function[nodes.frame[i]] === functionOf(key)
        && isInlined(key) === ((frames.flags[nodes.frame[i]] & FRAME_INLINED) !== 0)
      : (i) => this.tree.nodeOf[i] === node;
    return this.#cached('lines', `${key} ${node}`, () => this.#collectLines(here)).slice(0, MAX_LINES);
  }

  #nodeTotals() {
    return this.#cached('nodes', '', () => {
      const { rows, nodes } = this.profile;
      const totals = new Float64Array(nodes.parent.length);
      const selected = rowFilter(rows, this.selection);
      const weight = this.byPeriod ? rows.period : rows.samples;
      for (let row = 0; row < rows.node.length; row++) {
        if (rows.node[row] >= 0 && selected(row)) {
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

  #collectLines(here) {
    const { nodes, frames, files } = this.profile;
    const totals = this.#nodeTotals();
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

  /** Weights of processes, threads and comms among the samples of the event; threads within the
   *  selected process, comms within the selected thread. */
  choices({ event, pid, tid }) {
    const { rows, threads, comms } = this.profile;
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

  #processes(byThread) {
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

  #threads(byThread, pid) {
    const named = this.profile.threads.map((thread, index) => ({
      id: thread.tid, pid: thread.pid, name: this.profile.comms[thread.comm], weight: byThread[index],
    }));
    const listed = named.filter((thread) => pid === null || thread.pid === pid);
    return listed.sort((a, b) => b.weight - a.weight || a.id - b.id);
  }

  #comms(byComm) {
    const sums = new Map();
    this.profile.comms.forEach((name, index) => {
      sums.set(name, (sums.get(name) ?? 0) + byComm[index]);
    });
    const named = [...sums].map(([name, weight]) => ({ id: name, name, weight }));
    return named.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight);
  }
}
