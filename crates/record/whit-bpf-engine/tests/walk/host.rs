//! The walk in C (`crates/record/whit-bpf/bpf/unwind.h`), compiled for this machine with sanitizers.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use whit_testing::{Skip, probe, run};
use whit_types::Arch;
use whit_unwind::table::UnwindTable;

/// Why it stopped: `enum unwind_reason`.
pub(crate) const END: u64 = 1;
pub(crate) const NO_TABLE_YET: u64 = 5;
pub(crate) const REASONS: u64 = 17;
/// Numbers of tables below are none: not yet loaded, none at all, not opened.
pub(crate) const TABLE_NONE: u32 = 1;
const TABLE_FIRST: u32 = 3;
/// `UNWIND_READS_MAX`.
const READS_MAX: u64 = 64;

/// A mapping as the walk has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostMapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bias: u64,
    pub(crate) table: u32,
}

/// Input of a walk.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostStack {
    pub(crate) ip: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// rbx on x86-64, the link register on arm64.
    pub(crate) extra: u64,
    pub(crate) bytes: Vec<u8>,
    /// The thread's number.
    pub(crate) tid: u64,
    /// The thread's state in its interpreter, as it was at a walk before.
    pub(crate) kept_thread: u64,
    /// Frames at most; 0 for as many as there may be.
    pub(crate) frames_max: u64,
    /// Other memory, by address.
    pub(crate) memory: Vec<(u64, Vec<u8>)>,
}

/// Result of a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostChain {
    pub(crate) reason: u64,
    pub(crate) needs_fp: bool,
    pub(crate) frames: Vec<u64>,
    pub(crate) reads_count: u64,
    /// Addresses of the words that the walk depended on.
    pub(crate) reads: Vec<u64>,
    /// Frames of interpreted functions.
    pub(crate) interpreted: u64,
    /// Why native frames stayed in their place: `enum interpreter_reason`.
    pub(crate) interpreter_reason: u64,
    /// How often a function was announced.
    pub(crate) announced: u64,
    /// The thread's state in its interpreter.
    pub(crate) kept_thread: u64,
}

/// Bytes of `struct interpreter`.
pub(crate) const INTERPRETER_WORDS: usize = 18;

/// Tables and mappings, as the kernel's maps would hold them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) words: Vec<u32>,
    pub(crate) rules: Vec<u64>,
    /// start; buckets, index, rows, rules, interpreter.
    pub(crate) tables: Vec<(u64, [u32; 5])>,
    /// The generation of all tables; that of mappings is 0.
    pub(crate) generation: u32,
    /// Each as words of 64 bits.
    pub(crate) interpreters: Vec<[u64; INTERPRETER_WORDS]>,
    pub(crate) mappings: Vec<HostMapping>,
}

impl Image {
    /// Adds a table; gives its number.
    pub(crate) fn add(&mut self, table: &UnwindTable) -> u32 {
        self.tables.resize(self.tables.len().max(TABLE_FIRST as usize), (0, [0; 5]));
        let index = self.words.len() as u32;
        self.words.extend(table.index());
        let rows = self.words.len() as u32;
        self.words.extend(table.rows());
        let rules = self.rules.len() as u32;
        self.rules.extend(table.rules().iter().map(|rule| u64::from_le_bytes(rule.encode())));
        let buckets = table.index().len() as u32 - 1;
        self.tables.push((table.range().start.0, [buckets, index, rows, rules, 0]));
        self.tables.len() as u32 - 1
    }

