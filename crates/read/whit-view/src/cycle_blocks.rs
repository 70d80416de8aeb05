//! Blocks of code between two branches, by the cycles that the CPU counted in them: `perf report --total-cycles`.
//!
//! A branch record has the cycles since the branch before it. They belong to the code from the target of that branch to
//! the branch of the record. As in perf, cycles go by the end of a block: of several beginnings in its function the
//! longest block stands for all. Cycles of code without a symbol are in the total alone.

use rustc_hash::FxHashMap;
use serde::Serialize;
use std::io::{self, Write};
use whit_profile::model::{EventId, Frame, FrameId, FunctionId, Profile, SampleRow};
use whit_types::{Svma, pad};

use crate::hists::percent;

/// Widths of the columns, as perf has them.
const WIDTHS: [usize; 4] = [15, 14, 11, 10];
const TITLES: [&str; 4] = ["Sampled Cycles%", "Sampled Cycles", "Avg Cycles%", "Avg Cycles"];
const RANGE_TITLE: &str = "[Program Block Range]";
const DSO_TITLE: &str = "Shared Object";
/// perf has no such column; blocks of one line are told apart by it.
const SYMBOL_TITLE: &str = "Symbol";

/// The blocks of one event, those with the most cycles first.
#[derive(Clone, Debug)]
pub struct CycleBlocks {
    /// Cycles of all branch records, also of those without a symbol.
    pub cycles: u64,
    /// Branch records with cycles.
    pub branches: u64,
    /// In order of their cycles.
    pub blocks: Vec<CycleBlock>,
}

/// Code from one branch target to the next branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CycleBlock {
    /// The function that holds it.
    pub function: FunctionId,
    /// The first instruction; `None` where no record says where the block begins.
    pub start: Option<FrameId>,
    /// The branch at its end.
    pub end: FrameId,
    /// Sum over its branch records.
    pub cycles: u64,
    /// Number of its branch records.
    pub branches: u64,
}

impl CycleBlock {
    /// Mean of its branch records.
    pub fn mean_cycles(&self) -> u64 {
        self.cycles.checked_div(self.branches).unwrap_or(0)
    }
}

impl CycleBlocks {
    /// Adds up the blocks of `event`, of a profile that was loaded by `Counted::Blocks`.
    pub fn of(profile: &Profile, event: EventId) -> CycleBlocks {
        let mut all = CycleBlocks { cycles: 0, branches: 0, blocks: Vec::new() };
        let mut places: FxHashMap<(FunctionId, Svma), usize> = FxHashMap::default();
        for row in profile.rows.iter().filter(|row| row.event == event) {
            all.cycles = all.cycles.saturating_add(row.period);
            all.branches += row.samples;
            let Some(block) = block_of(profile, row) else { continue };
            let end = profile.frames[block.end.index()].address;
            let place = *places.entry((block.function, end)).or_insert_with(|| {
                all.blocks.push(CycleBlock { cycles: 0, branches: 0, ..block });
                all.blocks.len() - 1
            });
            let known = &mut all.blocks[place];
            known.cycles = known.cycles.saturating_add(block.cycles);
            known.branches += block.branches;
            let start = |frame: FrameId| profile.frames[frame.index()].address;
            known.start = match (known.start, block.start) {
                (Some(a), Some(b)) => Some(if start(b) < start(a) { b } else { a }),
                (a, b) => a.or(b),
            };
        }
        let address = |block: &CycleBlock| profile.frames[block.end.index()].address;
        all.blocks
            .sort_by_key(|block| (std::cmp::Reverse(block.cycles), block.function, address(block)));
        all
    }

    /// The blocks with at least this share of the cycles.
    pub fn shown(&self, percent_limit: f64) -> impl Iterator<Item = &CycleBlock> {
        self.blocks.iter().filter(move |block| percent(block.cycles, self.cycles) >= percent_limit)
    }

    /// Sum of the means of all blocks.
    fn mean_total(&self) -> u64 {
        self.blocks.iter().map(CycleBlock::mean_cycles).fold(0, u64::saturating_add)
    }
}

/// `None` of code without a symbol.
fn block_of(profile: &Profile, row: &SampleRow) -> Option<CycleBlock> {
    let branch = profile.facets_of(row)?.branch?;
    let end = branch.from?;
    let Frame { function, address, .. } = profile.frames[end.index()];
    if !profile.functions[function.index()].known {
        return None;
    }
    let is_before = |start: &FrameId| {
        let frame = &profile.frames[start.index()];
        frame.function == function && frame.address < address
    };
    let start = branch.to.filter(is_before);
    Some(CycleBlock { function, start, end, cycles: row.period, branches: row.samples })
}

