//! Frames of interpreted functions within the walk, in made-up memory of a process.
//!
//! A native function calls the interpreter's loop, that a native function, that the loop again, and that the function
//! which is sampled. The outer loop executes two functions, the inner one three.

use std::collections::BTreeMap;

use whit_testing::Skip;

use crate::host::{END, Host, HostChain, HostMapping, HostStack, INTERPRETER_WORDS, Image};

const LOOP: u64 = 0x1_0000;
const NATIVE: u64 = 0x2_0000;
const FIRST: u64 = 0x3_0000;
/// Mappings are further on than their binaries say.
const BIAS: u64 = 0x1000;
const STACK: u64 = 0x7000_0000;
const RUNTIME: u64 = 0x5000_0000;
const STATE: u64 = 0x5000_1000;
const FRAMES: u64 = 0x6000_0000;
const CODE: u64 = 0x6100_0000;
/// Bytes of each native frame.
const NATIVE_BYTES: u64 = 0x20;
const LOOP_BYTES: u64 = 0x100;
const TID: u64 = 77;
const FRAME_BYTES: u64 = 88;
/// The mark of frames, and the bits of the distance of their instruction from the code object.
const MARK: u64 = 1 << 62;
const DISTANCE: u64 = (1 << 21) - 1;

/// `enum interpreter_reason`.
const NO_THREAD: u64 = 1;
const UNREADABLE: u64 = 2;
const NOT_ENTERED: u64 = 3;

/// How the interpreter ends its runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    /// A structure on the stack leads to the frames, and a function's frame is the last.
    V11,
    /// The same, and the loop's own frame is the last.
    V12,
    /// The thread's state leads to them.
    V13,
}

const VERSIONS: [Version; 3] = [Version::V11, Version::V12, Version::V13];

/// Offsets in structures; `END` has the byte in the middle of its word.
const INTERPRETERS: u64 = 40;
const THREADS: u64 = 16;
const NEXT_THREAD: u64 = 8;
const NATIVE_THREAD: u64 = 160;
const CURRENT: u64 = 56;
const CFRAME_FRAME: u64 = 8;
const CFRAME_PREVIOUS: u64 = 16;
const PREVIOUS: u64 = 8;
const CODE_AT: u64 = 0;
const INSTRUCTION: u64 = 56;
const GLOBALS: u64 = 24;
const END_WORD: u64 = 64;
const END_SHIFT: u64 = 48;
const IDENTITY: u64 = 88;
/// The type of code objects, and where an object has its type.
const CODE_TYPE: u64 = 0x5100_0000;
const TYPE: u64 = 8;
/// How a walk notes a frame of the first interpreter.
const NOTED_FRAME: u64 = 1 << 63 | 1 << 48;
/// Where the identity of version 3.11 begins and ends, and the string that takes part in it.
const IDENTITY_FIRST: u64 = 56;
const IDENTITY_LAST: u64 = 136;
const IDENTITY_TEXT: u64 = 120;
const TEXT: u64 = CODE + 0x800;
const HASH: u64 = 24;

fn interpreter(version: Version) -> [u64; INTERPRETER_WORDS] {
    let (has_cframe, is_function) = (version != Version::V13, version == Version::V11);
    let least = if is_function { 1 } else { 3 };
    let numbers = [
        1,
        0,
        INTERPRETERS,
        0,
        THREADS,
        NEXT_THREAD,
        NATIVE_THREAD,
        CURRENT,
        has_cframe.into(),
        CFRAME_FRAME,
        CFRAME_PREVIOUS,
        PREVIOUS,
        CODE_AT,
        INSTRUCTION,
        GLOBALS,
        END_WORD,
        END_SHIFT,
        least,
        is_function.into(),
        is_function.into(),
    ];
    let mut words = [0; INTERPRETER_WORDS];
    (words[0], words[1], words[4]) = (LOOP, LOOP + 0x1000, RUNTIME - BIAS);
    words[5] = CODE_TYPE - BIAS;
    for (word, pair) in words[6..].iter_mut().zip(numbers.chunks(2)) {
        *word = pair[0] | pair.get(1).unwrap_or(&0) << 32;
    }
    words
}

