//! One line that a reader should see first: busy CPUs, the hottest functions, the waits that cost most, losses.

use super::facts::main_event;
use super::name_of;
use super::waits::stack;
use crate::held_up::{HeldUp, HeldUpWaits, recorders};
use crate::short_name::shorten;
use crate::stdio::loss_line;
use crate::units::duration;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;
use whit_profile::model::{EventId, FunctionId, NodeId, Profile};
use whit_profile::switches::{LockSites, Switches, WaitClass};
use whit_types::Pid;

/// Functions, and waits.
const MAX_EACH: usize = 3;
/// Functions of a wait's call stack.
const MAX_FRAMES: usize = 2;
/// Functions and waits of a line, the most first.
const COUNTS: [(usize, usize); 5] = [(3, 3), (2, 2), (2, 1), (1, 1), (1, 0)];
/// The same where threads mostly wait: then waits tell more.
const COUNTS_OF_WAITING: [(usize, usize); 5] = [(3, 3), (2, 2), (1, 2), (1, 1), (0, 1)];
/// Columns of names in a line, the most first.
const NAMES: [usize; 5] = [48, 32, 24, 20, 16];
/// Columns of names where one function and one wait fit no other way.
const LEAST_NAME: usize = 12;

/// The facts of the line. Names are exact.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Headline {
    /// CPUs that threads kept busy on average; `None` where neither switches nor the samples of a clock say it.
    pub busy_cpus: Option<f64>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// The functions with the largest shares of their own, without the idle task and the recorder.
    pub functions: Vec<HotFunction>,
    /// The call sites with the longest sums of waits that held work up.
    pub waits: Vec<CostlyWait>,
    /// The losses in words; `None` where nothing was lost.
    pub lost: Option<String>,
    /// True where waits that held work up took longer than threads ran.
    #[serde(skip)]
    mostly_waits: bool,
}

/// A function with its share of the event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HotFunction {
    /// As it is shown.
    pub name: String,
    /// Between 0 and 1.
    pub share: f64,
}

/// All waits of one command at one call site.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CostlyWait {
    /// Name of the class.
    pub class: &'static str,
    /// Name of the threads, without the numbers of a pool.
    pub comm: String,
    /// The function that wants a lock, or else the functions that tell most of the call stack, callee first.
    pub functions: Vec<String>,
    /// Sum of the waits.
    pub wait_ns: u64,
    /// Number of the waits.
    pub count: u64,
}

impl Headline {
    /// The facts of a profile, and of the switches of the same recording.
    pub fn new(profile: &Profile, switches: Option<&Switches>) -> Headline {
        let switches = switches.filter(|switches| switches.sources.has_switches());
        let event = main_event(profile, switches);
        let own = recorders(profile);
        let waits = switches.map_or(Vec::new(), |switches| waits(profile, switches));
        let wait_ns: u64 = waits.iter().map(|wait| wait.wait_ns).sum();
        let cpu_ns: u64 = switches.iter().flat_map(|it| &it.rows).map(|row| row.sums.cpu_ns).sum();
        Headline {
            mostly_waits: wait_ns > cpu_ns,
            busy_cpus: busy_cpus(profile, switches, event),
            cpus: profile.recording.nr_cpus.map(|(online, _)| online),
            functions: event.map_or(Vec::new(), |event| functions(profile, event, &own)),
            waits,
            lost: loss_line(&profile.losses)
                .map(|line| line.trim_start_matches("Lost: ").to_owned()),
        }
    }
}

impl Headline {
    /// The facts in one line of at most so many columns, without losses: functions and waits as far as they fit.
    /// Names are escaped.
    pub fn line(&self, width: usize) -> String {
        let counts = if self.mostly_waits { COUNTS_OF_WAITING } else { COUNTS };
        let forms = counts.into_iter().chain([(0, 0)]).flat_map(|counts| {
            let least = (counts == (1, 1)).then_some(LEAST_NAME);
            NAMES.into_iter().chain(least).map(move |name| self.form(counts, name))
        });
        let fits = |line: &String| line.chars().count() <= width;
        forms.into_iter().find(fits).unwrap_or_default()
    }

