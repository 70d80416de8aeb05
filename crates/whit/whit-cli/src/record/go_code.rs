//! The code and the data of Go's runtime: where the fields of goroutines are, and where functions return.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use whit_annotate::{Syntax, Target, disassemble};
use whit_elf::ElfImage;
use whit_perfdata::goroutine::{
    ADDRESS, CHANNEL, Change, MODE, NUMBER, READ_FILE, READER, READER_NUMBER, REASON, SEMAPHORE,
    SUDOG, WAKER, WAKER_NUMBER, WRITE_FILE, WRITER, WRITER_NUMBER,
};
use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, Symbolizer, SymbolizerConfig};
use whit_types::{FileOffset, InstructionSet, Svma};

/// Go's runtime, as a compilation unit.
const UNIT: &str = "runtime";
/// `runtime.g.m`: behind two words of the stack, two of its guards, and two of panics and deferred calls. The
/// assembler's part of the runtime relies on it.
const THREAD_OFFSET: u64 = 48;
/// The register with the goroutine that runs.
const RUNNING: &str = "%r14";
/// Each is a probe of its own in every process of the program.
const RETURNS_MAX: usize = 256;

/// The instructions of a function that return.
pub(super) fn returns(image: &ElfImage, (start, size): (Svma, u64)) -> Result<Vec<FileOffset>> {
    let code = image.code_at(start, size).context("it is not in the file")?;
    let end = Svma(start.0.saturating_add(size));
    let mut returns = Vec::new();
    for instruction in disassemble(&code, start, InstructionSet::X86_64, Syntax::Att) {
        let leaves = |to: Svma| to < start || to >= end;
        if matches!(instruction.target, Some(Target::Jump(to)) if leaves(to)) {
            bail!("it ends with a jump into another function: name that one");
        }
        if instruction.text == "ret" {
            let offset = image.file_offset_of(instruction.address);
            returns.push(offset.context("it is not in the file")?);
        }
    }
    if returns.is_empty() || returns.len() > RETURNS_MAX {
        let count = returns.len();
        bail!("it has {count} instructions that return: 1 to {RETURNS_MAX} can be watched");
    }
    Ok(returns)
}

/// Where the runtime has what a record shows. Parts that the debug information does not place are in no record.
pub(super) struct Fields {
    number: Option<u64>,
    current: Option<u64>,
    sudog: Option<u64>,
    channel: Option<u64>,
    semaphore: Option<u64>,
    /// The words of a file for the goroutines that read and write.
    waiters: [Option<u64>; 2],
    /// From these words to the number of the file.
    files: [Option<i64>; 2],
}

impl Fields {
    pub(super) fn of(path: &Path) -> Fields {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let config = SymbolizerConfig::new(DebugDirs::standard(home.as_deref()));
        let binary = Symbolizer::new(config).open(&DsoSpec::new(DsoKind::Elf, path.to_owned()));
        let paths = [
            ["runtime.g", "goid"],
            ["runtime.m", "curg"],
            ["runtime.g", "waiting"],
            // A goroutine in a queue of waiting ones.
            ["runtime.sudog", "c"],
            ["runtime.sudog", "elem"],
            // A file that the network's poller knows, and its words for a reader and a writer.
            ["runtime.pollDesc", "fd"],
            ["runtime.pollDesc", "rg"],
            ["runtime.pollDesc", "wg"],
        ];
        let [number, current, sudog, channel, semaphore, file, reader, writer] =
            binary.member_offsets(UNIT, paths);
        let number_of = |at: Option<u64>| i64::try_from(at?).ok();
        let from_word = |word| number_of(file)?.checked_sub(number_of(word)?);
        let waiters = [reader, writer];
        let files = waiters.map(from_word);
        Fields { number, current, sudog, channel, semaphore, waiters, files }
    }

    /// The goroutine that runs, in the kernel's language.
    pub(super) fn running(&self) -> String {
        let number = self.number.map(|at| format!(" {NUMBER}=+{at}({RUNNING}):u64"));
        format!("{ADDRESS}={RUNNING}:u64{}", number.unwrap_or_default())
    }

