//! The table as text.

use super::detail::{INDENT, by_name, more, parts, share, shown};
use super::held;
use super::kernel::{self, KernelKey, KernelRow};
use super::keys::{HolderKey, LockKey, SiteKey, site_name};
use super::table::{LockRow, LockTable, Part, RowKey};
use super::{By, LockViewOptions};
use crate::switches::{ChainEntry, Preamble, Stacks, chooses_a_part, doubts};
use crate::units::{counted, duration};
use std::collections::BTreeMap;
use std::io::{self, Write};
use whit_profile::model::{Profile, ThreadId};
use whit_profile::switches::{Durations, Switches};

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
    let kernel = kernel::rows(profile, switches, options);
    let mut facts = facts(profile, switches, &table, options);
    facts.extend(kernel_facts(switches, &kernel, options));
    facts.extend(held::lines(profile, &table));
    let mut doubts = doubts(switches, &table.sums);
    if let left_off @ 1.. = switches.locks.left_off {
        doubts.push(format!(
            "Not in the table: {} of more threads, locks and holders than are told apart",
            counted(left_off, "wait")
        ));
    }
    Preamble { profile, facts, doubts, quiet: options.quiet }.write(out)?;
    let has_uncertain = kernel.iter().any(|row| row.uncertain > 0) || table.uncertain > 0;
    let text = Text { profile, table: &table, options, has_uncertain };
    if !table.rows.is_empty() {
        text.write(out)?;
    }
    text.kernel(out, &kernel)
}

fn facts(
    profile: &Profile,
    switches: &Switches,
    table: &LockTable<'_>,
    options: &LockViewOptions,
) -> Vec<String> {
    if !switches.sources.has_switches() {
        return vec![
            "No context switches were recorded, and so no waits for locks of programs (whit record --engine=bpf --wakeups)"
                .to_owned(),
        ];
    }
    let uncertain = of_uncertain_length(table.uncertain);
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
    if let all @ 1.. = table.parked.sync_count {
        let count = all.saturating_sub(table.parked.lossy_count);
        let uncertain = of_uncertain_length(all - count);
        lines.push(format!(
            "Not in the table: {}{uncertain} of parked threads of Java, {}: no known function says whether for a lock or for work \
             (docs/runtimes.md)",
            counted(count, "wait"),
            duration(table.parked.sync_wait_ns)
        ));
    }
    if table.rows.is_empty() {
        let line = match chooses_a_part(profile, &options.filters) {
            true => "No wait for a lock passes the options",
            false => "No thread was seen to wait for a lock",
        };
        lines.push(line.to_owned());
        return lines;
    }
    if table.known_ns > 0 {
        lines.push(format!(
            "The column Wall is the share of {}, the known wall time of the threads",
            duration(table.known_ns)
        ));
    }
    if !switches.sources.wakeups {
        lines.push(
            "Who ended waits is unknown: no wake-ups were recorded (whit record --engine=bpf --wakeups)"
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
            "[kernel]: locks of the kernel at which threads slept (lock:contention_begin tells them apart: docs/locks.md)"
                .to_owned(),
        );
    }
    lines
}

fn of_uncertain_length(count: u64) -> String {
    match count {
        0 => String::new(),
        count => format!(", and {count} of uncertain length"),
    }
}

fn kernel_facts(
    switches: &Switches,
    kernel: &[KernelRow],
    options: &LockViewOptions,
) -> Option<String> {
    if !switches.locks.kernel_recorded {
        return None;
    }
    if options.by == By::Holder {
        return Some("The holders of locks of the kernel are not recorded".to_owned());
    }
    let (mut waits, mut uncertain) = (Durations::default(), 0);
    for row in kernel {
        waits.merge(&row.waits);
        uncertain += row.uncertain;
    }
    Some(format!(
        "Waits for locks of the kernel, by lock:contention_begin: {}{}; {} in all",
        waits.count,
        of_uncertain_length(uncertain),
        duration(waits.total_ns)
    ))
}

struct Text<'a> {
    profile: &'a Profile,
    table: &'a LockTable<'a>,
    options: &'a LockViewOptions,
    has_uncertain: bool,
}

