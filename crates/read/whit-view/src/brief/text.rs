//! The facts as text.

use super::facts::Brief;
use super::parts::{Function, FunctionShare, Share};
use super::shortened;
use super::waits::{LongWait, Thread, WaitFacts, WokenBy};
use crate::units::{counted, duration};
use std::fmt::Write;
use whit_types::OutsideText;

/// Characters of names in the least form.
const LEAST_NAME: usize = 24;
/// Columns of the summary in the terse form.
const TERSE_SUMMARY: usize = 120;
/// Bytes of the least form that are not the summary's.
const BESIDES_SUMMARY: usize = 100;

/// The last line of a text that leaves facts out.
fn left_off_line(left_off: u64) -> String {
    format!("left out: {} (give a larger budget: --brief=BYTES)\n", counted(left_off, "fact"))
}

/// The text in whole.
pub(super) fn of(brief: &Brief) -> String {
    let mut lines = lines(brief);
    if brief.left_off > 0 {
        lines.push(left_off_line(brief.left_off));
    }
    lines.concat()
}

/// The text without the recording's place, command and machine.
pub(super) fn terse(brief: &Brief) -> String {
    let mut all = terse_lines(brief, TERSE_SUMMARY);
    let mut places = 0;
    place(brief, &mut |_| places += 1);
    all.push(left_off_line(brief.left_off + places));
    all.concat()
}

fn terse_lines(brief: &Brief, columns: usize) -> Vec<String> {
    let mut all = Vec::new();
    let mut line = |text: String| all.push(text + "\n");
    summary(&brief.headline.line(columns), &mut line);
    hangs(brief, &mut line);
    samples(brief, &mut line);
    losses(brief, &mut line);
    functions_and_waits(brief, &mut line, &mut |_, _| ());
    all
}

/// Whole lines as far as they fit, and the number of those that do not. Fits each budget of [`super::MIN_BUDGET`] bytes.
pub(super) fn least(brief: &Brief, budget: usize) -> String {
    let least = brief.terse(1);
    let mut all = terse_lines(&least, (budget - BESIDES_SUMMARY).min(TERSE_SUMMARY));
    let samples = all.iter_mut().find(|line| line.starts_with("samples: "));
    if let (Some(line), Some(event)) = (samples, &least.event) {
        // The whole line may be too long for the budget.
        *line = format!("samples: {} of {}\n", event.samples, cut(&event.name, LEAST_NAME));
    }
    let mut places = 0;
    place(brief, &mut |_| places += 1);
    let all_facts = least.left_off + places + all.len() as u64;
    // The number of digits only shrinks with the number of facts.
    let room = budget - "budget too small; ".len() - left_off_line(all_facts).len();
    let mut text = String::new();
    let mut shown = 0;
    for line in all {
        if text.len() + line.len() <= room {
            text += &line;
            shown += 1;
        }
    }
    text + "budget too small; " + &left_off_line(all_facts - shown)
}

/// A name of others, cut to so many characters, as it may be printed.
fn cut(name: &str, max: usize) -> String {
    shortened(&escaped(name), max)
}

fn escaped(name: &str) -> String {
    OutsideText::new(name).escaped().into_owned()
}

fn lines(brief: &Brief) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |text: String| lines.push(text + "\n");
    summary(&brief.summary, &mut line);
    hangs(brief, &mut line);
    head(brief, &mut line);
    functions_and_waits(brief, &mut line, &mut path);
    tasks(brief, &mut line);
    critical_path(brief, &mut line);
    rest(brief, &mut line);
    lines
}

fn summary(text: &str, line: &mut impl FnMut(String)) {
    if !text.is_empty() {
        line(format!("in short: {text}"));
    }
}

/// Threads that wait all the time, and the holders of the locks.
fn hangs(brief: &Brief, line: &mut impl FnMut(String)) {
    let held = brief.waits.iter().flat_map(|waits| &waits.held.first);
    held.for_each(|held| line(escaped(held)));
}

/// Functions, and after them the hottest path; waits come first where threads mostly wait.
fn functions_and_waits<L: FnMut(String)>(
    brief: &Brief,
    line: &mut L,
    path: &mut dyn FnMut(&Brief, &mut L),
) {
    let waits_first = brief.waits.as_ref().filter(|waits| waits.come_first());
    let waits_last = brief.waits.as_ref().filter(|waits| !waits.come_first());
    if let Some(waits) = waits_first {
        self::waits(waits, line);
    }
    functions(brief, line);
    path(brief, line);
    if let Some(waits) = waits_last {
        self::waits(waits, line);
    }
}

