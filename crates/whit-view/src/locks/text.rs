//! The table as text.

use super::keys::{HolderKey, LockKey, SiteKey, WaiterKey, site_name};
use super::table::{LockRow, LockTable, Part, RowKey};
use super::{By, LockViewOptions};
use crate::switches::{ChainEntry, Preamble, Stacks, doubts};
use crate::units::{counted, duration};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::io::{self, Write};
use whit_profile::model::{CommId, Profile, ThreadId};
use whit_profile::switches::{Durations, Switches};

/// Names and chains of one kind that are printed below a row.
const MAX_PARTS: usize = 3;
/// All but the first need this share of the row, in percent.
const MIN_PERCENT: f64 = 0.5;

/// Prints the leading comment lines and the table.
///
/// # Errors
/// The error of `out`.
pub fn write_text(
    out: &mut impl Write,
    profile: &Profile,
    switches: &Switches,
    options: &LockViewOptions,
) -> io::Result<()> {
    let table = LockTable::new(profile, switches, options);
    let facts = facts(switches, &table, options);
    let mut doubts = doubts(switches, &table.sums);
    if let left_off @ 1.. = switches.locks.left_off {
        doubts.push(format!(
            "Not in the table: {} of more threads, locks and holders than are told apart",
            counted(left_off, "wait")
        ));
    }
    Preamble { profile, facts, doubts, quiet: options.quiet }.write(out)?;
    if table.rows.is_empty() {
        return Ok(());
    }
    let text = Text { profile, table: &table, options };
    text.write(out)
}

fn facts(switches: &Switches, table: &LockTable<'_>, options: &LockViewOptions) -> Vec<String> {
    let uncertain = match table.uncertain {
        0 => String::new(),
        count => format!(", and {count} of uncertain length"),
    };
    let runnable = match table.sums.runnable_ns {
        0 => String::new(),
        ns => format!(", of which {} after the wake-up", duration(ns)),
    };
    let mut lines = vec![format!(
        "Waits for locks: {}{uncertain}; {} in all{runnable}; recorded for {}",
        table.total.count,
        duration(table.total.total_ns),
        duration(switches.recorded_ns),
    )];
    if table.rows.is_empty() {
        lines.push("No thread was seen to wait for a lock".to_owned());
        return lines;
    }
    lines.push(format!(
        "The column Wall is the share of {}, the known wall time of the threads",
        duration(table.known_ns)
    ));
    if !switches.sources.wakeups {
        lines.push(
            "The holders are unknown: no wake-ups were recorded (whit record --engine=bpf --wakeups)"
                .to_owned(),
        );
    }
    if let unknown @ 1.. = table.total.count - table.woken
        && switches.sources.wakeups
    {
        lines.push(format!("{} without a recorded wake-up", counted(unknown, "wait")));
    }
    match table.addressed {
        (0, 1..) => lines.push(
            "Locks are told apart by call site: no addresses were recorded (whit record --engine=bpf, on x86-64)"
                .to_owned(),
        ),
        (known, all) if known < all => lines.push(format!(
            "{} without the address of the lock",
            counted(all - known, "wait")
        )),
        _ => {}
    }
    let has = |wanted: fn(&LockKey) -> bool| {
        table.rows.iter().any(|row| row.locks.iter().any(|(lock, _)| wanted(lock)))
    };
    if options.by == By::Lock && has(|lock| matches!(lock, LockKey::Parked(_))) {
        lines.push(
            "[parked]: threads wait at a word of their own, so that a row has all locks that a function waits for"
                .to_owned(),
        );
    }
    if options.by == By::Lock && has(|lock| matches!(lock, LockKey::Kernel(_))) {
        lines.push(
            "[kernel]: locks of the kernel at which threads slept (-e lock:contention_begin: docs/locks.md)"
                .to_owned(),
        );
    }
    lines
}

struct Text<'a> {
    profile: &'a Profile,
    table: &'a LockTable<'a>,
    options: &'a LockViewOptions,
}

/// The blank in front of lines below a row.
const INDENT: &str = "           ";

