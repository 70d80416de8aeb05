// Types of what goes from module to module. `web/test/run.sh` checks the modules against them; no part of the page.

export type Numbers = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;
/** From and to, in nanoseconds since the first moment. */
export type TimeRange = [number, number];
export type Theme = 'light' | 'dark';
/** Hue, saturation, lightness. */
export type Colour = [number, number, number];

export interface Transform {
  type: 'focus' | 'subtree' | 'merge' | 'drop' | 'recursion' | 'library';
  arg: number | number[];
}

/** The view, as the address holds it. */
export interface State {
  event: number;
  pid: number | null;
  tid: number | null;
  comm: string | null;
  weight: 'period' | 'samples';
  view: string;
  stacks: 'top-down' | 'bottom-up';
  order: 'weight' | 'time';
  root: string;
  range: TimeRange | null;
  transforms: readonly Transform[];
  strip: 'area' | 'heat';
  by: string;
  shape: 'flame' | 'icicle';
  colour: 'kind' | 'binary';
  direction: 'callee' | 'caller';
  waits: 'longest' | 'tree';
  /** Kinds of waits that are left out, separated by commas. */
  without: string;
  search: string;
  regex: boolean;
  zoom: readonly number[];
  fn: number | null;
  callers: readonly number[];
  callees: readonly number[];
  sort: 'self' | 'total' | 'name' | 'binary';
  ascending: boolean;
  filter: string;
  /** The thread or CPU of the stack chart; empty for the heaviest thread. */
  lane: string;
}

export interface PageEvent {
  name: string;
  samples: number;
  period: number;
  lostSamples: number;
}

export interface Thread {
  pid: number;
  tid: number;
  comm: number;
}

export interface Binary {
  path: string;
  name: string;
  buildId?: string | null;
  kind: string;
}

/** Sums of samples with the same event, thread, command, cgroup and call stack. */
export interface Rows {
  event: Int32Array;
  thread: Int32Array;
  comm: Int32Array;
  cgroup: Int32Array;
  node: Int32Array;
  samples: Float64Array;
  period: Float64Array;
  cpu?: Int32Array;
}

export interface Frames {
  function: Int32Array;
  file: Int32Array;
  line: Uint32Array;
  flags: Uint8Array;
}

/** When samples were taken: entries in order of time. */
export interface Moments {
  count: number;
  spanNs: number;
  bucketNs: number;
  wantedBucketNs: number;
  maxEntries: number;
  sliceNs: number | null;
  hasCpus: boolean;
  lossWindows: TimeRange[];
  waitsBeginNs: number | null;
  buckets: number;
  first: Int32Array;
  row: Int32Array;
  cpu: Uint16Array;
  samples: Float64Array;
  period: Float64Array;
}

export interface Profile {
  layout: number;
  title: string;
  startView?: string | null;
  recording: any;
  warnings: string[];
  warningsLeftOff: number;
  comms: string[];
  cgroups: string[];
  events: PageEvent[];
  threads: Thread[];
  dsos: Binary[];
  files: string[];
  functions: { names: string[]; dso: Int32Array; known: Uint8Array };
  frames: Frames;
  nodes: { parent: Int32Array; frame: Int32Array };
  rows: Rows;
  moments: Moments | null;
  isServed?: boolean;
  // Blocks that modules of their own decode.
  switches?: any;
  code?: any;
  compare?: any;
  losses: any;
  ledger: any;
  records: [string, number][];
  bounds: { nodesBefore: number; foldThreshold: number | null; threadsMerged: number };
}

/** A call tree by function (`tree.js`). */
export interface Tree {
  count: number;
  parent: Int32Array;
  key: Int32Array;
  depth: Int32Array;
  folded: Uint32Array;
  rowNode: Int32Array;
  outermost: Uint8Array;
  cut: boolean;
}

/** The tree of all rows: it leads back to the nodes of the profile. */
export interface BaseTree extends Tree {
  nodeOf: Int32Array;
}

export interface Weights {
  selfSamples: Float64Array;
  selfPeriod: Float64Array;
  totalSamples: Float64Array;
  totalPeriod: Float64Array;
}

/** A tree to lay out. */
export interface Graph {
  count: number;
  parent: Int32Array;
  key: Int32Array;
  depth: Int32Array;
  totalSamples: Float64Array;
  totalPeriod: Float64Array;
  selfSamples?: Float64Array | null;
  selfPeriod?: Float64Array | null;
  cut?: boolean;
  inTime?: boolean;
}

