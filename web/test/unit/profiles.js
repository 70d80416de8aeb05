// Profiles for the tests: decoded ones from stacks, and random ones.

/** A decoded profile from rows of {event, thread, comm, stack, samples, period}; a stack is a list
 *  of [function, inlined, line], root first. Functions, threads and comms are numbers. */
export function profileOf(rows, { functions = 8, threads = 4, comms = 2, events = 2 } = {}) {
  const nodes = { parent: [], frame: [] };
  const frames = { function: [], file: [], line: [], flags: [] };
  const known = new Map();
  const intern = (slot, make) => {
    if (!known.has(slot)) {
      known.set(slot, make());
    }
    return known.get(slot);
  };
  const frameOf = ([fn, inlined = 0, line = 0]) => intern(`f${fn},${inlined},${line}`, () => {
    frames.file.push(line > 0 ? 0 : -1);
    frames.line.push(line);
    frames.flags.push(inlined);
    return frames.function.push(fn) - 1;
  });
  const nodeOf = (stack) => stack.reduce((parent, frame) => {
    const id = frameOf(frame);
    return intern(`n${parent},${id}`, () => {
      nodes.frame.push(id);
      return nodes.parent.push(parent) - 1;
    });
  }, -1);
  const column = (Type, of) => Type.from(rows, of);
  const numbered = (count, of) => Array.from({ length: count }, (_, i) => of(i));
  const tables = {
    rows: {
      event: column(Int32Array, (r) => r.event ?? 0),
      thread: column(Int32Array, (r) => r.thread ?? 0),
      comm: column(Int32Array, (r) => r.comm ?? 0),
      cgroup: column(Int32Array, (r) => r.cgroup ?? 0),
      node: column(Int32Array, (r) => nodeOf(r.stack)),
      samples: column(Float64Array, (r) => r.samples),
      period: column(Float64Array, (r) => r.period ?? r.samples * 1000),
    },
    nodes: { parent: Int32Array.from(nodes.parent), frame: Int32Array.from(nodes.frame) },
    frames: {
      function: Int32Array.from(frames.function),
      file: Int32Array.from(frames.file),
      line: Uint32Array.from(frames.line),
      flags: Uint8Array.from(frames.flags),
    },
  };
  return {
    ...tables,
    files: ['a.cc'],
    cgroups: ['/a', '/b'],
    comms: numbered(comms, (i) => `comm${i}`),
    threads: numbered(threads, (i) => ({ pid: 10 + (i >> 1), tid: 10 + i, comm: i % comms })),
    events: numbered(events, (i) => ({ name: `event${i}`, samples: 0, period: 0, lostSamples: 0 })),
    dsos: [{ path: '/bin/a', name: 'a', kind: 'elf' }, { path: '[kernel]', name: '[kernel]', kind: 'kernel' }],
    functions: {
      names: numbered(functions, (i) => `f${i}`),
      dso: Int32Array.from(numbered(functions, (i) => (i % 3 === 2 ? 1 : 0))),
      known: new Uint8Array(functions).fill(1),
    },
  };
}

/** The same numbers on every run. */
export function random(seed) {
  let state = seed >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** Rows with random stacks, recursion and empty stacks among them. */
export function randomRows(seed) {
  const below = random(seed);
  return Array.from({ length: below(40) }, () => ({
    event: below(2),
    thread: below(4),
    comm: below(2),
    samples: 1 + below(9),
    period: below(1000),
    stack: Array.from({ length: below(9) }, () => [below(5), below(4) === 0 ? 1 : 0, below(3)]),
  }));
}

/** Runs a test with many random profiles. */
export function forRandomProfiles(check) {
  for (let seed = 1; seed <= 150; seed++) {
    const rows = randomRows(seed);
    check(profileOf(rows), rows, `seed ${seed}`);
  }
}

/** Sum of a property. */
export function sumOf(items, of) {
  return items.reduce((sum, item) => sum + of(item), 0);
}