/// `[main.c:27 -> main.c:29]`; addresses where the lines are unknown.
fn range_text(profile: &Profile, block: &CycleBlock) -> String {
    let ends = [block.start, Some(block.end)].map(|frame| Some(profile.frames[frame?.index()]));
    let line = |frame: &Option<Frame>| {
        let (file, line) = frame.as_ref()?.source?;
        Some(format!("{}:{line}", profile.files[file.index()].base_name().escaped()))
    };
    let address = |frame: &Option<Frame>| {
        frame.as_ref().map_or("?".to_owned(), |frame| format!("{:x}", frame.address.0))
    };
    match ends.each_ref().map(line) {
        [Some(start), Some(end)] => format!("[{start} -> {end}]"),
        [None, Some(end)] if block.start.is_none() => format!("[? -> {end}]"),
        _ => format!("[{} -> {}]", address(&ends[0]), address(&ends[1])),
    }
}

/// `2.6K`, as perf writes cycles.
fn cycles_text(cycles: u64) -> String {
    match cycles {
        1_000_000.. => format!("{:.1}M", cycles as f64 / 1e6),
        1000.. => format!("{:.1}K", cycles as f64 / 1e3),
        _ => cycles.to_string(),
    }
}

/// Prints the table of one event.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_text(
    out: &mut impl Write,
    profile: &Profile,
    event: EventId,
    percent_limit: f64,
    titles: bool,
) -> io::Result<()> {
    let all = CycleBlocks::of(profile, event);
    let mean_total = all.mean_total();
    let ranges: Vec<_> =
        all.shown(percent_limit).map(|block| (block, range_text(profile, block))).collect();
    let lengths = ranges.iter().map(|(_, text)| text.chars().count());
    let width = lengths.max().unwrap_or(0).max(RANGE_TITLE.len());
    let dso_of = |(block, _): &(&CycleBlock, String)| {
        let dso = profile.functions[block.function.index()].dso;
        profile.dsos[dso.index()].short_name.escaped().chars().count()
    };
    let dso_width = ranges.iter().map(dso_of).max().unwrap_or(0).max(DSO_TITLE.len());
    if titles {
        let [share, cycles, mean_share, mean] = WIDTHS;
        let dots = WIDTHS.map(|width| ".".repeat(width)).join("  ");
        let name = &profile.events[event.index()].name;
        writeln!(out, "# Branches with cycles: {} of event '{name}'", all.branches)?;
        writeln!(out, "# Sampled cycles: {}\n#", all.cycles)?;
        let [a, b, c, d] = TITLES;
        let numbers = [(a, share), (b, cycles), (c, mean_share), (d, mean), (RANGE_TITLE, width)];
        let numbers = numbers.map(|(title, width)| pad::right(title, width).to_string()).join("  ");
        let dso_title = pad::left(DSO_TITLE, dso_width);
        writeln!(
            out,
            "# {numbers}  {dso_title}  {SYMBOL_TITLE}\n\
             # {dots}  {}  {}  {}\n#",
            ".".repeat(width),
            ".".repeat(dso_width),
            ".".repeat(SYMBOL_TITLE.len()),
        )?;
    }
    for (block, range) in ranges {
        let [share, cycles, mean_share, mean] = WIDTHS;
        let share_cell =
            |share: f64, width: usize| pad::right(format_args!("{share:.2}%"), width).to_string();
        let function = &profile.functions[block.function.index()];
        let dso = &profile.dsos[function.dso.index()].short_name;
        writeln!(
            out,
            "  {}  {}  {}  {}  {}  {}  {}",
            share_cell(percent(block.cycles, all.cycles), share),
            pad::right(cycles_text(block.cycles), cycles),
            share_cell(percent(block.mean_cycles(), mean_total), mean_share),
            pad::right(cycles_text(block.mean_cycles()), mean),
            pad::right(range, width),
            pad::left(dso.escaped(), dso_width),
            function.name,
        )?;
    }
    Ok(())
}

/// A block of code between two branches.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct JsonBlock<'a> {
    /// The function that holds it.
    symbol: &'a str,
    /// The binary's path.
    dso: &'a str,
    /// First instruction, as the binary states addresses; `null` where no record says it.
    start: Option<u64>,
    /// The branch at its end.
    end: u64,
    /// `file:line` of the first instruction, where known.
    start_line: Option<String>,
    /// `file:line` of the branch.
    end_line: Option<String>,
    /// Sum over its branch records.
    cycles: u64,
    /// Number of its branch records.
    branches: u64,
    /// Share of the cycles of all branch records.
    percent: f64,
}

impl<'a> JsonBlock<'a> {
    pub(crate) fn all(profile: &'a Profile, event: EventId, percent_limit: f64) -> Vec<Self> {
        let all = CycleBlocks::of(profile, event);
        let address = |frame: FrameId| profile.frames[frame.index()].address.0;
        let line = |frame: FrameId| {
            let (file, line) = profile.frames[frame.index()].source?;
            Some(format!("{}:{line}", profile.files[file.index()].exact()))
        };
        let block = |block: &CycleBlock| {
            let function = &profile.functions[block.function.index()];
            JsonBlock {
                symbol: function.name.exact(),
                dso: profile.dsos[function.dso.index()].path.exact(),
                start: block.start.map(address),
                end: address(block.end),
                start_line: block.start.and_then(line),
                end_line: line(block.end),
                cycles: block.cycles,
                branches: block.branches,
                percent: percent(block.cycles, all.cycles),
            }
        };
        all.shown(percent_limit).map(block).collect()
    }
}
