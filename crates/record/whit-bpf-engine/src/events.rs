//! The engine's own events, and how all events stand in the recording.

use whit_engine_api::event::{EventSpec, software};
use whit_engine_api::event_plan::EventPlan;
use whit_engine_api::open_event::{ConfiguredEvent, OpenEvent};
use whit_engine_api::rings::MappedRing;
use whit_events::PreciseIp;
use whit_perfdata::attr::{Attr, AttrFlags, ReadFormat, SampleType, pmu_type};
use whit_perfdata::feature::EventDesc;
use whit_perfdata::{blocked, off_cpu, packed};
use whit_types::CpuId;

use super::decoder::{BpfRecordDecoder, DecoderConfig};
use super::record_layout::Layout;
use super::switches::{ChannelConfig, Switches};
use super::traced::has_program;
use super::wakes::WakeFormat;

/// Name of switches in the recording: that of perf's own event.
pub const SWITCHES: &str = "context-switches";
/// Name of the programs' samples if perf's dumps of the same samples stand beside them. Samples of
/// switches are under [`SWITCHES`] as always.
pub const COMPARED: &str = "bpf-stacks";

/// Whether an event's overflows run the program. If switches are recorded, the dumps are perf's of the
/// same switches, for comparison.
pub(super) fn is_sampled(event: &ConfiguredEvent, switches: bool) -> bool {
    has_stacks(event) && !event.spec.is_tracepoint() && !(switches && has_dumps(event))
}

/// Whether its samples get stacks.
fn has_stacks(event: &ConfiguredEvent) -> bool {
    !event.is_side_band && !event.is_bpf_output && event.spec.takes_chains()
}

/// Changes an event so that it can run a program.
pub(crate) fn configure(plan: &EventPlan, event: &mut ConfiguredEvent) {
    let attr = &mut event.attr;
    make_precise(event.spec.event.precise_ip, attr);
    // Programs emit switches for less.
    attr.flags = attr.flags.with(AttrFlags::CONTEXT_SWITCH, false);
    let leaves_others_out = event.spec.is_of_cpus || plan.target.chosen().is_some();
    if leaves_others_out && !event.is_side_band {
        // An exec does not concern events of CPUs.
        attr.flags = attr.flags.with(AttrFlags::ENABLE_ON_EXEC, false);
    }
}

/// A precise event has the registers of an earlier moment than its interrupt. The kernel gives it a program that takes
/// stacks only where it takes the whole call chain at that moment itself, for all samples (`perf_event_set_bpf_handler`).
/// So an event is precise if the user asks for a level. `:P`, the greatest precision that there is, is level 0.
fn make_precise(precision: PreciseIp, attr: &mut Attr) {
    let PreciseIp::Level(1..) = precision else {
        attr.set_precise_ip(0);
        return;
    };
    attr.sample_type |= SampleType::CALLCHAIN;
    let flags = attr.flags.with(AttrFlags::EXCLUDE_CALLCHAIN_KERNEL, false);
    attr.flags = flags.with(AttrFlags::EXCLUDE_CALLCHAIN_USER, false);
}

