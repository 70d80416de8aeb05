// Types of what goes from module to module. `web/test/run.sh` checks the modules against them; no part of the page.

export type Numbers = Float64Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;
/** From and to, in nanoseconds since the first moment. */
export type TimeRange = [number, number];
export type Theme = 'light' | 'dark';
/** Hue, saturation, lightness. */
export type Colour = [number, number, number];

export type TransformType = 'focus' | 'subtree' | 'merge' | 'drop' | 'recursion' | 'library';
/** A change of the call tree: `arg` is a function, a binary, or a path of keys. */
export interface Transform {
  type: TransformType;
  arg: number | number[];
}
/** What transforms know of keys; counts include made-up functions. */
export interface TransformContext {
  functionCount: number;
  libraryKey(dso: number): number;
  /** -1 for groups. */
  dsoOf(key: number): number;
  isGroup(key: number): boolean;
}

/** What a graph can have at its root. */
export type GroupingId = 'program' | 'process' | 'command' | 'thread' | 'cgroup' | 'cpu';

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
  waits: 'sites' | 'longest' | 'tree';
  /** Kinds of waits that are left out, separated by commas. */
  without: string;
  /** Waits of idle loops, and threads of the kernel, are not shown. */
  hideIdle: boolean;
  hideKernel: boolean;
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
  /** The name of the requests in view; empty for the first. */
  request: string;
  /** The rank of the request in view: 1 is the slowest. */
  call: number;
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

/** Facts of the page about its columns of time. */
export interface MomentFacts {
  count: number;
  spanNs: number;
  bucketNs: number;
  wantedBucketNs: number;
  maxEntries: number;
  sliceNs: number | null;
  hasCpus: boolean;
  lossWindows: TimeRange[];
  waitsBeginNs: number | null;
}

/** When samples were taken: entries in order of time. */
export interface Moments extends MomentFacts {
  buckets: number;
  first: Int32Array;
  row: Int32Array;
  cpu: Uint16Array;
  samples: Float64Array;
  period: Float64Array;
}

/** The recording's description of itself. */
export interface Recording {
  path: string;
  sizeBytes: number;
  hostname: string;
  osRelease: string;
  version: string;
  arch: string;
  cpusOnline: number | null;
  cpusAvailable: number | null;
  cpuDesc: string;
  cpuid: string;
  totalMemKib: number | null;
  cmdline: string[];
  spanNs: number | null;
  capturedOnS: number | null;
  hasCallchains: boolean;
}

export interface Losses {
  lostRecords: number;
  lostChunks: number;
  lostSamples: number;
  pausedNs: number;
  elapsedNs: number;
  /** Absent where something was lost for an unknown time. */
  dataLoss: number | null;
}

/** Interrupts of the PMU; `reason` says why they were not measured. */
export interface PmiCost {
  measurement: string;
  reason: string | null;
  count: number;
  timeNs: number;
  longestNs: number;
  measuredNs: number;
}

/** BPF programs of the recorder; `reason` says why they were not measured. */
export interface BpfCost {
  reason: string | null;
  programs: number;
  runs: number;
  runTimeNs: number;
  timedNs: number;
}

/** The cost of recording. */
export interface Ledger {
  userCpuNs: number;
  systemCpuNs: number;
  recordedNs: number;
  /** Without setting up; absent where that was not measured. */
  recordingCpuNs: number | null;
  setupNs: number;
  setupCpuNs: number;
  writtenBytes: number;
  ringBytes: number;
  rings: number;
  writes: number;
  writeNs: number;
  wakeups: number;
  /** Title, unit and figure. */
  lines: [string, string, number][];
  pmi: PmiCost;
  bpf: BpfCost;
}

/** The line above all views (crates/read/whit-view/src/brief/headline.rs). */
export interface Headline {
  busyCpus: number | null;
  cpus: number | null;
  functions: { name: string; share: number }[];
  waits: { class: string; comm: string; functions: string[]; waitNs: number; count: number }[];
  lost: string | null;
}