impl Text<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let rows = &self.table.rows;
        if !self.options.quiet {
            self.heading(out)?;
        }
        let limit = self.options.limit.unwrap_or(rows.len());
        for row in rows.iter().take(limit) {
            self.row(out, row)?;
        }
        if let more @ 1.. = rows.len().saturating_sub(limit) {
            let mut rest = Durations::default();
            rows[limit..].iter().for_each(|row| rest.merge(&row.waits));
            let uncertain = rows[limit..].iter().map(|row| row.uncertain).sum();
            let name = format!("[{}: --limit]", counted(more as u64, "more row"));
            writeln!(out, "{}{name}", self.numbers(&rest, uncertain))?;
        }
        let name = match self.options.by {
            By::Lock => "lock",
            By::CallSite => "call site",
            By::Holder => "holder",
        };
        let name = format!("[all {}]", counted(rows.len() as u64, name));
        writeln!(out, "{}{name}", self.numbers(&self.table.total, self.table.uncertain))?;
        writeln!(out)
    }

    fn heading(&self, out: &mut impl Write) -> io::Result<()> {
        let name = match self.options.by {
            By::Lock => "Lock (Binary)",
            By::CallSite => "Call Site (Binary)",
            By::Holder => "Holder",
        };
        let uncertain = if self.table.uncertain > 0 { " Uncertain" } else { "" };
        let titles = format!(
            "# {:>9} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}{uncertain}  {name}",
            "Contended", "Total Wait", "Max Wait", "Avg Wait", "p50", "p95", "p99", "Wall",
        );
        let dots = [9, 10, 8, 8, 8, 8, 8, 6].map(|width| ".".repeat(width)).join(" ");
        let uncertain = if self.table.uncertain > 0 { " ........." } else { "" };
        writeln!(out, "{titles}\n# {dots}{uncertain}  {}\n#", ".".repeat(name.len()))
    }

    fn numbers(&self, waits: &Durations, uncertain: u64) -> String {
        let [p50, p95, p99] = [50, 95, 99].map(|percent| duration(waits.percentile_ns(percent)));
        let uncertain = match self.table.uncertain {
            0 => String::new(),
            _ => format!(" {uncertain:>9}"),
        };
        format!(
            "  {:>9} {:>10} {:>8} {:>8} {p50:>8} {p95:>8} {p99:>8} {:>5.1}%{uncertain}  ",
            waits.count,
            duration(waits.total_ns),
            duration(waits.max_ns),
            duration(waits.average_ns()),
            self.table.share(waits.total_ns),
        )
    }

    fn row(&self, out: &mut impl Write, row: &LockRow<'_>) -> io::Result<()> {
        let name = match &row.key {
            RowKey::Lock(lock) => lock.name(self.profile),
            RowKey::CallSite(site) => site_name(self.profile, *site),
            RowKey::Holder(holder) => self.holder(row, *holder),
        };
        writeln!(out, "{}{name}", self.numbers(&row.waits, row.uncertain))?;
        let profile = self.profile;
        let is_told_by_site = row.locks.iter().all(|(lock, _)| lock.is_of_site());
        if self.options.by != By::Lock && !is_told_by_site {
            parts(out, row, "lock", &row.locks, |lock| lock.name(profile))?;
        }
        let is_site =
            matches!(&row.key, RowKey::Lock(LockKey::Parked(_) | LockKey::Unaddressed(_)));
        if self.options.by != By::CallSite && !is_site {
            parts(out, row, "at", &row.sites, |site| site_name(profile, *site))?;
        }
        let waiters = by_name(&row.waiters);
        parts(out, row, "waiter", &waiters, |(comm, threads)| {
            format!("{}{}", profile.comms[comm.index()], self.threads(threads))
        })?;
        if self.options.by != By::Holder && row.holders[0].0 != HolderKey::Unknown {
            parts(out, row, "holder", &row.holders, |holder| self.holder(row, *holder))?;
        }
        if self.options.chains {
            self.chains(out, row)?;
        }
        Ok(())
    }

    /// `/tid` of one thread, else the number of threads.
    fn threads(&self, threads: &[ThreadId]) -> String {
        match threads {
            [only] => format!("/{}", self.profile.threads[only.index()].tid.0),
            all => format!(" ({} threads)", all.len()),
        }
    }

    fn holder(&self, row: &LockRow<'_>, holder: HolderKey) -> String {
        let threads = row.holder_threads.get(&holder);
        let threads: Vec<_> = threads.into_iter().flatten().copied().collect();
        holder.name(self.profile, &self.threads(&threads))
    }

    fn chains(&self, out: &mut impl Write, row: &LockRow<'_>) -> io::Result<()> {
        let stacks = Stacks::new(self.profile, &self.options.filters, self.options.inline);
        let mut sums: BTreeMap<(Vec<ChainEntry>, Option<Vec<ChainEntry>>), Part> = BTreeMap::new();
        for ((wait, waker), part) in &row.chains {
            let site = self.table.sites.wait(*wait).and_then(|site| site.caller);
            let waker =
                waker.map(|waker| from_site(stacks.frames(waker), self.table.sites.release(waker)));
            sums.entry((from_site(stacks.frames(*wait), site), waker)).or_default().merge(part);
        }
        let mut chains: Vec<_> = sums.into_iter().collect();
        chains.sort_by_key(|(_, part)| std::cmp::Reverse(part.total_ns));
        let chain = |frames: &[ChainEntry]| {
            let names: Vec<_> =
                frames.iter().map(|frame| frame.name(self.profile).to_string()).collect();
            names.join(" <- ")
        };
        let shown = shown(row, chains.iter().map(|(_, part)| part));
        for ((wait, waker), part) in &chains[..shown] {
            writeln!(out, "{INDENT}chain  {}  {}", share(row, part), chain(wait))?;
            if let Some(waker) = waker {
                writeln!(out, "{INDENT}{:16}ended by {}", "", chain(waker))?;
            }
        }
        more(out, chains.len() - shown, "chain")
    }
}