fn head(brief: &Brief, line: &mut impl FnMut(String)) {
    place(brief, line);
    samples(brief, line);
    let others = brief.other_events.first.iter();
    let others: Vec<_> =
        others.map(|it| format!("{} of {}", it.samples, escaped(&it.name))).collect();
    if !others.is_empty() {
        line(format!("other events: {}", others.join(", ")));
    }
    losses(brief, line);
}

/// The recording, its command and its machine.
fn place(brief: &Brief, line: &mut impl FnMut(String)) {
    let recorded = &brief.recorded;
    line(format!("recording: {}", escaped(&recorded.path)));
    if !recorded.command.is_empty() {
        line(format!("command: {}", escaped(&recorded.command)));
    }
    let mut machine = Vec::new();
    machine.extend(recorded.cpus.map(|cpus| counted(cpus.into(), "CPU")));
    machine.extend((!recorded.os_release.is_empty()).then(|| escaped(&recorded.os_release)));
    machine.extend((!recorded.hostname.is_empty()).then(|| escaped(&recorded.hostname)));
    if !machine.is_empty() {
        line(format!("machine: {}", machine.join(", ")));
    }
}

fn samples(brief: &Brief, line: &mut impl FnMut(String)) {
    let time =
        brief.recorded.sampled_ns.map(|ns| format!(" in {}", duration(ns))).unwrap_or_default();
    match &brief.event {
        Some(event) => line(format!(
            "samples: {} of {}{time} (period {}; {})",
            event.samples,
            escaped(&event.name),
            event.period,
            event.precision.text()
        )),
        None => line("samples: none".to_owned()),
    }
}

/// Losses, and doubts about the numbers.
fn losses(brief: &Brief, line: &mut impl FnMut(String)) {
    let lost = brief.losses.text.as_deref().map(|text| text.trim_start_matches("Lost: "));
    line(format!("lost: {}", lost.unwrap_or("nothing")));
    for warning in &brief.warnings.first {
        line(format!("warning: {}", escaped(warning)));
    }
    let hidden = brief.warnings.count - brief.warnings.first.len();
    if hidden > 0 {
        line(format!("more warnings: {hidden}"));
    }
    for handle in &brief.shared_handles {
        line(format!("warning: several functions have the handle {handle}: give their names"));
    }
}

/// `name (binary)`.
fn name(function: &Function) -> String {
    format!("{} ({})", escaped(&function.name), escaped(&function.binary))
}

/// `45.10% ±2.00`.
fn share(share: &Share) -> String {
    let width = share.low_percent.zip(share.high_percent).map(|(low, high)| (high - low) / 2.0);
    let interval = width.map(|width| format!(" ±{width:.2}")).unwrap_or_default();
    format!("{:.2}%{interval}", share.percent)
}

fn functions(brief: &Brief, line: &mut impl FnMut(String)) {
    let mut list = |title: &str, all: &[FunctionShare], count: usize, by_total: bool| {
        if all.is_empty() {
            return;
        }
        line(format!("{title} ({} of {count}):", all.len()));
        for row in all {
            let (own, total) = (share(&row.own), share(&row.total));
            let shares = match by_total {
                true => format!("total {total}, self {own}"),
                false => format!("self {own}, total {total}"),
            };
            let marks = match (row.inlined, row.kernel) {
                (true, _) => " inlined",
                (_, true) => " kernel",
                _ => "",
            };
            line(format!("  {} {shares} {}{marks}", row.function.handle, name(&row.function)));
        }
    };
    list("functions by self", &brief.functions.first, brief.functions.count, false);
    list("functions by total", &brief.totals.first, brief.totals.count, true);
}

fn path(brief: &Brief, line: &mut impl FnMut(String)) {
    let Some(path) = brief.hottest_path.as_ref().filter(|path| !path.innermost.is_empty()) else {
        return;
    };
    let shown = path.innermost.iter().map(|step| step.times).sum::<usize>();
    line(format!(
        "hottest path, {:.2}% (the innermost {shown} of {}, caller first):",
        path.percent,
        counted(path.functions as u64, "function")
    ));
    for step in &path.innermost {
        let times = if step.times > 1 { format!(" {} times", step.times) } else { String::new() };
        let (handle, name) = (&step.function.handle, name(&step.function));
        line(format!("  {handle} {:.2}% {name}{times}", step.percent));
    }
}

fn critical_path(brief: &Brief, line: &mut impl FnMut(String)) {
    let Some(path) = brief.critical_path.as_ref().filter(|path| !path.pieces.first.is_empty())
    else {
        return;
    };
    let (shown, count) = (path.pieces.first.len(), path.pieces.count);
    let length = duration(path.duration_ns);
    line(format!("critical path of {}, {length} ({shown} of {count}):", escaped(&path.of)));
    for piece in &path.pieces.first {
        let length = duration(piece.duration_ns);
        line(format!("  {:.2}% {length} {}", piece.percent, escaped(&piece.what)));
    }
}