    fn form(&self, (functions, waits): (usize, usize), name: usize) -> String {
        let short = |text: &str| shorten(&whit_types::escape(text), name).into_owned();
        let mut parts = Vec::new();
        if let Some(busy) = self.busy_cpus {
            let of = self.cpus.map(|cpus| format!(" of {cpus}")).unwrap_or_default();
            parts.push(format!("{busy:.1}{of} CPUs busy"));
        }
        let function = |it: &HotFunction| format!("{} {:.0}%", short(&it.name), 100.0 * it.share);
        let functions: Vec<_> = self.functions.iter().take(functions).map(function).collect();
        let functions = (!functions.is_empty()).then(|| format!("hot: {}", functions.join(", ")));
        let wait = |it: &CostlyWait| {
            let site = it.functions.first().map(|site| format!(" in {}", short(site)));
            format!("{} {}{}", it.class, duration(it.wait_ns), site.unwrap_or_default())
        };
        let waits: Vec<_> = self.waits.iter().take(waits).map(wait).collect();
        let waits = (!waits.is_empty()).then(|| waits.join(", "));
        let facts = if self.mostly_waits { [waits, functions] } else { [functions, waits] };
        parts.extend(facts.into_iter().flatten());
        parts.join("; ")
    }
}

fn busy_cpus(
    profile: &Profile,
    switches: Option<&Switches>,
    event: Option<EventId>,
) -> Option<f64> {
    let (busy_ns, all_ns) = match switches {
        Some(switches) => {
            let cpu = |sums: &whit_profile::switches::SwitchSums| {
                sums.cpu_ns as f64 + sums.lossy_cpu_ns as f64
            };
            (switches.rows.iter().map(|row| cpu(&row.sums)).sum(), switches.recorded_ns)
        }
        None => {
            let event =
                event.filter(|event| is_clock(profile.events[event.index()].name.exact()))?;
            let info = &profile.recording;
            let span_ns =
                info.first_sample.zip(info.last_sample).map(|(from, to)| to.since(from))?;
            let rows = profile.rows.iter().filter(|row| row.event == event);
            let rows = rows.filter(|row| profile.threads[row.thread.index()].pid != Pid(0));
            (rows.map(|row| row.period as f64).sum::<f64>(), span_ns)
        }
    };
    (all_ns > 0).then(|| busy_ns / all_ns as f64)
}

/// Events whose period is time on a CPU.
fn is_clock(name: &str) -> bool {
    name.starts_with("cpu-clock") || name.starts_with("task-clock")
}

fn functions(profile: &Profile, event: EventId, own: &FxHashSet<Pid>) -> Vec<HotFunction> {
    let mut sums: FxHashMap<FunctionId, u64> = FxHashMap::default();
    let mut total = 0u64;
    for row in profile.rows.iter().filter(|row| row.event == event) {
        let pid = profile.threads[row.thread.index()].pid;
        if pid == Pid(0) || own.contains(&pid) {
            continue;
        }
        total = total.saturating_add(row.period);
        if let Some(function) = function_of(profile, row.node) {
            let sum = sums.entry(function).or_default();
            *sum = sum.saturating_add(row.period);
        }
    }
    let known =
        sums.into_iter().filter(|(id, sum)| profile.functions[id.index()].known && *sum > 0);
    let mut known: Vec<_> = known.collect();
    known.sort_by_key(|(id, sum)| (Reverse(*sum), *id));
    let hot = |(id, sum): (FunctionId, u64)| HotFunction {
        name: name_of(&profile.functions[id.index()].name),
        share: sum as f64 / total as f64,
    };
    known.into_iter().take(MAX_EACH).map(hot).collect()
}

fn function_of(profile: &Profile, node: NodeId) -> Option<FunctionId> {
    let node = profile.nodes.get(node.index())?;
    Some(profile.frames[node.frame.index()].function)
}

/// Waits of threads with one name, apart from a number at its end.
struct Sum<'p> {
    /// The name of all of them, or the part that they share.
    comm: &'p str,
    ns: u64,
    count: u64,
}

