//! Names that readers gave, beside those that the program has.

use serde::Serialize;

use super::built::Built;
use super::kinds::Compiler;
use super::programs::{WORKERS, Worker, is_line_of};

/// One frame of an address.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Frame {
    /// Name as the reader prints it.
    pub(super) function: String,
    /// Whether that is marked as inlined.
    pub(super) is_inlined: bool,
    /// File and line.
    pub(super) line: Option<(String, u32)>,
}

/// The innermost address of a sample in the program, as stated in its file, and its frames, the innermost first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sample {
    pub(super) address: u64,
    pub(super) frames: Vec<Frame>,
}

/// Samples of the functions that take time, and those that are named as the program has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Named {
    /// All samples.
    pub(crate) samples: u64,
    /// Those with their function.
    pub(crate) functions: u64,
    /// Those with the function that is inlined there.
    pub(crate) inlined: u64,
    /// Those with a line of this code.
    pub(crate) lines: u64,
    /// Those with another function, other inlined functions, or another line.
    pub(crate) wrong: u64,
    /// Samples by the name of the function that takes 50, 30 and 20 % of the time.
    pub(crate) shares: [u64; 3],
}

/// Counts a reader's samples.
pub(super) fn judge(samples: impl IntoIterator<Item = Sample>, built: &Built) -> Named {
    let mut all = Named::default();
    for sample in samples {
        let place = built.places.iter().find(|(_, range)| range.contains(&sample.address));
        if let Some((worker, _)) = place {
            count(&mut all, &sample.frames, *worker, built.compiler);
        }
    }
    all
}

/// A name beside the right one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    Right,
    Wrong,
    Nothing,
}

impl Level {
    fn of(is_there: bool, is_right: bool) -> Level {
        match (is_there, is_right) {
            (_, true) => Level::Right,
            (true, false) => Level::Wrong,
            (false, false) => Level::Nothing,
        }
    }
}

fn count(all: &mut Named, frames: &[Frame], worker: Worker, compiler: Compiler) {
    let outermost = frames.last().map(|frame| frame.function.as_str()).unwrap_or_default();
    let function = Level::of(!is_stand_in(outermost), is_named(outermost, worker.name));
    let mut inlined = frames.iter().filter(|frame| frame.is_inlined).map(|it| it.function.as_str());
    let is_spin = |name: &str| is_named(name, worker.inlined);
    let inlined = Level::of(inlined.clone().next().is_some(), inlined.any(is_spin));
    let line = frames.first().and_then(|frame| frame.line.as_ref());
    let is_line = |(file, line): &(String, u32)| is_line_of(compiler, worker, file, *line);
    let line = Level::of(line.is_some(), line.is_some_and(is_line));
    all.samples += 1;
    all.functions += u64::from(function == Level::Right);
    all.inlined += u64::from(inlined == Level::Right);
    all.lines += u64::from(line == Level::Right);
    all.wrong += u64::from([function, inlined, line].contains(&Level::Wrong));
    let named = WORKERS.iter().position(|worker| is_named(outermost, worker.name));
    if let Some(share) = named.and_then(|index| all.shares.get_mut(index)) {
        *share += 1;
    }
}

/// Names that readers make up for code without a name.
fn is_stand_in(name: &str) -> bool {
    name.is_empty() || name.starts_with("[unknown]") || name.starts_with("fun_")
}

/// Whether the last part of a path of names is this one, maybe with parameters: `program::mix`, `main.mix`, `mix(int)`.
fn is_named(name: &str, wanted: &str) -> bool {
    let name = name.split('(').next().unwrap_or_default();
    name.rsplit([':', '.']).next() == Some(wanted)
}

impl Named {
    /// Percentages of samples: functions, inlined functions, lines.
    pub(crate) fn percentages(&self) -> [f64; 3] {
        let share = |count: u64| count as f64 * 100.0 / self.samples.max(1) as f64;
        [share(self.functions), share(self.inlined), share(self.lines)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built() -> Built {
        let places = WORKERS.iter().zip(1u64..);
        Built {
            compiler: Compiler::Gcc,
            program: "/p/program".into(),
            places: places.map(|(worker, at)| (*worker, at * 0x100..at * 0x100 + 0x40)).collect(),
            file_bias: 0x400000,
            image_base: 0x400000,
        }
    }

    fn frame(function: &str, is_inlined: bool, line: u32) -> Frame {
        let line = (line > 0).then(|| ("program.cpp".to_owned(), line));
        Frame { function: function.to_owned(), is_inlined, line }
    }

    fn judged(address: u64, frames: &[Frame]) -> Named {
        judge([Sample { address, frames: frames.to_vec() }], &built())
    }

    fn levels(named: Named) -> [u64; 5] {
        [named.samples, named.functions, named.inlined, named.lines, named.wrong]
    }

    #[test]
    fn names_count_where_they_are_those_of_the_program() {
        let whole =
            [frame("mix", true, 5), frame("spin_red", true, 9), frame("morning(word)", false, 23)];
        assert_eq!(levels(judged(0x120, &whole)), [1, 1, 1, 1, 0]);
        assert_eq!(judged(0x120, &whole).shares, [1, 0, 0]);
        // The function alone, with the line of inlined code.
        assert_eq!(levels(judged(0x120, &[frame("morning", false, 9)])), [1, 1, 0, 1, 0]);
        // Names that belong to another function.
        assert_eq!(levels(judged(0x220, &whole)), [1, 0, 0, 1, 1]);
        assert_eq!(levels(judged(0x120, &[frame("morning", false, 14)])), [1, 1, 0, 0, 1]);
        let twice = [frame("morning", true, 9), frame("morning", false, 23)];
        assert_eq!(levels(judged(0x120, &twice)), [1, 1, 0, 1, 1]);
    }

    #[test]
    fn a_stand_in_is_no_name_and_no_wrong_one() {
        for name in ["[unknown]", "fun_401120", "fun_120@program", ""] {
            assert_eq!(levels(judged(0x120, &[frame(name, false, 0)])), [1, 0, 0, 0, 0], "{name}");
        }
        assert_eq!(levels(judged(0x120, &[])), [1, 0, 0, 0, 0]);
        assert_eq!(levels(judged(0x120, &[frame("_init", false, 0)])), [1, 0, 0, 0, 1]);
        assert_eq!(levels(judged(0x10, &[frame("main", false, 36)])), [0; 5]);
    }
}