export interface Profile {
  layout: number;
  title: string;
  /** The program that wrote the page. */
  generator: string;
  startView?: string | null;
  recording: Recording;
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
  headline?: Headline | null;
  // Blocks that modules of their own decode.
  switches?: SwitchBlock | null;
  code?: CodeBlock | null;
  compare?: CompareBlock | null;
  requests?: RequestsBlock | null;
  losses: Losses & { truncatedBytes: number };
  ledger: Ledger | null;
  records: [string, number][];
  bounds: { nodesBefore: number; foldThreshold: number | null; threadsMerged: number };
}

/** A profile whose columns of time are not read yet. */
export interface TimelessProfile extends Omit<Profile, 'moments'> {
  moments: MomentFacts | null;
}

/** The page's block of data; columns are text (`decode.js`). */
export interface PageBlock extends Omit<TimelessProfile, 'threads' | 'dsos' | 'functions' | 'frames' | 'nodes' | 'rows'> {
  threads: [pid: number, tid: number, comm: number][];
  dsos: [path: string, name: string, buildId: string | null, kind: string][];
  functions: { names: string[]; dso: string; known: string };
  frames: Record<keyof Frames, string>;
  nodes: { up: string; frame: string };
  rows: Record<Exclude<keyof Rows, 'cpu'>, string>;
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

/** Stacks that share a next frame. */
export interface StackPart {
  key: number;
  from: number;
  to: number;
  samples: number;
  period: number;
}

/** A tree to lay out. */
export interface Graph {
  count: number;
  parent: Int32Array;
  key: Int32Array;
  depth: Int32Array;
  totalSamples: Float64Array;
  totalPeriod: Float64Array;
  /** Absent where no weight is a node's own. */
  selfSamples: Float64Array | null;
  selfPeriod: Float64Array | null;
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

/** A box of a stack chart, or a span of the line above the boxes. */
export type ChartItem = { box: number; span?: undefined } | { span: number; box?: undefined };

/** The choice of samples: an event, and masks of threads and commands or null for all. */
export interface SampleChoice {
  event: number;
  threads: Uint8Array | null;
  comms: Uint8Array | null;
}

/** What a thread does in a span of time. */
export interface Activity {
  id: string;
  label: string;
  light: string;
  dark: string;
}

/** What the time line of threads reports. */
export interface TimelineEvents {
  choose(span: number): void;
  /** -1 for none. */
  hover(span: number, event: PointerEvent): void;
  range(text: string): void;
  /** True where the wheel was used. */
  wheel(event: WheelEvent, ns: number): boolean;
  /** In place of a change of the time line's own range. */
  select: ((range: TimeRange | null) => void) | null;
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

/** A call tree of waits in the page's block; columns are text. */
export interface SwitchTreeBlock {
  up: string;
  name: string;
  cpuNs: string;
  waitNs: string;
  sync: string;
  preempt: string;
  lossy: string;
  open: string;
  throughout: string;
  leftOut: number;
}

/** Columns of spans in the page's block. */
export type SpanColumn = 'thread' | 'startNs' | 'durationNs' | 'activity' | 'cpu' | 'reason' | 'class' | 'node' | 'waker' | 'blockedNs'
  | 'lossy' | 'count' | 'runningNs' | 'preemptedNs' | 'waitingNs';
export interface TimelineBlock extends Record<SpanColumn, string> {
  threads: string[];
  ids: [pid: number, tid: number, comm: string][];
  reasons: string[];
  programReasons: string[];
  classes: string[];
  wakers: { lane: string; names: string[]; name: string; reason: string };
  spanNs: number;
  grainNs: number;
  maxSpans: number;
}

export interface SwitchBlock {
  facts: string[];
  names: string[];
  callee: SwitchTreeBlock;
  caller: SwitchTreeBlock;
  timeline: TimelineBlock;
}

/** Runs of threads on one CPU, in order of time. */
export interface TrackRuns {
  from: Float64Array;
  to: Float64Array;
  /** Lanes of the time line, or threads of the page. */
  thread: Int32Array;
}

/** An event that is a track. */
export interface TrackEvent {
  event: number;
  name: string;
  isMarker: boolean;
}

/** A row of the view of tracks. */
export interface Track {
  kind: 'cpu' | 'event' | 'thread';
  name: string;
  top: number;
  height: number;
  cpu?: number;
  event?: TrackEvent;
  /** Its place among the events. */
  place?: number;
  lane?: Lane;
}

/** Waits of one class and command at one call site. */
export interface WaitSite {
  /** An index into WAIT_GROUPS. */
  group: number;
  class: string;
  comm: string;
  /** Functions, callee first. */
  chain: string[];
  ns: number;
  count: number;
  threads: number;
  /** The longest single wait, or -1. */
  longest: number;
}

/** The samples and spans that a call tree of waits comes from. */
export interface WaitInput {
  base: BaseTree;
  rows: Rows;
  selection: SampleChoice;
  /** The sum that a frame of waits counts for; null for code. */
  partOf(key: number): string | null;
  foldedKey: number;
  timeline: TimelineData;
  /** 1 for selected lanes. */
  lanes: Uint8Array;
  range: TimeRange | null;
  /** The range in the time of the lanes. */
  within: TimeRange;
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

/** Time on a CPU, in the run queue, throttled, waiting, unknown. */
export type Split = [number, number, number, number, number];

/** Pieces of a path of one kind. */
export interface PathRow {
  durationNs: number;
  pieces: number;
  what: string;
  explains: string | null;
}

/** A path in the page's block; columns are text. */
export interface RequestPathBlock {
  /** `tid` is null for goroutines. */
  lanes: [pid: number, tid: number | null, name: string][];
  durationNs: string;
  lane: string;
  kind: string;
  text: string;
  explains: string;
  piecesCount: number;
  rows: PathRow[];
  rowsLeftOut: number;
}

/** The critical path of a request: pieces follow each other from its beginning to its end. */
export interface CallPath {
  lanes: { pid: number; tid: number | null; name: string }[];
  /** Since the beginning of the request. */
  fromNs: Float64Array;
  durationNs: Float64Array;
  lane: Uint32Array;
  kindOf(piece: number): string;
  textOf(piece: number): string;
  /** Empty for none. */
  explainsOf(piece: number): string;
  piecesCount: number;
  rows: (PathRow & { explains: string })[];
  rowsLeftOut: number;
}

/** A request in the page's block. */
export interface RequestCallBlock {
  /** Since the first moment of the page. */
  fromNs: number;
  durationNs: number;
  pid: number;
  /** Null for goroutines. */
  tid: number | null;
  thread: string;
  key: string | null;
  split: Split;
  path: RequestPathBlock | null;
}

/** A request; its key is empty where it has none. */
export interface RequestCall extends Omit<RequestCallBlock, 'key' | 'path'> {
  key: string;
  path: CallPath | null;
}

/** Requests of one name in the page's block. */
export interface RequestBlock {
  name: string;
  count: number;
  remarks: string[];
  quantiles: [name: string, durationNs: number, split: Split][];
  tailCalls: [slow: number, middle: number];
  tail: { what: string; slowNs: number; middleNs: number; intervalNs: [number, number] | null }[];
  histogram: { perOctave: number; first: number; counts: number[] };
  calls: RequestCallBlock[];
}

/** Requests of one name. */
export interface NamedRequests extends Omit<RequestBlock, 'calls'> {
  calls: RequestCall[];
}

export interface RequestsBlock {
  names: RequestBlock[];
  texts: string[];
  noPaths: string | null;
}

/** The requests of a recording; `noPaths` says why there is no path, or is empty. */
export interface Requests {
  names: NamedRequests[];
  noPaths: string;
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

/** An entry of a selector. */
export interface SelectOption {
  value: string;
  text: string;
}

/** A weight that a selector lists. */
export interface Choice {
  id: number | string;
  name: string;
  weight: number;
}

/** Attributes of a new element; functions are listeners, as `onclick`. */
export interface Attributes {
  onclick?: (event: MouseEvent) => void;
  ondblclick?: (event: MouseEvent) => void;
  oncontextmenu?: (event: MouseEvent) => void;
  onkeydown?: (event: KeyboardEvent) => void;
  [name: string]: string | boolean | null | undefined | ((event: never) => void);
}
/** A child of a new element; there is none where it is absent. */
export type Child = Node | string | null | undefined;

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
  'request-name': HTMLSelectElement;
  search: HTMLInputElement;
  filter: HTMLInputElement;
  'compare-filter': HTMLInputElement;
  reset: HTMLButtonElement;
  'help-dialog': HTMLDialogElement;
  [id: string]: HTMLElement;
}

/** Fixed colours of a theme. */
export interface Paint {
  text: string;
  fadedFill: string;
  fadedText: string;
  match: string;
  root: string;
  mark: string;
  hatch: string;
  gap: string;
  binarySaturation: number;
  /** Absent where each hue has its own. */
  binaryLightness: number | null;
  other: Colour;
}

/** Colours of frames by key, and marks of some. */
export interface Marks {
  paint: Paint;
  fill(key: number): string;
  match: ((key: number) => boolean) | null;
  muted(key: number): boolean;
}

/** What a flame graph shows of its nodes. */
export interface FlamePlace {
  /** The zoomed node. */
  zoom: number;
  /** Roots are at the bottom. */
  up: boolean;
  /** Rows at the root that are left out. */
  base?: number;
  /** The text where no row is left. */
  nothing?: string;
  /** Outlines frames that are wide enough. */
  chosen?: (key: number) => boolean;
}

/** What a flame graph draws. */
export interface FlameData extends LaidOut, Marks, FlamePlace {
  base: number;
  nothing: string;
  name(node: number): string;
  /** In place of `fill`. */
  fillNode?(node: number): string;
  hatched?(node: number): boolean;
  outlined?: ((key: number) => boolean) | null;
  /** In place of the zoomed node's range. */
  window?: TimeRange;
  /** Draws on top. */
  over?(context: CanvasRenderingContext2D, width: number, height: number): void;
}

/** What a flame graph reports. */
export interface FlameEvents {
  zoom(node: number): void;
  open(node: number): void;
  /** -1 for none. */
  hover(node: number, event: PointerEvent | null): void;
  menu(node: number, x: number, y: number): void;
  current(node: number): void;
  key(event: KeyboardEvent, node: number): void;
  /** Where a click does not zoom. */
  pick?(node: number): void;
}

/** Halves of 95 % intervals, by function or by node. */
export interface Halves {
  half(of: number): number;
}
export interface Intervals {
  self: Halves;
  total: Halves;
  /** Blocks of time with samples. */
  blocks?: number;
}
/** Entries of a range in blocks of time. */
export interface EntryBlocks {
  count: number;
  /** Calls `take` for the entries of a block. */
  each(block: number, take: (node: number, value: number) => void): void;
}
/** Intervals that are computed in short steps; null where too few blocks of time have samples. */
export type IntervalSteps = Generator<void, Intervals | null, void>;

/** A row of the call tree that is in view. */
export interface CallTreeRow {
  node: number;
  /** Keys from the root, as text. */
  path: string;
  isOpen: boolean;
  hasChildren: boolean;
}
/** What the call tree shows. */
export interface CallTreeData extends LaidOut {
  /** Opened rows are kept for the same kind. */
  kind: string;
  self: Float64Array | null;
  total: number;
  name(node: number): string;
  binary(node: number): string;
  format(weight: number): string;
  colour(node: number): string;
  chosen(node: number): boolean;
}

/** What the table of functions reports. */
export interface TableEvents {
  sort(id: State['sort']): void;
  find(fn: number): void;
  open(fn: number): void;
  /** Absent on a page without code. */
  code: ((fn: number) => void) | null;
  menu(fn: number, x: number, y: number): void;
}

/** A row of the table of functions. */
export interface FunctionRow {
  fn: number;
  name: string;
  binary: string;
  binaryPath: string;
  hasCode: boolean;
  known: boolean;
  self: number;
  total: number;
  selfShare: number;
  totalShare: number;
  colour: string;
}

/** Series of the strip of time, and what its heat map adds up. */
export interface StripSeries {
  labels: string[];
  /** Weights of the series that are one group each. */
  shares: number[];
  /** Column by column, the series of each. */
  sums: Float64Array;
  columns: number;
  /** The series of each row, or -1. */
  seriesOf: Int32Array;
  weight: Float64Array;
  /** Of a column's sum. */
  scale: number;
  /** Those of the machine, where the strip counts CPUs. */
  cpus: number | null;
  unit(value: number): string;
}

/** What the strip of time draws. */
export interface StripData extends StripSeries {
  series: { label: string; colour: string }[];
  range: TimeRange | null;
  mode: State['strip'];
  paint: Paint;
  heatColour: string;
  lossColour: string;
}

/** Columns and rows of a heat map; a column is `lengthNs` long. */
export interface HeatPlan {
  lengthNs: number;
  rows: number;
  columns: number;
}

/** A turn of the wheel. */
export interface Turn {
  deltaX: number;
  deltaY: number;
  ctrlKey: boolean;
  shiftKey: boolean;
}

/** A weight of code for an event; `half` is that of its share's interval. */
export interface CodeWeight {
  event: number;
  samples: number;
  period: number;
  half: number;
}
export type CodePlaces = Map<number, CodeWeight[]>;

/** Columns of a function's code that are the same in the page's block. */
export interface CodeColumns {
  function: number;
  /** First address in hexadecimal digits: it may not fit a number. */
  start: string;
  sizeBytes: number;
  /** Why the instructions are not at hand. */
  problem: string | null;
  /** Distances from the start. */
  offsets: number[];
  texts: string[];
  /** One more than the instruction that a jump leads to, 0 for none. */
  targets: number[];
  margins: number[];
  marginTexts: [string, string][];
  /** Jumps without an arrow. */
  undrawn: number;
  /** One more than the line, 0 for none. */
  lineOf: number[];
  chainOf: number[];
  /** Inlined functions around an instruction, the outermost first: name, short name, place of the call. */
  chains: [string, string, string][][];
  files: string[];
}
/** Event, samples, period, and half of the interval in points of percent. */
export type WeightEntry = [number, number, number, number | null];
export type PlaceEntry = [place: number, ...WeightEntry];
export interface FunctionCodeBlock extends CodeColumns {
  weights: WeightEntry[];
  /** File, number, text. */
  lines: [number, number, string | null][];
  rowWeights: PlaceEntry[];
  lineWeights: PlaceEntry[];
}
export interface CodeLine {
  file: number;
  line: number;
  text: string | null;
}
/** A row of the list of instructions: an instruction, or the begin or end of an inlined function. */
export type InstructionRow =
  | { row: number; depth: number; text?: undefined }
  | { row?: undefined; text: string; title: string; depth: number; begins: number };
/** A row of the list of lines: a heading, lines without code, or an index into the lines. */
export type LineRow =
  | { file: string; isMissing: boolean; gap?: undefined; line?: undefined }
  | { gap: number; file?: undefined; line?: undefined }
  | { line: number; file?: undefined; gap?: undefined };
export interface FunctionCode extends CodeColumns {
  name: string;
  weights: CodeWeight[];
  lines: CodeLine[];
  rowWeights: CodePlaces;
  lineWeights: CodePlaces;
}
/** What a page says of the code that it has not. */
export interface CodeBounds {
  leftOut: number;
  /** Functions and their bytes. */
  tooLarge: [number, number][];
  maxFunctions: number;
  minPercent: number;
  maxFunctionBytes: number;
  maxBytes: number;
}
export interface CodeBlock extends CodeBounds {
  functions: FunctionCodeBlock[];
}
/** The code of the hottest functions. */
export interface Code extends CodeBounds {
  functions: FunctionCode[];
}

/** Divisor of compared values. */
export type Per = 'share' | 'units' | 'event';
/** A tested difference; `null` halves are not bounded. */
export interface Difference {
  before: number;
  after: number;
  before_plus_minus: number | null;
  after_plus_minus: number | null;
  change: number;
  low: number;
  high: number;
  verdict: string;
  smallest: number | null;
}
export interface DiffName {
  function: string;
  binary: string;
}
/** A row of the document of `whit diff --json`. */
export interface DiffRow extends DiffName {
  renamed: DiffName | null;
  matched: string;
  self: Difference;
  total: Difference | null;
  caller: (DiffName & { total: Difference }) | null;
}
export interface DiffEvent {
  name: string;
  tests: number;
  rows: DiffRow[];
}
export interface DiffDocument {
  before: string[];
  after: string[];
  per: Per;
  units: [number, number] | null;
  per_event: string | null;
  events: DiffEvent[];
}
export interface CompareBlock {
  diff: DiffDocument;
  /** The page's events before and after; for each row one more than its function, 0 for none. */
  events: { sides: number[]; functions: number[]; leftOff: number }[];
  maxRows: number;
  commands: string[];
  narrowed: string[];
  measures: Measure[];
}

/** A value of rows of `whit diff --waits --json` and the like. */
export interface MeasureQuantity {
  name: string;
  unit: 'ns' | 'count';
  per: 'second' | 'request' | 'wait' | 'run' | null;
}
/** A tested difference of one quantity; `null` is not bounded. */
export interface MeasureValue {
  quantity: string;
  before: number;
  after: number;
  change: number;
  low: number | null;
  high: number | null;
  verdict: string;
  smallest: number | null;
}
export interface MeasureRow {
  name: string[];
  verdict: string;
  values: MeasureValue[];
}
/** The document of `whit diff --waits --json` and the like. */
export interface Measure {
  kind: 'waits' | 'locks' | 'wall' | 'requests' | 'stat';
  units: [number, number] | null;
  quantities: MeasureQuantity[];
  tests: number;
  whole: MeasureRow | null;
  rows: MeasureRow[];
  warnings: string[];
}

export interface BinaryName {
  name: string;
  binary: string;
}
/** A function of a comparison; `fn` is -1 where no node leads to it. */
export interface ComparisonRow extends BinaryName {
  fn: number;
  renamed: BinaryName | null;
  matched: string;
  self: Difference;
  total: Difference | null;
  caller: (BinaryName & { total: Difference }) | null;
}
export interface ComparisonEvent {
  name: string;
  tests: number;
  /** The page's events before and after. */
  sides: number[];
  rows: ComparisonRow[];
  byFunction: Map<number, ComparisonRow>;
  leftOff: number;
}
/** A row for a part of the samples, which nothing has judged. */
export interface PartRow extends ComparisonRow {
  total: Difference;
}
/** Two sides compared. */
export interface Comparison {
  before: string[];
  after: string[];
  per: Per;
  units: [number, number] | null;
  perEvent: string | null;
  events: ComparisonEvent[];
  maxRows: number;
  commands: string[];
  narrowed: string[];
  measures: Measure[];
}

/** What a change of the state changes. */
export type Change = Partial<State>;
/** Actions by key. */
export type Keys = Record<string, (() => void) | undefined>;
/** Label, action, and the key that does the same. */
export type MenuItem = [label: string, action: () => void, key?: string];

/** The result of a search: a mask of functions, their share of the total, the error of a regular expression. */
export interface Found {
  functions: Uint8Array;
  weight: number;
  share: number;
  error: string;
}