/// The part of a call chain from a function outwards. Inside of it stand the lock's own functions.
fn from_site(mut frames: Vec<ChainEntry>, site: SiteKey) -> Vec<ChainEntry> {
    let is_site = |entry: &ChainEntry| entry.0.is_some_and(|(function, _)| Some(function) == site);
    let inner = frames.iter().position(is_site).unwrap_or(0);
    frames.drain(..inner);
    frames
}

fn percent(row: &LockRow<'_>, part: &Part) -> Option<f64> {
    let total_ns = row.waits.total_ns;
    (total_ns > 0).then(|| 100.0 * part.total_ns as f64 / total_ns as f64)
}

/// The share of a row; a dash where all its waits are uncertain.
fn share(row: &LockRow<'_>, part: &Part) -> String {
    percent(row, part).map_or_else(|| format!("{:>7}", "-"), |percent| format!("{percent:>6.1}%"))
}

/// How many of the longest parts are printed.
fn shown<'a>(row: &LockRow<'_>, parts: impl Iterator<Item = &'a Part>) -> usize {
    let is_large = |part: &&Part| percent(row, part).is_none_or(|percent| percent >= MIN_PERCENT);
    parts.take(MAX_PARTS).take_while(is_large).count().max(1)
}

/// The longest parts of a row.
fn parts<K>(
    out: &mut impl Write,
    row: &LockRow<'_>,
    title: &str,
    parts: &[(K, Part)],
    name: impl Fn(&K) -> String,
) -> io::Result<()> {
    let shown = shown(row, parts.iter().map(|(_, part)| part));
    for (key, part) in &parts[..shown] {
        writeln!(out, "{INDENT}{title:<6} {}  {}", share(row, part), name(key))?;
    }
    more(out, parts.len() - shown, title)
}

fn more(out: &mut impl Write, count: usize, title: &str) -> io::Result<()> {
    match count {
        0 => Ok(()),
        more => writeln!(out, "{INDENT}{title:<6} {:>7}  and {more} more", ""),
    }
}

/// Waiters with one command name together.
fn by_name(waiters: &[(WaiterKey, Part)]) -> Vec<((CommId, Vec<ThreadId>), Part)> {
    let mut names: Vec<((CommId, Vec<ThreadId>), Part)> = Vec::new();
    let mut known: BTreeMap<CommId, usize> = BTreeMap::new();
    for (waiter, part) in waiters {
        let at = *known.entry(waiter.comm).or_insert_with(|| {
            names.push(((waiter.comm, Vec::new()), Part::default()));
            names.len() - 1
        });
        names[at].0.1.push(waiter.thread);
        names[at].1.merge(part);
    }
    names.sort_by_key(|(_, part)| std::cmp::Reverse(part.total_ns));
    for ((_, threads), _) in &mut names {
        let mut seen = FxHashSet::default();
        threads.retain(|thread| seen.insert(*thread));
    }
    names
}