/// Three pieces of code with a rule each.
fn image(version: Version) -> Image {
    let mut image = Image { interpreters: vec![interpreter(version)], ..Image::default() };
    image.tables.resize(3, (0, [0; 5]));
    // The frame address is the stack pointer and a distance; the last is outermost.
    image.rules = vec![1 | LOOP_BYTES << 32, 1 | NATIVE_BYTES << 32, 0];
    for (number, (start, interpreter)) in
        [(LOOP, 1), (NATIVE, 0), (FIRST, 0)].into_iter().enumerate()
    {
        let words = image.words.len() as u32;
        // One bucket with one row, of rule 0 of the table.
        image.words.extend([0, 1, 0]);
        image.tables.push((start, [1, words, words + 2, number as u32, interpreter]));
        let (start, end) = (start + BIAS, start + BIAS + 0x1000);
        image.mappings.push(HostMapping { start, end, bias: BIAS, table: number as u32 + 3 });
    }
    image
}

/// Memory by words, which become pieces.
#[derive(Clone, Default)]
struct Memory(BTreeMap<u64, u64>);

impl Memory {
    fn put(&mut self, at: u64, word: u64) {
        self.0.insert(at, word);
    }

    fn pieces(&self) -> Vec<(u64, Vec<u8>)> {
        let mut pieces: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (at, word) in &self.0 {
            let page = pieces.entry(at & !0xfff).or_insert_with(|| vec![0; 0x1000]);
            let offset = (at & 0xfff) as usize;
            page[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
        }
        pieces.into_iter().collect()
    }
}

/// Native stack pointers: of the sampled function, the inner loop, the function between, the outer loop.
const SP: u64 = STACK;
const INNER: u64 = SP + NATIVE_BYTES;
const BETWEEN: u64 = INNER + LOOP_BYTES;
const OUTER: u64 = BETWEEN + NATIVE_BYTES;
const TOP: u64 = OUTER + LOOP_BYTES;

fn function(number: u64) -> u64 {
    FRAMES + number * FRAME_BYTES
}

fn instruction(number: u64) -> u64 {
    CODE + number * 0x100 + 0xc0 + number * 2
}

/// A process in which the loops are as above.
fn memory(version: Version) -> Memory {
    let mut m = Memory::default();
    for (place, address) in [
        (INNER - 8, LOOP + BIAS + 0x10),
        (BETWEEN - 8, NATIVE + BIAS + 0x20),
        (OUTER - 8, LOOP + BIAS + 0x30),
        (TOP - 8, FIRST + BIAS + 0x40),
        (TOP + 0x200, 0),
    ] {
        m.put(place, address);
    }
    m.put(RUNTIME + INTERPRETERS, RUNTIME + 0x100);
    m.put(RUNTIME + 0x100 + THREADS, STATE + 0x400);
    m.put(STATE + 0x400 + NATIVE_THREAD, TID + 1);
    m.put(STATE + 0x400 + NEXT_THREAD, STATE);
    m.put(STATE + NATIVE_THREAD, TID);
    let (inner_own, outer_own) = (INNER + 0x40, OUTER + 0x40);
    let (inner_cframe, outer_cframe) = (INNER + 0xa0, OUTER + 0xa0);
    // Functions 0 to 2 are of the inner loop, 3 and 4 of the outer.
    let own = |own, next| if version == Version::V11 { next } else { own };
    let callers =
        [function(1), function(2), own(inner_own, function(3)), function(4), own(outer_own, 0)];
    for (number, caller) in (0..).zip(callers) {
        m.put(
            function(number) + CODE_AT,
            (CODE + number * 0x100) | u64::from(version == Version::V13),
        );
        m.put(function(number) + PREVIOUS, caller);
        m.put(function(number) + INSTRUCTION, instruction(number));
        m.put(function(number) + GLOBALS, 0x1234);
        let ends = version == Version::V11 && [2, 4].contains(&number);
        m.put(function(number) + END_WORD, u64::from(ends) << END_SHIFT | 0xffff);
        m.put(CODE + number * 0x100 + IDENTITY, 1000 + number);
        m.put(CODE + number * 0x100 + IDENTITY_TEXT, TEXT);
        m.put(CODE + number * 0x100 + TYPE, CODE_TYPE);
        m.put(TEXT + HASH, 99);
    }
    if version != Version::V11 {
        for (own, caller) in [(inner_own, function(3)), (outer_own, 0)] {
            m.put(own + PREVIOUS, caller);
            m.put(own + END_WORD, 3 << END_SHIFT);
        }
    }
    if version == Version::V13 {
        m.put(STATE + CURRENT, function(0));
    } else {
        m.put(STATE + CURRENT, inner_cframe);
        m.put(inner_cframe + CFRAME_FRAME, function(0));
        m.put(inner_cframe + CFRAME_PREVIOUS, outer_cframe);
        m.put(outer_cframe + CFRAME_FRAME, function(3));
        m.put(outer_cframe + CFRAME_PREVIOUS, 0);
    }
    m
}

fn stack(memory: &Memory) -> HostStack {
    // The stack is a piece as all other memory is.
    HostStack {
        ip: NATIVE + BIAS,
        sp: SP,
        tid: TID,
        memory: memory.pieces(),
        ..HostStack::default()
    }
}

/// Frames as text: `n` of native code, `l` of the loop, digits of functions.
fn text(chain: &HostChain) -> String {
    let frame = |frame: &u64| match frame {
        frame if frame & MARK != 0 => (0..5)
            .find(|number| frame & DISTANCE == (instruction(*number) - CODE - number * 0x100) | 1)
            .map_or("?".to_owned(), |number| number.to_string()),
        frame if frame - BIAS < NATIVE => "l".to_owned(),
        frame if frame - BIAS < FIRST => "n".to_owned(),
        _ => "f".to_owned(),
    };
    chain.frames.iter().map(frame).collect()
}

fn host(what: &str) -> Option<Host> {
    match Host::compile() {
        Ok(host) => Some(host),
        Err(Skip(reason)) => {
            whit_testing::skip(what, &reason);
            None
        }
    }
}

fn walk(host: &Host, version: Version, memory: &Memory) -> HostChain {
    host.walk(&image(version), &[stack(memory)]).remove(0)
}

#[test]
fn interpreted_frames_take_the_place_of_the_loop() {
    let Some(host) = host("interpreted frames") else { return };
    for version in VERSIONS {
        let chain = walk(&host, version, &memory(version));
        assert_eq!(text(&chain), "n012n34f", "{version:?}: {chain:?}");
        assert_eq!((chain.reason, chain.interpreted, chain.announced), (END, 5, 5), "{version:?}");
        assert_eq!((chain.interpreter_reason, chain.kept_thread), (0, STATE), "{version:?}");
        // Another walk knows that the frames are the same by these words.
        for number in 0..5 {
            let noted = NOTED_FRAME | function(number);
            assert!(chain.reads.contains(&noted), "{version:?}: {number}");
        }
        // Two functions that one address has in turn have other frames.
        let parts = match version {
            Version::V11 => vec![IDENTITY_FIRST, IDENTITY, IDENTITY_LAST],
            Version::V12 | Version::V13 => vec![IDENTITY],
        };
        for part in parts {
            let mut replaced = memory(version);
            replaced.put(CODE + part, 5);
            let other = walk(&host, version, &replaced);
            assert_eq!(text(&other), "n012n34f");
            assert!(other.frames[1] != chain.frames[1] && other.frames[2] == chain.frames[2]);
        }
        // A frame that is being made leads to another object still.
        let mut unfinished = memory(version);
        unfinished.put(CODE + TYPE, CODE_TYPE + 0x100);
        let native = walk(&host, version, &unfinished);
        assert_eq!((&text(&native)[..2], native.interpreter_reason), ("nl", NOT_ENTERED));
        // The hash of a name takes part where a code object has no version.
        let mut renamed = memory(version);
        renamed.put(TEXT + HASH, 100);
        let other = walk(&host, version, &renamed);
        assert_eq!(text(&other), "n012n34f");
        assert_eq!(other.frames[1] != chain.frames[1], version == Version::V11);
    }
}

#[test]
fn a_part_of_the_loop_may_lie_elsewhere() {
    let Some(host) = host("interpreted frames of a loop in two parts") else { return };
    for version in VERSIONS {
        let mut image = image(version);
        // The loop's code is the second part; the first is where nothing is.
        let words = &mut image.interpreters[0];
        (words[2], words[3]) = (words[0], words[1]);
        (words[0], words[1]) = (0x9_0000, 0x9_1000);
        let chain = host.walk(&image, &[stack(&memory(version))]).remove(0);
        assert_eq!(text(&chain), "n012n34f", "{version:?}: {chain:?}");
    }
}

#[test]
fn a_loop_that_is_being_entered_stays_native() {
    let Some(host) = host("interpreted frames at the entry") else { return };
    for version in VERSIONS {
        // The inner loop has not made its frame yet: the thread's state still has the outer one's.
        let mut entering = memory(version);
        match version {
            Version::V13 => entering.put(STATE + CURRENT, function(3)),
            _ => entering.put(STATE + CURRENT, OUTER + 0xa0),
        }
        let chain = walk(&host, version, &entering);
        assert_eq!(text(&chain), "nln34f", "{version:?}: {chain:?}");
        assert_eq!((chain.reason, chain.interpreted), (END, 2), "{version:?}");
        assert_eq!(chain.interpreter_reason, NOT_ENTERED, "{version:?}");
    }
}

#[test]
fn native_frames_stay_where_the_interpreter_cannot_be_walked() {
    let Some(host) = host("interpreters that cannot be walked") else { return };
    for version in VERSIONS {
        let change = |at: u64, word: u64| {
            let mut changed = memory(version);
            changed.put(at, word);
            let chain = walk(&host, version, &changed);
            assert_eq!(chain.reason, END, "{version:?}: {chain:?}");
            (text(&chain), chain.interpreter_reason)
        };
        let native = |reason| ("nlnlf".to_owned(), reason);
        assert_eq!(change(STATE + NATIVE_THREAD, TID + 5), native(NO_THREAD), "{version:?}");
        assert_eq!(change(RUNTIME + INTERPRETERS, 0), native(NO_THREAD), "{version:?}");
        // A row of threads that leads to itself ends.
        assert_eq!(change(STATE + 0x400 + NEXT_THREAD, STATE + 0x400), native(NO_THREAD));
        assert_eq!(change(function(1) + CODE_AT, 0x13), native(UNREADABLE), "{version:?}");
        assert_eq!(change(function(0) + PREVIOUS, 0x9000_0000), native(UNREADABLE), "{version:?}");
        assert_eq!(change(function(0) + PREVIOUS, 0).0, "nlnlf", "{version:?}");
    }
}

#[test]
fn a_kept_state_that_is_not_the_threads_is_looked_for_again() {
    let Some(host) = host("states of threads") else { return };
    for version in VERSIONS {
        for kept in [STATE + 0x400, 0x9000_0000, 3, 0] {
            let stack = HostStack { kept_thread: kept, ..stack(&memory(version)) };
            let chain = host.walk(&image(version), &[stack]).remove(0);
            assert_eq!((text(&chain).as_str(), chain.kept_thread), ("n012n34f", STATE), "{kept:x}");
        }
    }
}

/// `UNWIND_FRAMES_LIMIT`.
const FRAMES_LIMIT: u64 = 11;

/// Native and interpreted frames alike are the innermost ones of the whole stack.
#[test]
fn a_walk_with_a_limit_has_the_innermost_frames() {
    let Some(host) = host("a limit of frames") else { return };
    for version in VERSIONS {
        let whole = walk(&host, version, &memory(version));
        for frames_max in 1..whole.frames.len() + 2 {
            let stack = HostStack { frames_max: frames_max as u64, ..stack(&memory(version)) };
            let chain = host.walk(&image(version), &[stack]).remove(0);
            let wanted = frames_max.min(whole.frames.len());
            assert_eq!(chain.frames, whole.frames[..wanted], "{version:?}, {frames_max}");
            let reason = if frames_max < whole.frames.len() { FRAMES_LIMIT } else { END };
            assert_eq!(chain.reason, reason, "{version:?}, {frames_max}");
        }
    }
}

/// Frames that call each other without end are cut by the bound of all frames.
#[test]
fn endless_frames_are_cut() {
    let Some(host) = host("endless frames") else { return };
    for version in VERSIONS {
        let mut endless = memory(version);
        endless.put(function(1) + PREVIOUS, function(0));
        let chain = walk(&host, version, &endless);
        assert_eq!((chain.reason, chain.frames.len()), (FRAMES_LIMIT, 127), "{version:?}");
    }
}