/// The event by which the programs write.
pub(crate) fn bpf_output(plan: &EventPlan) -> ConfiguredEvent {
    let spec = EventSpec::new("bpf-output", pmu_type::SOFTWARE, software::BPF_OUTPUT);
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME | SampleType::RAW;
    // The kernel adds the cgroup of the thread that runs, for less than a program could.
    let sample_type = sample_type.with(SampleType::CGROUP, plan.tracking.cgroups);
    let mut attr = Attr {
        pmu_type: spec.event.pmu_type,
        config: spec.event.config[0],
        sample_period_or_freq: 1,
        sample_type,
        // Samples that do not fit are counted here.
        read_format: ReadFormat::ID | ReadFormat::LOST,
        flags: AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    if let Some(clock) = plan.clock {
        attr.flags |= AttrFlags::USE_CLOCKID;
        attr.clockid = clock.0;
    }
    ConfiguredEvent { is_side_band: true, is_bpf_output: true, ..ConfiguredEvent::new(spec, attr) }
}

/// The event that records mappings, forks and execs alone, and wakes at once.
pub(crate) fn follow_event(inherit: bool) -> ConfiguredEvent {
    let spec = EventSpec::side_band();
    let attr = Attr {
        pmu_type: spec.event.pmu_type,
        config: spec.event.config[0],
        sample_period_or_freq: 1,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
        flags: AttrFlags::SAMPLE_ID_ALL
            | AttrFlags::MMAP
            | AttrFlags::MMAP2
            | AttrFlags::COMM
            | AttrFlags::COMM_EXEC
            | AttrFlags::TASK
            | AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_HV
            | AttrFlags::WATERMARK,
        wakeup: 1,
        ..Attr::default()
    };
    let attr = Attr { flags: attr.flags.with(AttrFlags::INHERIT, inherit), ..attr };
    ConfiguredEvent { is_side_band: true, ..ConfiguredEvent::new(spec, attr) }
}

/// Whether perf writes samples of its own, with dumps of stacks.
fn has_dumps(sampled: &ConfiguredEvent) -> bool {
    sampled.attr.sample_type.contains(SampleType::STACK_USER)
}

/// The records that the engine makes beside samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Described<'a> {
    pub(crate) switches: bool,
    /// Waits, as samples.
    pub(crate) off_cpu: bool,
    /// The same by a program; 0 for none.
    pub(crate) off_cpu_period_ns: u64,
    /// Switches are packed.
    pub(crate) packs: bool,
    pub(crate) wakes: Option<&'a WakeFormat>,
}

impl Described<'_> {
    /// The event of waits.
    fn waits(&self, layout: Layout, bpf_output: &Attr) -> Option<EventDesc> {
        let mut event = off_cpu::describe(bpf_output);
        if self.off_cpu_period_ns == 0 {
            return self.off_cpu.then_some(event);
        }
        // The programs' samples have the fields of their other samples.
        event.attr.sample_type = layout.sample_type();
        event.attr.sample_period_or_freq = self.off_cpu_period_ns;
        Some(event)
    }
}

/// Descriptions of events in the recording: sampled ones with the fields of their samples, the bpf-output event
/// as the event of switches. With dumps of stacks, the sampled one is perf's, and the bpf-output event stands
/// for the samples of the programs.
pub(crate) fn describe(
    descriptions: &mut Vec<EventDesc>,
    events: &[OpenEvent],
    described: Described<'_>,
) {
    let Described { switches, packs, wakes, .. } = described;
    let Some(bpf_output) = events.iter().find(|event| event.event.is_bpf_output) else { return };
    let layout = Layout::new(&bpf_output.event.attr);
    let sample_type = layout.sample_type();
    let mut sampled =
        events.iter().map(|event| &event.event).filter(|event| is_sampled(event, switches));
    let dumped = sampled.find(|event| has_dumps(event));
    for (description, event) in descriptions.iter_mut().zip(events) {
        let attr = &mut description.attr;
        if has_dumps(&event.event) {
            // As perf writes them.
        } else if has_stacks(&event.event) {
            let has_raw = attr.sample_type.contains(SampleType::RAW);
            attr.sample_type = sample_type.with(SampleType::RAW, has_raw);
        } else if let (true, Some(dumped)) = (event.event.is_bpf_output, dumped) {
            attr.pmu_type = dumped.attr.pmu_type;
            attr.config = dumped.attr.config;
            attr.sample_type = sample_type;
            let excludes = dumped.attr.flags.contains(AttrFlags::EXCLUDE_KERNEL);
            attr.flags = attr.flags.with(AttrFlags::EXCLUDE_KERNEL, excludes);
            description.name = COMPARED.to_owned();
        } else if event.event.is_bpf_output && switches {
            attr.config = software::CONTEXT_SWITCHES;
            attr.sample_type = layout.raw_sample_type();
            attr.flags |= AttrFlags::CONTEXT_SWITCH;
            description.name = SWITCHES.to_owned();
        }
    }
    descriptions.extend(wakes.map(|format| format.describe(layout, &bpf_output.event.attr)));
    let blocked = || blocked::describe(&bpf_output.event.attr, layout.raw_sample_type());
    descriptions.extend(switches.then(blocked));
    descriptions.extend(described.waits(layout, &bpf_output.event.attr));
    // Behind all others, which readers of packed samples then have without it.
    let carrier = switch_carrier(&bpf_output.event.attr);
    descriptions.extend((packs && packed::can_carry(&carrier)).then(|| packed::describe(&carrier)));
}

