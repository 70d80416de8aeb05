//! Interpreters whose frames the programs walk: `struct interpreter` of `bpf/interpreter_layout.h`.

/// Number of an interpreter in the kernel; 0 stands for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InterpreterNumber(pub(crate) u32);

impl InterpreterNumber {
    /// The number that announced functions have.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// Interpreters that are known at a time, with the one that stands for none.
pub const INTERPRETERS_MAX: usize = 64;
/// `INTERPRETER_PYTHON`.
const KIND_PYTHON: u32 = 1;
/// Bytes of `struct interpreter`.
pub(super) const INTERPRETER_BYTES: usize = 144;

/// How the frames of one call of CPython's loop end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PythonRunEnd {
    /// At the function's frame whose byte has at least this value: up to 3.11.
    Function(u8),
    /// At a frame of the loop's own, whose byte has at least this value: from 3.12 on.
    OwnFrame(u8),
}

/// How code objects differ that one address has in turn: [`identity`](super::identity).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PythonIdentity {
    /// Each has a version: from 3.12 on.
    Version,
    /// By their parts, and by the hash of the name: 3.11.
    Parts,
}

impl PythonIdentity {
    /// The offset of the version.
    pub const VERSION_AT: u64 = 88;
    /// The offsets of the parts.
    pub const PARTS: std::ops::Range<u64> = 56..144;
    /// The offset of the name, among the parts.
    pub const NAME_AT: u64 = 120;
    /// The offset of a string's hash.
    pub const HASH_AT: u64 = 24;
}

/// Where CPython has its data: offsets within structures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PythonLayout {
    /// The first interpreter in the state of the runtime.
    pub interpreters: u32,
    /// The next one in the state of an interpreter.
    pub next_interpreter: u32,
    /// The first thread there.
    pub threads: u32,
    /// The next one in the state of a thread.
    pub next_thread: u32,
    /// The kernel's number of the thread there.
    pub native_thread: u32,
    /// The word that leads to the innermost frame.
    pub current: u32,
    /// Up to 3.12, `current` leads to a structure on the native stack. In it: the frame, and the structure before.
    pub cframe: Option<(u32, u32)>,
    /// The caller's frame, in a frame.
    pub previous: u32,
    /// The code object there.
    pub code: u32,
    /// The address of the instruction there.
    pub instruction: u32,
    /// The names of the module there.
    pub globals: u32,
    /// The byte that says that a run of frames ends there.
    pub end: u32,
    /// How it says so.
    pub run_end: PythonRunEnd,
    /// How code objects differ that one address has in turn.
    pub identity: PythonIdentity,
    /// The objects with the file, the name and the lines of a code object.
    pub filename: u32,
    /// See `filename`.
    pub qualname: u32,
    /// See `filename`.
    pub linetable: u32,
}

/// An interpreter, by its binary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interpreter {
    /// Stated addresses of its loop: the first, and the first behind it.
    pub loop_range: (u64, u64),
    /// The part of the loop that the compiler has put elsewhere; empty where there is none.
    pub cold_range: (u64, u64),
    /// Stated address of the state of its runtime.
    pub runtime: u64,
    /// Stated address of the type of code objects; 0 where it is unknown.
    pub code_type: u64,
    /// Where it has its data.
    pub layout: PythonLayout,
}

impl Interpreter {
    pub(super) fn encode(&self) -> [u8; INTERPRETER_BYTES] {
        let layout = &self.layout;
        let (cframe_frame, cframe_previous) = layout.cframe.unwrap_or_default();
        let (end_least, end_is_function) = match layout.run_end {
            PythonRunEnd::Function(least) => (least, 1),
            PythonRunEnd::OwnFrame(least) => (least, 0),
        };
        let (hot, cold) = (self.loop_range, self.cold_range);
        let words = [hot.0, hot.1, cold.0, cold.1, self.runtime, self.code_type];
        let numbers = [
            KIND_PYTHON,
            0,
            layout.interpreters,
            layout.next_interpreter,
            layout.threads,
            layout.next_thread,
            layout.native_thread,
            layout.current,
            layout.cframe.is_some().into(),
            cframe_frame,
            cframe_previous,
            layout.previous,
            layout.code,
            layout.instruction,
            layout.globals,
            layout.end & !7,
            layout.end % 8 * 8,
            u32::from(end_least),
            end_is_function,
            (layout.identity == PythonIdentity::Parts).into(),
            layout.filename,
            layout.qualname,
            layout.linetable,
        ];
        let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
        let bytes = bytes.chain(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        let mut encoded = [0; INTERPRETER_BYTES];
        encoded.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        encoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_the_programs_have_them() {
        let layout = PythonLayout {
            interpreters: 1,
            next_interpreter: 2,
            threads: 3,
            next_thread: 4,
            native_thread: 5,
            current: 6,
            cframe: Some((8, 9)),
            previous: 10,
            code: 11,
            instruction: 12,
            globals: 13,
            end: 70,
            run_end: PythonRunEnd::OwnFrame(3),
            identity: PythonIdentity::Parts,
            filename: 19,
            qualname: 20,
            linetable: 21,
        };
        let interpreter = Interpreter {
            loop_range: (100, 200),
            cold_range: (220, 230),
            runtime: 300,
            code_type: 400,
            layout,
        };
        let bytes = interpreter.encode();
        let number =
            |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
        let head = [0, 8, 16, 24, 32, 40, 48].map(number);
        assert_eq!(head, [100, 200, 220, 230, 300, 400, 1]);
        let python: Vec<u32> = (0..21).map(|at| number(56 + at * 4)).collect();
        let expected = [1, 2, 3, 4, 5, 6, 1, 8, 9, 10, 11, 12, 13, 64, 48, 3, 0, 1, 19, 20, 21];
        assert_eq!(python, expected);
        let function = PythonLayout { run_end: PythonRunEnd::Function(1), cframe: None, ..layout };
        let bytes = Interpreter { layout: function, ..interpreter }.encode();
        assert_eq!([6, 15, 16].map(|place| bytes[56 + place * 4]), [0, 1, 1]);
    }
}