export interface Layout {
  x: Float64Array;
  order: Int32Array;
  rowStart: Int32Array;
  height: Int32Array;
}

export interface LaidOut {
  graph: Graph;
  weight: Float64Array;
  layout: Layout;
}

/** A thread or a CPU whose stacks stand in the stack chart. */
export interface Lane {
  id: string;
  name: string;
  pid: number;
  tid: number;
  /** One more than the number of a CPU, -1 for threads. */
  cpu: number;
  weight: number;
  /** The page's threads with these ids. */
  threads: number[];
}

/** Samples of a lane in order of time. */
export interface LaneSamples {
  timeNs: Float64Array;
  node: Int32Array;
  thread: Int32Array;
  samples: Float64Array;
  period: Float64Array;
}

/** Pieces of time with a node of the tree each, in order. */
export interface Slices {
  from: Float64Array;
  to: Float64Array;
  node: Int32Array;
  samples: Float64Array;
  period: Float64Array;
}

/** The slices of a lane, and its sampling period. */
export interface LaneSlices {
  slices: Slices;
  distanceNs: number;
}

/** Boxes of a stack chart: positions and weights are nanoseconds. */
export interface ChartGraph extends LaidOut {
  /** The node of the tree that each box shows. */
  treeNode: Int32Array;
  /** The deepest row that has all of its boxes. */
  deepest: number;
  /** Steps of time whose slices are joined, or 0. */
  stepNs: number;
}

/** The choice of samples: an event, and masks of threads and commands or null for all. */
export interface SampleChoice {
  event: number;
  threads: Uint8Array | null;
  comms: Uint8Array | null;
}

/** The states of threads over time; spans stand by thread and time. */
export interface TimelineData {
  threads: string[];
  ids: { pid: number; tid: number; comm: string }[];
  reasons: string[];
  programReasons: string[];
  classes: string[];
  wakers: { lane: Int32Array; names: string[]; name: Uint32Array; reason: Uint32Array };
  first: Uint32Array;
  thread: Uint32Array;
  startNs: Float64Array;
  durationNs: Float64Array;
  activity: Uint8Array;
  cpu: Uint32Array;
  reason: Uint32Array;
  class: Uint8Array;
  node: Uint32Array;
  waker: Uint32Array;
  blockedNs: Float64Array;
  lossy: Uint8Array;
  count: Float64Array;
  partsNs: Float64Array[];
  spanNs: number;
  grainNs: number;
  maxSpans: number;
}

/** A call tree of waits; parents stand before their children. */
export interface SwitchTree {
  parent: Int32Array;
  children: Uint32Array;
  nameOf(node: number): string;
  cpuNs: Float64Array;
  waitNs: Float64Array;
  sync: Float64Array;
  preempt: Float64Array;
  lossy: Float64Array;
  open: Float64Array;
  throughout: Float64Array;
  leftOut: number;
}

export interface Switches {
  facts: string[];
  trees: { callee: SwitchTree; caller: SwitchTree };
  timeline: TimelineData;
}

/** Samples and periods of each row. */
export interface RowSums {
  samples: Float64Array;
  period: Float64Array;
}

/** Where the sums of a range come from (`source.js`). */
export interface Source {
  origin(range: TimeRange | null): string;
  rowSums(moments: Moments, rowCount: number, range: TimeRange, buckets: TimeRange): RowSums;
  load(range: TimeRange | null): Promise<boolean>;
  lane(thread: number, range: TimeRange): Promise<LaneEntries | null>;
}

/** Samples of a thread of the page with their own times. */
export interface LaneEntries {
  timeNs: Float64Array;
  row: Int32Array;
  samples: Float64Array;
  period: Float64Array;
  /** There are more than an answer has. */
  isCut: boolean;
}

/** Elements of the template that are more than an HTMLElement. */
export interface PageElements {
  event: HTMLSelectElement;
  process: HTMLSelectElement;
  thread: HTMLSelectElement;
  comm: HTMLSelectElement;
  root: HTMLSelectElement;
  'strip-by': HTMLSelectElement;
  'chart-lane': HTMLSelectElement;
  'code-function': HTMLSelectElement;
  'code-hottest': HTMLButtonElement;
  search: HTMLInputElement;
  filter: HTMLInputElement;
  'compare-filter': HTMLInputElement;
  reset: HTMLButtonElement;
  'help-dialog': HTMLDialogElement;
  [id: string]: HTMLElement;
}
