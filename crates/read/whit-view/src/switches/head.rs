//! The lines above the views: the recorded targets and times, and the uncertain parts.

use super::SwitchViewOptions;
use super::columns::seconds;
use super::stacks::Stacks;
use crate::hists::Filters;
use crate::units::{counted, duration};
use whit_profile::model::Profile;
use whit_profile::switches::{SwitchSums, Switches};

/// The lines above the views: the switches, and their uncertain parts.
pub fn summary_lines(
    profile: &Profile,
    switches: &Switches,
    options: &SwitchViewOptions,
) -> Vec<String> {
    let stacks = Stacks::new(profile, &options.filters, options.inline);
    let mut total = SwitchSums::default();
    stacks.rows(switches).for_each(|(_, row, _)| total.add(&row.sums));
    let mut lines = facts(profile, switches, &options.filters, &total);
    lines.extend(doubts(switches, &total));
    lines
}

/// The recorded targets and times, and how much of them has switches.
pub(crate) fn facts(
    profile: &Profile,
    switches: &Switches,
    filters: &Filters,
    total: &SwitchSums,
) -> Vec<String> {
    let sources = switches.sources;
    let recorded_by = [
        (sources.records, "switch events"),
        (sources.tracepoint, "sched:sched_switch"),
        (sources.wakeups, "wake-up events"),
    ];
    let recorded_by = recorded_by.into_iter().filter(|(is_there, _)| *is_there);
    let recorded_by: Vec<_> = recorded_by.map(|(_, name)| name).collect();
    let mut lines = vec![format!(
        "Context switches: {} ({} sync, {} preemption) in {} (from {})",
        total.count(),
        total.sync_count,
        total.preempt_count,
        duration(switches.recorded_ns),
        recorded_by.join(", "),
    )];
    if total.count() == 0 {
        let line = match chooses_a_part(profile, filters) {
            true => "No switch passes the options",
            false => "No thread was seen to leave its CPU",
        };
        lines.push(line.to_owned());
    }
    if total.new_count > 0 {
        lines.push(format!(
            "New threads: {}, which waited {} for their first run",
            total.new_count,
            seconds(total.new_wait_ns),
        ));
    }
    lines.push(match sources.samples {
        Some(event) => format!(
            "CPU time: {}, distributed over the samples of '{}'",
            seconds(total.cpu_ns),
            profile.events[event.index()].name
        ),
        None if total.cpu_ns == 0 => format!("CPU time: {}", seconds(0)),
        None => format!(
            "CPU time: {}, of which no sample says where it went (add -e cpu-clock or cycles)",
            seconds(total.cpu_ns)
        ),
    });
    // Without a switch there is no stack, with any other option.
    if !sources.stacks && total.count() > 0 {
        let advice = "No call stacks of switches were recorded: record with --engine=bpf --switch-events, or \
                      without BPF add -e software/period=1,name=cs,config=0x3/Duk -g";
        lines.push(advice.to_owned());
    }
    lines
}

/// True where options may be why nothing is there.
pub(crate) fn chooses_a_part(profile: &Profile, filters: &Filters) -> bool {
    profile.is_part || *filters != Filters::default()
}

/// The missing and uncertain parts.
pub(crate) fn doubts(switches: &Switches, total: &SwitchSums) -> Vec<String> {
    let (inconsistencies, windows) = (&switches.inconsistencies, &switches.loss_windows);
    let mut lines = Vec::new();
    if !windows.is_empty() {
        let stretches = match windows.len() {
            1 => "one stretch of time".to_owned(),
            count => format!("{count} stretches of time"),
        };
        lines.push(format!(
            "Lossy: {} ({}) and {} of CPU time touch {stretches} in which records are missing or a \
             switch-in was noticed late; they are in no other column of time",
            counted(total.lossy_count, "wait"),
            seconds(total.lossy_wait_ns),
            seconds(total.lossy_cpu_ns),
        ));
    }
    if total.open_count > 0 {
        lines.push(format!(
            "Open: {} whose beginning or end is not in the recording ({} of them in it); not in the wait \
             times",
            counted(total.open_count, "wait"),
            seconds(total.open_wait_ns),
        ));
    }
    if total.throughout_count > 0 {
        lines.push(format!(
            "Throughout: {}, blocked when recording began and when it ended ({}); not in the wait times",
            counted(total.throughout_count, "wait"),
            seconds(total.throughout_wait_ns),
        ));
    }
    for (count, text) in [
        (inconsistencies.missing_ins, "switches-out without the switch-in before"),
        (inconsistencies.missing_outs, "switches-in without the switch-out before"),
        (inconsistencies.stray_samples, "samples of threads that had switched out"),
        (switches.wakers_left_off, "wake-ups by more wakers than are told apart"),
    ] {
        if count > 0 {
            lines.push(format!("Not fitting: {count} {text}"));
        }
    }
    lines
}