    fn bytes(&self, stacks: &[HostStack]) -> Vec<u8> {
        let mut out = Vec::new();
        let put = |out: &mut Vec<u8>, word: u64| out.extend(word.to_le_bytes());
        put(&mut out, self.words.len() as u64);
        self.words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        put(&mut out, self.rules.len() as u64);
        self.rules.iter().for_each(|rule| put(&mut out, *rule));
        put(&mut out, self.tables.len() as u64);
        for (start, numbers) in &self.tables {
            put(&mut out, *start);
            numbers
                .iter()
                .chain([&self.generation])
                .for_each(|number| out.extend(number.to_le_bytes()));
        }
        put(&mut out, self.mappings.len() as u64);
        for m in &self.mappings {
            [m.start, m.end, m.bias, u64::from(m.table)]
                .iter()
                .for_each(|word| put(&mut out, *word));
        }
        put(&mut out, self.interpreters.len() as u64);
        self.interpreters.iter().flatten().for_each(|word| put(&mut out, *word));
        put(&mut out, stacks.len() as u64);
        for stack in stacks {
            let count = self.mappings.len() as u64;
            let length = stack.bytes.len() as u64;
            let HostStack { ip, sp, fp, extra, tid, kept_thread, frames_max, .. } = *stack;
            let head = [0, count, ip, sp, fp, extra, tid, kept_thread, frames_max, length];
            head.iter().for_each(|word| put(&mut out, *word));
            out.extend(&stack.bytes);
            put(&mut out, stack.memory.len() as u64);
            for (address, bytes) in &stack.memory {
                put(&mut out, *address);
                put(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
        }
        out
    }
}

/// The compiled program; removed when dropped.
pub(crate) struct Host {
    program: PathBuf,
    _directory: tempfile::TempDir,
}

impl Host {
    /// The walk of x86-64 stacks.
    pub(crate) fn compile() -> Result<Host, Skip> {
        Host::compile_for(Arch::X86_64)
    }

    /// The walk of an architecture's stacks, which runs on any. With sanitizers where the compiler has them, and aloud
    /// without.
    pub(crate) fn compile_for(arch: Arch) -> Result<Host, Skip> {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        probe::program(&compiler)?;
        let directory = tempfile::tempdir().unwrap();
        let sanitize = "-fsanitize=address,undefined";
        let empty = directory.path().join("empty.c");
        std::fs::write(&empty, "int main(void) { return 0; }\n").unwrap();
        let mut trial = Command::new(&compiler);
        trial.args([sanitize, "-o"]).arg(directory.path().join("empty")).arg(&empty);
        let lacks = probe::fails_with(&mut trial);
        if let Some(why) = &lacks {
            whit_testing::skip("walk with sanitizers", why);
        }
        let program = directory.path().join("walk");
        let mut build = Command::new(&compiler);
        build.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]);
        build.args(["-Wno-unused-parameter", "-fno-sanitize-recover=all"]);
        build.args(lacks.is_none().then_some(sanitize));
        build.arg(match arch {
            Arch::X86_64 => "-D__TARGET_ARCH_x86",
            Arch::Aarch64 => "-D__TARGET_ARCH_arm64",
        });
        build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/walk/host.c"));
        run::succeed(build.arg("-o").arg(&program));
        Ok(Host { program, _directory: directory })
    }

    /// Walks the stacks, all in one process.
    pub(crate) fn walk(&self, image: &Image, stacks: &[HostStack]) -> Vec<HostChain> {
        let mut child = Command::new(&self.program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = image.bytes(stacks);
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let mut output = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        let written = writer.join().unwrap();
        let status = child.wait().unwrap();
        assert!(status.success(), "{status}, {written:?}");
        let mut words = output.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap();
        let chains = stacks.iter().map(|_| {
            let (reason, needs_fp) = (next(), next() != 0);
            let frames_count = next();
            let frames = (0..frames_count).map(|_| next()).collect();
            let reads_count = next();
            let reads = (0..reads_count.min(READS_MAX)).map(|_| next()).collect();
            let [interpreted, interpreter_reason, announced, kept_thread] =
                [next(), next(), next(), next()];
            HostChain {
                reason,
                needs_fp,
                frames,
                reads_count,
                reads,
                interpreted,
                interpreter_reason,
                announced,
                kept_thread,
            }
        });
        chains.collect()
    }
}