    /// In the kernel's language. Go passes arguments in ax, bx and cx, and r14 has the goroutine that runs.
    pub(super) fn at(&self, change: Change) -> String {
        let goroutine = if change == Change::Park { RUNNING } else { "%ax" };
        let mut fields = vec![format!("{ADDRESS}={goroutine}:u64")];
        let mut add = |name: &str, value: Option<String>| {
            fields.extend(value.map(|value| format!("{name}={value}:u64")));
        };
        let word = |at: Option<u64>, address: &str| at.map(|at| format!("+{at}({address})"));
        add(NUMBER, word(self.number, goroutine));
        match change {
            Change::Park => {
                let sudog = word(self.sudog, goroutine);
                let of_sudog = |at| word(at, sudog.as_ref()?);
                add(CHANNEL, of_sudog(self.channel));
                add(SEMAPHORE, of_sudog(self.semaphore));
                add(SUDOG, sudog);
                for (name, file) in [READ_FILE, WRITE_FILE].into_iter().zip(self.files) {
                    add(name, file.map(|at| format!("{at:+}(%bx)")));
                }
                fields.push(format!("{REASON}=%cx:u8"));
            }
            Change::Create | Change::Ready => {
                let waker = self.current.map(|at| format!("+{at}(+{THREAD_OFFSET}(%r14))"));
                add(WAKER_NUMBER, waker.as_ref().and_then(|waker| word(self.number, waker)));
                add(WAKER, waker);
            }
            Change::Run => {}
        }
        fields.join(" ")
    }

    /// The goroutines that wait for a file, in the kernel's language.
    pub(super) fn of_poll(&self) -> Option<String> {
        let [reader, writer] = self.waiters;
        let (reader, writer, goid) = (reader?, writer?, self.number?);
        let waiter =
            |name, number, at| format!("{name}=+{at}(%bx):u64 {number}=+{goid}(+{at}(%bx)):u64");
        let (reader, writer) =
            (waiter(READER, READER_NUMBER, reader), waiter(WRITER, WRITER_NUMBER, writer));
        Some(format!("{reader} {writer} {MODE}=%cx:u8"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_debug_information_does_not_place_are_absent() {
        let files = [Some(-16), Some(-32)];
        let (sudog, channel, semaphore) = (Some(72), Some(80), Some(24));
        let waiters = [Some(24), Some(40)];
        let (number, current) = (Some(152), Some(184));
        let all = Fields { number, current, sudog, channel, semaphore, waiters, files };
        assert_eq!(
            all.of_poll().expect("all fields"),
            "reader=+24(%bx):u64 reader_goid=+152(+24(%bx)):u64 \
             writer=+40(%bx):u64 writer_goid=+152(+40(%bx)):u64 mode=%cx:u8"
        );
        assert_eq!(
            all.at(Change::Park),
            "g=%r14:u64 goid=+152(%r14):u64 channel=+80(+72(%r14)):u64 semaphore=+24(+72(%r14)):u64 \
             sudog=+72(%r14):u64 read_fd=-16(%bx):u64 write_fd=-32(%bx):u64 reason=%cx:u8"
        );
        assert_eq!(
            all.at(Change::Ready),
            "g=%ax:u64 goid=+152(%ax):u64 waker_goid=+152(+184(+48(%r14))):u64 waker=+184(+48(%r14)):u64"
        );
        let none = Fields {
            number: None,
            current: None,
            sudog: None,
            channel,
            semaphore,
            waiters: [None; 2],
            files: [None; 2],
        };
        assert_eq!(none.of_poll(), None);
        assert_eq!(all.running(), "g=%r14:u64 goid=+152(%r14):u64");
        assert_eq!(none.running(), "g=%r14:u64");
        assert_eq!(none.at(Change::Park), "g=%r14:u64 reason=%cx:u8");
        assert_eq!(none.at(Change::Ready), "g=%ax:u64");
        assert_eq!(all.at(Change::Create), all.at(Change::Ready));
        assert_eq!(none.at(Change::Run), "g=%ax:u64");
    }
}
