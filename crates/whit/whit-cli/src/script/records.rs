//! Options of `whit script` on records that are no samples, and on events that switch.

use crate::failure::bail_usage;
use crate::heading;
use anyhow::Result;
use whit_perfdata::attr::SampleType;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type as kind;
use whit_profile::script::{EventSwitches, RecordKinds};
use whit_types::OutsideText;

/// Records that are printed beside samples, and events that begin and end the printing.
#[derive(clap::Args, Debug)]
pub(super) struct RecordArgs {
    /// Print new command names, and begins and ends of threads
    #[arg(long, help_heading = heading::OUTPUT)]
    show_task_events: bool,
    /// Print mappings of memory
    #[arg(long, help_heading = heading::OUTPUT)]
    show_mmap_events: bool,
    /// Print context switches
    #[arg(long, help_heading = heading::OUTPUT)]
    show_switch_events: bool,
    /// Print namespaces of processes
    #[arg(long, help_heading = heading::OUTPUT)]
    show_namespace_events: bool,
    /// Print cgroups
    #[arg(long, help_heading = heading::OUTPUT)]
    show_cgroup_events: bool,
    /// Print losses
    #[arg(long, help_heading = heading::OUTPUT)]
    show_lost_events: bool,
    /// Print BPF programs that were loaded, and code that the kernel made
    #[arg(long, help_heading = heading::OUTPUT)]
    show_bpf_events: bool,
    /// Print samples from a sample of this event on
    #[arg(long, value_name = "EVENT", help_heading = heading::FILTER)]
    switch_on: Option<String>,
    /// Print samples up to a sample of this event
    #[arg(long, value_name = "EVENT", help_heading = heading::FILTER)]
    switch_off: Option<String>,
    /// Print the samples of --switch-on and --switch-off that switch, too
    #[arg(long, help_heading = heading::FILTER)]
    show_on_off_events: bool,
}

impl RecordArgs {
    /// The types of records that are printed.
    pub(super) fn kinds(&self) -> RecordKinds {
        let lists: [(bool, &[u32]); 7] = [
            (self.show_task_events, &[kind::COMM, kind::FORK, kind::EXIT]),
            (self.show_mmap_events, &[kind::MMAP, kind::MMAP2]),
            (self.show_switch_events, &[kind::SWITCH, kind::SWITCH_CPU_WIDE]),
            (self.show_namespace_events, &[kind::NAMESPACES]),
            (self.show_cgroup_events, &[kind::CGROUP]),
            (self.show_lost_events, &[kind::LOST]),
            (self.show_bpf_events, &[kind::KSYMBOL, kind::BPF_EVENT]),
        ];
        let shown = lists.iter().filter(|(is_shown, _)| *is_shown);
        RecordKinds::of(&shown.flat_map(|(_, kinds)| kinds.iter().copied()).collect::<Vec<_>>())
    }

    /// The events between which samples are printed.
    ///
    /// # Errors
    /// The recording has no event of such a name, or its samples have no times.
    pub(super) fn switches(&self, recording: &Recording) -> Result<EventSwitches> {
        let find = |name: &Option<String>, option: &str| {
            let Some(name) = name else { return Ok(None) };
            let event = recording.events.iter().position(|event| event.name == *name);
            let Some(event) = event else {
                let names: Vec<_> = recording
                    .events
                    .iter()
                    .map(|event| OutsideText::new(&*event.name).escaped().into_owned())
                    .collect();
                bail_usage!(
                    "{option}: the recording has no event `{name}`; its events are {}",
                    names.join(", ")
                );
            };
            if !recording.events[event].attr.sample_type.contains(SampleType::TIME) {
                bail_usage!("{option} needs samples with times: record again with -T");
            }
            Ok(Some(event))
        };
        let on = find(&self.switch_on, "--switch-on")?;
        let off = find(&self.switch_off, "--switch-off")?;
        Ok(EventSwitches { on, off, shows_both: self.show_on_off_events })
    }
}