fn tasks(brief: &Brief, line: &mut impl FnMut(String)) {
    if !brief.processes.first.is_empty() {
        line(format!("processes ({} of {}):", brief.processes.first.len(), brief.processes.count));
    }
    for process in &brief.processes.first {
        line(format!(
            "  {:.2}% process {} {}",
            process.percent,
            process.pid,
            escaped(&process.comm)
        ));
    }
    if !brief.threads.first.is_empty() {
        line(format!("threads ({} of {}):", brief.threads.first.len(), brief.threads.count));
    }
    for thread in &brief.threads.first {
        let (comm, pid) = (escaped(&thread.comm), thread.pid);
        line(format!("  {} {:.2}% {comm} of process {pid}", thread.handle, thread.percent));
    }
    if !brief.cgroups.first.is_empty() {
        line(format!("cgroups ({} of {}):", brief.cgroups.first.len(), brief.cgroups.count));
    }
    for cgroup in &brief.cgroups.first {
        line(format!("  {:.2}% {}", cgroup.percent, escaped(&cgroup.path)));
    }
}

fn waits(waits: &WaitFacts, line: &mut impl FnMut(String)) {
    line(format!(
        "threads were on CPUs for {} in {} of recorded switches",
        duration(waits.cpu_ns),
        duration(waits.recorded_ns)
    ));
    let classes = waits.classes.first.iter();
    let classes: Vec<_> = classes
        .map(|sum| {
            format!("{} {} in {}", sum.class, duration(sum.wait_ns), counted(sum.count, "wait"))
        })
        .collect();
    if !classes.is_empty() {
        line(format!("waits by class: {}", classes.join(", ")));
    }
    if !waits.longest.first.is_empty() {
        line("longest waits:".to_owned());
    }
    for wait in &waits.longest.first {
        line(format!("  {}", long_wait(wait)));
    }
    if !waits.locks.first.is_empty() {
        line(format!("locks ({} of {}):", waits.locks.first.len(), waits.locks.count));
    }
    for lock in &waits.locks.first {
        let wall = lock.wall_percent.map(|share| format!(", {share:.2}% of wall time"));
        let site = lock.call_site.as_ref();
        let site = site.map(|site| format!(", wanted by {} {}", site.handle, name(site)));
        let holder =
            lock.holder.as_ref().map(|holder| format!(", released by {}", escaped(holder)));
        line(format!(
            "  {} in {}, longest {}{}: {}{}{}",
            duration(lock.wait_ns),
            counted(lock.count, "wait"),
            duration(lock.longest_ns),
            wall.unwrap_or_default(),
            escaped(&lock.lock),
            site.unwrap_or_default(),
            holder.unwrap_or_default()
        ));
    }
}

fn thread(thread: &Thread) -> String {
    format!("{} {}", thread.handle, escaped(&thread.comm))
}

/// ` in f-… callee < f-… caller`.
fn stack(functions: &[Function]) -> String {
    let mut text = String::new();
    for (at, function) in functions.iter().enumerate() {
        let before = if at == 0 { " in" } else { " <" };
        write!(text, "{before} {} {}", function.handle, escaped(&function.name))
            .expect("a string takes all");
    }
    text
}

fn long_wait(wait: &LongWait) -> String {
    let mut marks = String::new();
    for (is_so, mark) in [
        (wait.begun_before, ", began before the recording"),
        (wait.open, ", until its end"),
        (wait.lossy, ", records lost meanwhile"),
    ] {
        marks += if is_so { mark } else { "" };
    }
    format!(
        "{} {} {} {}{}{marks}{}{}",
        wait.handle,
        duration(wait.duration_ns),
        thread(&wait.thread),
        wait.class,
        wait.object.as_ref().map_or_else(String::new, |it| format!(" for {}", escaped(it))),
        stack(&wait.stack),
        wait.woken_by.as_ref().map(woken_by).unwrap_or_default()
    )
}

fn woken_by(waker: &WokenBy) -> String {
    match waker.from_interrupt {
        true => format!("; woken by an interrupt{}", stack(&waker.stack)),
        false => format!("; woken by {}{}", thread(&waker.thread), stack(&waker.stack)),
    }
}

fn rest(brief: &Brief, line: &mut impl FnMut(String)) {
    if !brief.missing.first.is_empty() {
        line("missing:".to_owned());
    }
    for missing in &brief.missing.first {
        line(format!("  {}: {}", escaped(&missing.lack), escaped(&missing.command)));
    }
    if !brief.next.first.is_empty() {
        line("next:".to_owned());
    }
    for command in &brief.next.first {
        line(format!("  {}", escaped(command)));
    }
}