/// The attributes of records of switches: those of the bpf-output event, without the cgroup.
fn switch_carrier(bpf_output: &Attr) -> Attr {
    let sample_type = bpf_output.sample_type.with(SampleType::CGROUP, false);
    Attr { sample_type, ..bpf_output.clone() }
}

/// The decoder for the programs' records in a ring; `None` if they write none.
pub(crate) fn decoder(
    events: &[OpenEvent],
    ring: &MappedRing,
    given: DecoderConfig,
) -> Option<BpfRecordDecoder> {
    let mut members = ring.members.iter();
    let member = members.find(|member| events[member.event].event.is_bpf_output)?;
    let id = member.of(events).id;
    let bpf_output = &events[member.event];
    let traced = ring.members.iter().filter_map(|member| {
        let spec = &events[member.event].event.spec;
        let tracepoint = has_program(spec).then_some(spec.event.config[0])?;
        Some((member.of(events).id, tracepoint as u32))
    });
    let attr = &bpf_output.event.attr;
    let switches = || {
        let CpuId(cpu) = ring.cpu?;
        let channel = given.channels.as_ref()?.of_cpu(cpu)?;
        let wakeup_event = given.wakeup_events.get(&cpu).copied();
        let carrier = switch_carrier(attr);
        let is_packed = given.packs && packed::can_carry(&carrier);
        let config =
            ChannelConfig { id, cpu, wakeup_event, is_cpu_wide: given.is_cpu_wide, is_packed };
        Some(Switches::new(channel, &carrier, config, given.scheduler_symbols.clone()))
    };
    let switches = switches();
    let mut decoder = BpfRecordDecoder::new((attr, id), traced.collect(), given);
    switches.into_iter().for_each(|switches| decoder.add_switches(switches));
    // The sampled event's own id is that of perf's samples.
    let has_switches = decoder.has_switches();
    let is_dumped =
        |event: &OpenEvent| is_sampled(&event.event, has_switches) && has_dumps(&event.event);
    if events.iter().any(is_dumped) {
        decoder.samples_have_bpf_output_id();
    }
    Some(decoder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::adapt;
    use whit_engine_api::settings::{CallGraph, RingSize};
    use whit_host::named::Chosen;
    use whit_host::target::Target;
    use whit_types::{Pid, Tid};

    fn configured(target: Target, config: u64) -> ConfiguredEvent {
        let spec = EventSpec::new("event", pmu_type::SOFTWARE, config);
        let mut plan = EventPlan { target, ..EventPlan::for_command(vec![spec]) };
        assert_eq!(plan.chains.call_graph, CallGraph::None);
        adapt(&mut plan, &mut RingSize::Default);
        let spec = plan.specs[0].clone();
        let flags = AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC | AttrFlags::CONTEXT_SWITCH;
        let mut attr = Attr { flags, pmu_type: spec.event.pmu_type, ..Attr::default() };
        attr.set_precise_ip(2);
        let mut event = ConfiguredEvent::new(spec, attr);
        configure(&plan, &mut event);
        event
    }

    #[test]
    fn programs_get_no_precise_events_and_emit_switches_themselves() {
        let event = configured(Target::Command, software::CONTEXT_SWITCHES);
        assert_eq!(event.attr.precise_ip(), 0);
        assert!(!event.spec.is_of_cpus);
        assert_eq!(event.attr.flags, AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC);
    }

    #[test]
    fn events_that_are_precise_by_number_have_the_kernel_s_call_chain() {
        let without = Attr { flags: AttrFlags::EXCLUDE_CALLCHAIN_USER, ..Attr::default() };
        let mut attr = without.clone();
        attr.set_precise_ip(2);
        for (precision, is_precise) in
            [(PreciseIp::Level(2), true), (PreciseIp::Level(0), false), (PreciseIp::Max, false)]
        {
            let mut attr = attr.clone();
            make_precise(precision, &mut attr);
            assert_eq!(attr.precise_ip(), if is_precise { 2 } else { 0 });
            assert_eq!(attr.sample_type.contains(SampleType::CALLCHAIN), is_precise);
            assert_eq!(attr == without, !is_precise);
            assert_eq!(attr.has(AttrFlags::EXCLUDE_CALLCHAIN_USER), !is_precise);
        }
    }

    #[test]
    fn waits_have_an_event_where_they_are_written_or_sampled() {
        let sample_type = SampleType::IDENTIFIER | SampleType::CPU | SampleType::CGROUP;
        let bpf_output = Attr { sample_type, ..Attr::default() };
        let layout = Layout::new(&bpf_output);
        let described = Described {
            switches: true,
            off_cpu: false,
            off_cpu_period_ns: 0,
            packs: true,
            wakes: None,
        };
        assert!(described.waits(layout, &bpf_output).is_none());
        let written = Described { off_cpu: true, ..described }.waits(layout, &bpf_output).unwrap();
        assert!(off_cpu::is_off_cpu(&written));
        assert!(!written.attr.sample_type.contains(SampleType::CGROUP));
        let sampled = Described { off_cpu_period_ns: 5, ..described };
        let sampled = sampled.waits(layout, &bpf_output).unwrap();
        assert!(off_cpu::is_off_cpu(&sampled));
        assert_eq!(sampled.attr.sample_type, layout.sample_type());
        assert_eq!(sampled.attr.sample_period_or_freq, 5);
    }

    /// Programs leave out who is not recorded, so that clocks are those of CPUs. Nothing of them waits for the exec.
    #[test]
    fn clocks_of_programs_are_of_cpus() {
        let some = [Target::Processes(vec![Pid(7)]), Target::Threads(vec![Tid(7)])];
        for target in [Target::Command].into_iter().chain(some) {
            let clock = configured(target, software::CPU_CLOCK);
            assert!(clock.spec.is_of_cpus);
            assert_eq!(clock.attr.flags, AttrFlags::DISABLED);
            assert!(clock.spec.exclusions().contains(AttrFlags::EXCLUDE_IDLE));
        }
        assert!(!configured(Target::SystemWide(None), software::CPU_CLOCK).spec.is_of_cpus);
        let named = configured(Target::Named(Chosen::default(), None), software::CPU_CLOCK);
        assert!(
            !named.spec.is_of_cpus && named.spec.exclusions().contains(AttrFlags::EXCLUDE_IDLE)
        );
    }

    /// The PMUs of arm64 refuse the flag. A timer that stands in for cycles has it.
    #[test]
    fn hardware_events_do_not_leave_idle_cpus_out() {
        let mut spec = configured(Target::Command, software::CPU_CLOCK).spec;
        assert!(spec.exclusions().contains(AttrFlags::EXCLUDE_IDLE));
        spec.event.pmu_type = pmu_type::HARDWARE;
        assert!(!spec.exclusions().contains(AttrFlags::EXCLUDE_IDLE));
    }
}