fn waits(profile: &Profile, switches: &Switches) -> Vec<CostlyWait> {
    let nodes = switches.rows.iter().map(|row| row.node);
    let (held_up, locks) =
        (HeldUp::new(profile, switches), LockSites::of(profile, nodes, [].into_iter()));
    let mut sums: FxHashMap<(WaitClass, &str, Vec<String>), Sum<'_>> = FxHashMap::default();
    for row in &switches.rows {
        let Some(HeldUpWaits { class, ns, count }) = held_up.waits(row) else { continue };
        let wanted = locks.wait(row.node).and_then(|site| site.caller.or(site.kernel));
        let site = match wanted {
            Some(function) => vec![name_of(&profile.functions[function.index()].name)],
            None => {
                let path = stack(profile, row.node).into_iter().take(MAX_FRAMES);
                path.map(|function| function.name).collect()
            }
        };
        let comm = profile.comms[row.comm.index()].exact();
        // Threads of a pool have one name and numbers.
        let pool = comm.trim_end_matches(|c: char| c.is_ascii_digit());
        let sum = sums.entry((class, pool, site)).or_insert_with(|| Sum { comm, ns: 0, count: 0 });
        sum.ns = sum.ns.saturating_add(ns);
        sum.count = sum.count.saturating_add(count);
        if sum.comm != comm {
            sum.comm = pool;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| (b.1.ns, b.1.count).cmp(&(a.1.ns, a.1.count)).then_with(|| a.0.cmp(&b.0)));
    let wait = |((class, _, functions), sum): ((WaitClass, &str, _), Sum<'_>)| CostlyWait {
        class: class.name(),
        comm: name_of(&sum.comm.into()),
        functions,
        wait_ns: sum.ns,
        count: sum.count,
    };
    sums.into_iter().take(MAX_EACH).map(wait).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};
    use crate::hists::Filters;
    use crate::switches::{StackTree, Stacks};
    use whit_profile::switches::{Sources, SwitchRow, SwitchSums};
    use whit_types::TimestampNs;

    const SERVER: Who<'static> = Who { comm: "server", pid: 7, tid: 7, cpu: None };
    const IDLE: Who<'static> = Who { comm: "swapper", pid: 0, tid: 0, cpu: None };
    const READER: Who<'static> = Who { comm: "whit-reader-0", pid: 5, tid: 6, cpu: None };
    const KERNEL: &str = "[kernel.kallsyms]";

    /// A server with 10 ms in four functions, the idle task and the recorder.
    fn profile() -> Profile {
        let mut builder = Builder::default();
        let event = builder.event("cpu-clock");
        for (number, name) in ["parse", "hash", "copy", "rare"].into_iter().enumerate() {
            let chain = [at("main", "server", 1), at(name, "server", 10 + number as u64)];
            builder.sample(event, SERVER, &chain, 4_000_000 - number as u64 * 1_000_000);
        }
        builder.sample(event, IDLE, &[at("halt", KERNEL, 1).kernel()], 90_000_000);
        builder.sample(event, READER, &[at("drain", "whit", 1)], 50_000_000);
        let mut profile = builder.profile;
        profile.recording.nr_cpus = Some((4, 8));
        profile.recording.first_sample = Some(TimestampNs(1_000_000));
        profile.recording.last_sample = Some(TimestampNs(41_000_000));
        profile
    }

    #[test]
    fn the_idle_task_and_the_recorder_are_no_hot_functions() {
        let headline = Headline::new(&profile(), None);
        let shares: Vec<_> =
            headline.functions.iter().map(|it| (it.name.as_str(), it.share)).collect();
        assert_eq!(shares, [("parse", 0.4), ("hash", 0.3), ("copy", 0.2)]);
        // 10 ms of the server and 50 ms of the recorder in 40 ms.
        assert_eq!((headline.busy_cpus, headline.cpus), (Some(1.5), Some(4)));
        assert_eq!((headline.waits, headline.lost), (vec![], None));
    }

    #[test]
    fn a_line_has_what_its_width_leaves() {
        let mut headline = Headline::new(&profile(), None);
        assert_eq!(headline.line(80), "1.5 of 4 CPUs busy; hot: parse 40%, hash 30%, copy 20%");
        assert_eq!(headline.line(50), "1.5 of 4 CPUs busy; hot: parse 40%, hash 30%");
        assert_eq!(
            (headline.line(20).as_str(), headline.line(5).as_str()),
            ("1.5 of 4 CPUs busy", "")
        );
        headline.functions[0].name = "a_function_with_a_long\u{1b}_name".into();
        headline.waits.push(CostlyWait {
            class: "lock",
            comm: "server".into(),
            functions: vec!["take".into(), "main".into()],
            wait_ns: 42_000_000,
            count: 4,
        });
        assert_eq!(
            headline.line(80),
            "1.5 of 4 CPUs busy; hot: a_function_with… 40%, hash 30%; lock 42.0 ms in take"
        );
        headline.mostly_waits = true;
        assert_eq!(
            headline.line(80),
            "1.5 of 4 CPUs busy; lock 42.0 ms in take; hot: a_function_with… 40%, hash 30%"
        );
        assert_eq!(headline.line(50), "1.5 of 4 CPUs busy; lock 42.0 ms in take");
    }

    #[test]
    fn other_events_say_nothing_of_cpus_and_losses_are_named() {
        let mut profile = profile();
        profile.events[0].name = "cycles".into();
        profile.losses.lost_samples = 3;
        let headline = Headline::new(&profile, None);
        assert_eq!(
            (headline.busy_cpus, headline.lost),
            (None, Some("3 samples, time unknown".to_owned()))
        );
        assert_eq!(Headline::new(&Profile::default(), None).functions, []);
    }

    #[test]
    fn waits_of_idle_loops_the_recorder_and_the_kernel_cost_nothing() {
        let mut builder = Builder::default();
        let event = builder.event("cpu-clock");
        let libc = |name: &str, address| at(name, "libc.so.6", address);
        let mut row = |who: Who<'_>, chain: &[crate::builder::At], wait_ns| {
            builder.sample(event, who, chain, 1);
            let sample = *builder.profile.rows.last().expect("it was just added");
            let sums = SwitchSums {
                sync_count: 2,
                sync_wait_ns: wait_ns,
                cpu_ns: 1,
                ..SwitchSums::default()
            };
            SwitchRow {
                thread: sample.thread,
                comm: sample.comm,
                node: sample.node,
                object: None,
                brings: Default::default(),
                block: 0,
                sums,
            }
        };
        let lock =
            [at("main", "server", 1), at("take", "server", 2), libc("pthread_mutex_lock", 3)];
        let poll = [at("main", "server", 1), libc("epoll_wait", 4)];
        let kthread = [at("kthread", KERNEL, 5).kernel(), at("io_schedule", KERNEL, 6).kernel()];
        let second = Who { tid: 8, comm: "server2", ..SERVER };
        let rows = vec![
            row(SERVER, &lock, 30),
            row(second, &lock, 12),
            row(SERVER, &poll, 900),
            row(READER, &lock, 800),
            row(Who { comm: "jbd2", pid: 3, tid: 3, cpu: None }, &kthread, 700),
        ];
        let switches = Switches {
            rows,
            recorded_ns: 10,
            sources: Sources { records: true, stacks: true, ..Sources::default() },
            ..Switches::default()
        };
        let headline = Headline::new(&builder.profile, Some(&switches));
        assert_eq!(
            headline.waits,
            [CostlyWait {
                class: "lock",
                comm: "server".into(),
                functions: vec!["take".into()],
                wait_ns: 42,
                count: 4,
            }]
        );
        assert_eq!(headline.busy_cpus, Some(0.5));
        // The terminal's waits come in this order, too.
        let filters = Filters::default();
        let stacks = Stacks::new(&builder.profile, &filters, true);
        let tree = StackTree::of_waits(stacks, &switches);
        let name = |node: &u32| tree.nodes[*node as usize].place.name(&builder.profile).to_string();
        let roots: Vec<_> = tree.roots.iter().map(name).collect();
        assert_eq!(roots, ["pthread_mutex_lock", "epoll_wait", "io_schedule"]);
        // A hang: no wait ended, and those for work are no part of it.
        let mut hung = switches;
        for row in &mut hung.rows {
            row.sums = SwitchSums {
                throughout_count: 1,
                throughout_wait_ns: row.sums.sync_wait_ns,
                open_blocked_ns: row.sums.sync_wait_ns,
                ..SwitchSums::default()
            };
        }
        let waits = Headline::new(&builder.profile, Some(&hung)).waits;
        let costs: Vec<_> = waits.iter().map(|wait| (wait.class, wait.wait_ns)).collect();
        assert_eq!(costs, [("lock", 42)]);
    }
}
