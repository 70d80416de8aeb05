//! Text.

use std::io::{self, Write};

use whit_types::{OutsideText, pad};

use super::columns::{BY_KIND, Column, MAIN, seconds};
use super::flat::{FlatSort, FlatSortKey, FlatTable};
use super::head::{doubts, facts};
use super::stacks::{ChainEntry, Stacks};
use super::tree::{StackTree, is_shown};
use super::waits::{self, reason, thread_name};
use super::{SwitchViewOptions, run_queue};
use crate::hists::{ChainOrder, SortKey};
use crate::stdio::{ledger_line, loss_line};
use crate::units::counted;
use crate::warning::warning_text;
use whit_profile::model::Profile;
use whit_profile::switches::{NodeClasses, SwitchSums, Switches, Trust, Wait, WaitClass, WaitKind};

/// At most so many warnings are printed; the rest is counted.
const MAX_WARNINGS: usize = 20;

/// The table or tree to print.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum View {
    /// The call tree.
    Tree,
    /// A table of functions, or by other keys.
    Flat,
    /// A table of threads.
    Threads,
    /// The longest single waits.
    Worst,
    /// Wakers by the waits that they ended.
    Wakers,
    /// Run-queue delays of threads.
    RunQueue,
}

/// Prints the leading comment lines, then the views.
///
/// # Errors
/// The error of `out`.
pub fn write_text(
    out: &mut impl Write,
    profile: &Profile,
    switches: &Switches,
    views: &[View],
    options: &SwitchViewOptions,
) -> io::Result<()> {
    let stacks = Stacks::new(profile, &options.filters, options.inline);
    let mut total = SwitchSums::default();
    stacks.rows(switches).for_each(|(_, row, _)| total.add(&row.sums));
    let text = Text { stacks, switches, options, columns: Column::shown(&total) };
    text.preamble(out, &total)?;
    for view in views {
        match view {
            View::Tree => text.tree(out)?,
            View::Flat => text.table(out, &options.sort)?,
            View::Threads => text.table(out, &FlatSort::by_thread())?,
            View::Worst => text.worst(out)?,
            View::Wakers => text.wakers(out)?,
            View::RunQueue => {
                run_queue::write(out, stacks, switches, (options.run_queue_limit, options.quiet))?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The leading comment lines.
pub(crate) struct Preamble<'a> {
    pub(crate) profile: &'a Profile,
    /// Left out where only the tables are wanted.
    pub(crate) facts: Vec<String>,
    pub(crate) doubts: Vec<String>,
    pub(crate) quiet: bool,
}

impl Preamble<'_> {
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let profile = self.profile;
        if !self.quiet {
            if let Some(ledger) = &profile.ledger {
                writeln!(out, "# {}", ledger_line(ledger))?;
            }
            for line in &self.facts {
                writeln!(out, "# {line}")?;
            }
            for warning in profile.warnings.iter().take(MAX_WARNINGS) {
                writeln!(out, "# Warning: {}", warning_text(warning))?;
            }
            if let more @ 1.. = profile.warnings.len().saturating_sub(MAX_WARNINGS) {
                writeln!(out, "# and {}", counted(more as u64, "more warning"))?;
            }
        }
        if let Some(line) = loss_line(&profile.losses) {
            writeln!(out, "# {line}")?;
        }
        for line in &self.doubts {
            writeln!(out, "# {line}")?;
        }
        writeln!(out, "#")
    }
}

/// The lines of a call tree. The class of waits stands where a line has one class alone, and not at those below.
pub(crate) struct TreeLines<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) tree: &'a StackTree,
    pub(crate) order: ChainOrder,
    /// Whether a node is printed.
    pub(crate) is_shown: &'a dyn Fn(&SwitchSums) -> bool,
    /// The columns of a node.
    pub(crate) numbers: &'a dyn Fn(&SwitchSums) -> String,
}

impl TreeLines<'_> {
    /// A run of functions without a branch stands in one line.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let arrow = match self.order {
            ChainOrder::Callee => " <- ",
            ChainOrder::Caller => " -> ",
        };
        let node = |index: u32| &self.tree.nodes[index as usize];
        let shown = |index: &&u32| (self.is_shown)(&node(**index).sums);
        let roots = self.tree.roots.iter().rev().filter(shown);
        let mut work: Vec<(u32, usize, bool)> = roots.map(|root| (*root, 0, false)).collect();
        while let Some((index, depth, is_classed)) = work.pop() {
            let mut at = node(index);
            let mut line = (self.numbers)(&at.sums);
            line.push_str(&"  ".repeat(depth));
            line.push_str(&at.place.name(self.profile).escaped());
            while let [only] = at.children[..] {
                let next = node(only);
                if next.sums != at.sums {
                    break;
                }
                at = next;
                line.push_str(arrow);
                line.push_str(&at.place.name(self.profile).escaped());
            }
            let class = at.classes.only().filter(|_| !is_classed);
            if let Some(class) = class {
                line.push_str(&format!(" [{}]", class.name()));
            }
            writeln!(out, "{line}")?;
            let children = at.children.iter().rev().filter(shown);
            let is_classed = is_classed || class.is_some();
            work.extend(children.map(|child| (*child, depth + 1, is_classed)));
        }
        Ok(())
    }
}