impl Text<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let (title, name) = match self.options.by {
            By::Lock => ("Lock (Binary)", "lock"),
            By::CallSite => ("Call Site (Binary)", "call site"),
            By::Holder => ("Holder", "holder"),
        };
        self.heading(out, title)?;
        let rows = &self.table.rows;
        let limit = self.limit(rows.len());
        for row in &rows[..limit] {
            self.row(out, row)?;
        }
        let rest = rows[limit..].iter().map(|row| (&row.waits, row.uncertain));
        self.rest(out, rest)?;
        let name = format!("[all {}]", counted(rows.len() as u64, name));
        writeln!(out, "{}{name}", self.numbers(&self.table.total, self.table.uncertain))?;
        writeln!(out)
    }

    fn limit(&self, rows: usize) -> usize {
        self.options.limit.unwrap_or(rows).min(rows)
    }

    /// Rows that are not printed.
    fn rest<'w>(
        &self,
        out: &mut impl Write,
        rows: impl Iterator<Item = (&'w Durations, u64)>,
    ) -> io::Result<()> {
        let (mut count, mut waits, mut uncertain) = (0, Durations::default(), 0);
        for (of_row, more) in rows {
            count += 1;
            waits.merge(of_row);
            uncertain += more;
        }
        if count == 0 {
            return Ok(());
        }
        let name = format!("[{}: --limit]", counted(count, "more row"));
        writeln!(out, "{}{name}", self.numbers(&waits, uncertain))
    }

    fn heading(&self, out: &mut impl Write, title: &str) -> io::Result<()> {
        if self.options.quiet {
            return Ok(());
        }
        let (uncertain, more_dots) = match self.has_uncertain {
            true => (" Uncertain", " ........."),
            false => ("", ""),
        };
        let dots = [9, 10, 8, 8, 8, 8, 8, 6].map(|width| ".".repeat(width)).join(" ");
        writeln!(
            out,
            "# {:>9} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6}{uncertain}  {title}",
            "Contended", "Total Wait", "Max Wait", "Avg Wait", "p50", "p95", "p99", "Wall",
        )?;
        writeln!(out, "# {dots}{more_dots}  {}\n#", ".".repeat(title.len()))
    }

    fn kernel(&self, out: &mut impl Write, rows: &[KernelRow]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let profile = self.profile;
        self.heading(out, "Lock of the Kernel")?;
        let limit = self.limit(rows.len());
        let function = |site: SiteKey| match site {
            Some(function) => profile.functions[function.index()].name.to_string(),
            None => "[no call stack]".to_owned(),
        };
        for row in &rows[..limit] {
            let name = match row.key {
                KernelKey::Lock(flags, address) => {
                    format!("{} {address:#x}", kernel::type_name(flags))
                }
                KernelKey::CallSite(flags, site) => {
                    format!("{} {}", kernel::type_name(flags), function(site))
                }
            };
            writeln!(out, "{}{name}", self.numbers(&row.waits, row.uncertain))?;
            let total_ns = row.waits.total_ns;
            if self.options.by == By::Lock {
                parts(out, total_ns, "at", &row.sites, |site| function(*site))?;
            }
            parts(out, total_ns, "waiter", &by_name(&row.waiters), |(comm, threads)| {
                format!("{}{}", profile.comms[comm.index()], self.threads(threads))
            })?;
        }
        self.rest(out, rows[limit..].iter().map(|row| (&row.waits, row.uncertain)))?;
        writeln!(out)
    }

    fn numbers(&self, waits: &Durations, uncertain: u64) -> String {
        let [p50, p95, p99] = [50, 95, 99].map(|percent| duration(waits.percentile_ns(percent)));
        let uncertain = match self.has_uncertain {
            false => String::new(),
            true => format!(" {uncertain:>9}"),
        };
        let wall = self.table.share(waits.total_ns);
        let wall = wall.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}%"));
        format!(
            "  {:>9} {:>10} {:>8} {:>8} {p50:>8} {p95:>8} {p99:>8} {wall:>6}{uncertain}  ",
            waits.count,
            duration(waits.total_ns),
            duration(waits.max_ns),
            duration(waits.average_ns()),
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
        let is_named_by_site = row.locks.iter().all(|(lock, _)| lock.is_of_site());
        if self.options.by != By::Lock && !is_named_by_site {
            parts(out, row.waits.total_ns, "lock", &row.locks, |lock| lock.name(profile))?;
        }
        let is_site =
            matches!(&row.key, RowKey::Lock(LockKey::Parked(_) | LockKey::Unaddressed(_)));
        if self.options.by != By::CallSite && !is_site {
            parts(out, row.waits.total_ns, "at", &row.sites, |site| site_name(profile, *site))?;
        }
        let waiters = by_name(&row.waiters);
        parts(out, row.waits.total_ns, "waiter", &waiters, |(comm, threads)| {
            format!("{}{}", profile.comms[comm.index()], self.threads(threads))
        })?;
        if self.options.by != By::Holder && row.holders[0].0 != HolderKey::Unknown {
            parts(out, row.waits.total_ns, "holder", &row.holders, |holder| {
                self.holder(row, *holder)
            })?;
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
        let shown = shown(row.waits.total_ns, chains.iter().map(|(_, part)| part));
        for ((wait, waker), part) in &chains[..shown] {
            writeln!(out, "{INDENT}chain  {}  {}", share(row.waits.total_ns, part), chain(wait))?;
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