struct Text<'a> {
    stacks: Stacks<'a>,
    switches: &'a Switches,
    options: &'a SwitchViewOptions,
    columns: Vec<Column>,
}

impl Text<'_> {
    fn preamble(&self, out: &mut impl Write, total: &SwitchSums) -> io::Result<()> {
        let profile = self.stacks.profile();
        let facts = facts(profile, self.switches, &self.options.filters, total);
        let doubts = doubts(self.switches, total);
        Preamble { profile, facts, doubts, quiet: self.options.quiet }.write(out)
    }

    /// Leaves columns out until half of the width is that of names, and says which.
    fn fit(&self, out: &mut impl Write, mut columns: Vec<Column>) -> io::Result<Vec<Column>> {
        let Some(width) = self.options.width else { return Ok(columns) };
        let mut used = 0;
        let fitting = columns.iter().take_while(|column| {
            used += column.width() + 2;
            used <= width / 2
        });
        let left_out = columns.split_off(fitting.count().max(1).min(columns.len()));
        if !left_out.is_empty() && !self.options.quiet {
            let names: Vec<_> = left_out.iter().map(|column| column.heading).collect();
            writeln!(out, "# Columns left out: {}; --width 0 shows all\n#", names.join(", "))?;
        }
        Ok(columns)
    }

    fn heading(&self, out: &mut impl Write, columns: &[Column], last: &str) -> io::Result<()> {
        if self.options.quiet {
            return Ok(());
        }
        let mut lines = ["# ".to_owned(), "# ".to_owned()];
        for column in columns {
            let width = column.width();
            lines[0].push_str(&format!("{}  ", pad::right(column.heading, width)));
            lines[1].push_str(&format!("{}  ", ".".repeat(width)));
        }
        lines[0].push_str(last);
        lines[1].push_str(&".".repeat(last.len()));
        writeln!(out, "{}\n{}\n#", lines[0], lines[1])
    }

    fn numbers(columns: &[Column], sums: &SwitchSums) -> String {
        let cells = columns.iter().map(|column| {
            let width = column.width();
            format!("{}  ", pad::right((column.cell)(sums), width))
        });
        format!("  {}", cells.collect::<String>())
    }

    fn tree(&self, out: &mut impl Write) -> io::Result<()> {
        let tree = StackTree::new(self.stacks, self.switches, self.options.order);
        let columns = self.fit(out, self.columns.clone())?;
        self.heading(out, &columns, "Function / Call Stack")?;
        let limit = self.options.percent_limit;
        let lines = TreeLines {
            profile: self.stacks.profile(),
            tree: &tree,
            order: self.options.order,
            is_shown: &|sums| is_shown(sums, &tree.total, limit),
            numbers: &|sums| Text::numbers(&columns, sums),
        };
        lines.write(out)
    }

    fn table(&self, out: &mut impl Write, sort: &FlatSort) -> io::Result<()> {
        let table = FlatTable::new(self.stacks, self.switches, self.options, sort);
        let mut columns = self.columns.clone();
        let main = 1 + MAIN.len();
        columns.splice(main..main, BY_KIND);
        let columns = self.fit(out, columns)?;
        let shown: Vec<_> = table
            .rows
            .iter()
            .filter(|row| is_shown(&row.sums, &table.total, self.options.percent_limit))
            .collect();
        let keys = sort.keys();
        let widths: Vec<usize> = keys
            .iter()
            .map(|key| {
                let cells = shown.iter().map(|row| row.key.cell(*key).chars().count());
                cells.max().unwrap_or(0).max(heading(*key).len())
            })
            .collect();
        let join = |cells: Vec<String>| {
            let padded =
                cells.iter().zip(&widths).map(|(cell, width)| pad::left(cell, *width).to_string());
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let titles = join(keys.iter().map(|key| heading(*key).to_owned()).collect());
        let has_self = sort.has_place() && self.options.children;
        let self_width = seconds(0).len().max("CPU Self".len()) + 3;
        let title = if has_self {
            format!("{}  {titles}", pad::right("CPU Self", self_width))
        } else {
            titles
        };
        self.heading(out, &columns, &title)?;
        for row in shown {
            let mut line = Text::numbers(&columns, &row.sums);
            if has_self {
                line.push_str(&format!("{}  ", pad::right(seconds(row.self_cpu_ns), self_width)));
            }
            line.push_str(&join(keys.iter().map(|key| row.key.cell(*key)).collect()));
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn worst(&self, out: &mut impl Write) -> io::Result<()> {
        if !self.options.quiet {
            writeln!(out, "# Longest waits: start, duration, CPU, reason, thread; call stack\n#")?;
        }
        let nodes = self.switches.worst.iter().map(|wait| wait.node);
        let classes = NodeClasses::of(self.stacks.profile(), nodes);
        for (wait, frames) in waits::worst(self.stacks, self.switches, self.options) {
            self.wait(out, wait, classes.of_wait(wait), &frames)?;
        }
        Ok(())
    }

    fn wait(
        &self,
        out: &mut impl Write,
        wait: &Wait,
        class: WaitClass,
        frames: &[ChainEntry],
    ) -> io::Result<()> {
        let profile = self.stacks.profile();
        let cpu = wait.cpu.map_or("[???]".to_owned(), |cpu| format!("[{:03}]", cpu.0));
        let mut notes = String::new();
        if wait.trust == Trust::Lossy {
            notes.push_str(", lossy");
        }
        if wait.begun_before {
            notes.push_str(", blocked when recording began");
        }
        if wait.is_open {
            notes.push_str(", open at the end of the recording");
        }
        writeln!(
            out,
            "{:>15}: {:>14}  {cpu}  {}  {}{notes}",
            wait.start.in_seconds(),
            seconds(wait.duration_ns),
            reason(wait.kind, wait.state, class),
            thread_name(profile, wait.thread, wait.comm),
        )?;
        if let Some(object) = waits::object(self.switches, wait.object) {
            writeln!(out, "{:17}for {}", "", OutsideText::from(object.to_string()))?;
        }
        for place in frames {
            writeln!(out, "{:17}{}", "", place.name(profile))?;
        }
        if let Some((time, waker)) = wait.woken {
            let comm = profile.threads[waker.thread.index()].comm;
            let by = match waker.from_interrupt {
                true => "an interrupt of ",
                false => "",
            };
            let blocked = time.since(wait.start).min(wait.duration_ns);
            let how = match wait.kind {
                WaitKind::New => "made".to_owned(),
                _ => format!("woken after {}", seconds(blocked)),
            };
            writeln!(
                out,
                "{:17}{how} by {by}{}, then runnable for {}",
                "",
                thread_name(profile, waker.thread, comm),
                seconds(wait.duration_ns - blocked),
            )?;
            if waker.node != whit_profile::model::NodeId::NONE {
                writeln!(out, "{:19}{}", "", self.chain(&self.stacks.frames(waker.node)))?;
            }
        }
        writeln!(out)
    }

    fn chain(&self, frames: &[ChainEntry]) -> String {
        let names: Vec<_> =
            frames.iter().map(|f| f.name(self.stacks.profile()).to_string()).collect();
        names.join(" <- ")
    }

    fn wakers(&self, out: &mut impl Write) -> io::Result<()> {
        let profile = self.stacks.profile();
        if !self.options.quiet {
            writeln!(
                out,
                "# Wakers: blocked time, wake-ups, waiting stack; waker and its stack\n#"
            )?;
        }
        for line in waits::wakers(self.stacks, self.switches).iter().take(self.options.limit) {
            let comm = line.waker_comm;
            let by = match line.waker_thread {
                Some(thread) => thread_name(profile, thread, comm),
                None => profile.comms[comm.index()].to_string(),
            };
            let interrupt = if line.from_interrupt { "an interrupt of " } else { "" };
            writeln!(
                out,
                "{:>14}  {:>9}  {}",
                seconds(line.blocked_ns),
                line.count,
                self.chain(&line.waiter)
            )?;
            writeln!(out, "{:27}by {interrupt}{by}: {}", "", self.chain(&line.waker))?;
        }
        Ok(())
    }
}

fn heading(key: FlatSortKey) -> &'static str {
    match key {
        FlatSortKey::OfSamples(SortKey::Tgid) => "    Pid",
        FlatSortKey::OfSamples(SortKey::Pid) => SortKey::Tid.heading(),
        FlatSortKey::OfSamples(SortKey::Symbol) => "Function",
        FlatSortKey::OfSamples(key) => key.heading(),
        FlatSortKey::WaitClass => "Wait Class",
        FlatSortKey::WaitObject => "Wait Object",
    }
}
