//! The recording's header, its losses, and the warnings about it.

use crate::call_chain::stops::StopCounts;
use crate::first_pass::prepare::Prepared;
use crate::first_pass::scan::Scan;
use crate::header_facts::HeaderFacts;
use crate::machine_model::dso_index::DsoIndex;
use crate::machine_model::dso_table::RecordedKind;
use crate::machine_model::machine::reference;
use crate::machine_model::process::MAX_EPOCHS_PER_PROCESS;
use crate::model::{EventInfo, LossReport, Profile, RecordStats, RecordingInfo};
use crate::result::unnamed_runtimes;
use crate::second_pass::aggregate::{Aggregate, MAX_FACETS, MAX_TREE_NODES};
use crate::warning::Warning;
use std::collections::BTreeSet;
use whit_perfdata::attr::{Attr, ReadFormat, SampleType};
use whit_perfdata::clocks::ClockReading;
use whit_perfdata::feature::{EventDesc, Feature};
use whit_perfdata::ledger::Ledger;
use whit_perfdata::read_split::ReadSplit;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::record_type_name;
use whit_symbolize::{DsoSymbols, GivenUp};
use whit_types::{OutsideText, TimestampNs};

/// Binaries without symbols that are named in the warnings; the rest is only counted.
const MAX_NAMED_BINARIES: usize = 8;

pub(crate) fn describe(
    profile: &mut Profile,
    recording: &Recording,
    prepared: &Prepared,
    sums: &Aggregate,
    stops: &StopCounts,
    names_kernel: bool,
) {
    let mut all_stops = StopCounts::of_chained(&recording.features);
    all_stops.add(stops);
    let stops = &all_stops;
    profile.ledger = recording.features.ledger();
    profile.stats = stats(prepared, stops);
    profile.losses = losses(profile, prepared, sums);
    profile.recording = info(recording, &prepared.scan.clocks, sums);
    profile.warnings = warnings(profile, recording, prepared, sums, stops, names_kernel);
}

fn stats(prepared: &Prepared, stops: &StopCounts) -> RecordStats {
    let mut by_type = Vec::new();
    let mut unknown = 0;
    for (kind, count) in prepared.scan.counts.iter() {
        match kind.and_then(record_type_name) {
            Some(name) => by_type.push((name.to_owned(), count)),
            None => unknown += count,
        }
    }
    if unknown > 0 {
        by_type.push(("UNKNOWN".to_owned(), unknown));
    }
    RecordStats {
        by_type,
        samples_by_event: prepared.scan.samples_by_event.clone(),
        unwind_stops: stops.iter().collect(),
        continued_chains: stops.continued,
    }
}

fn losses(profile: &Profile, prepared: &Prepared, sums: &Aggregate) -> LossReport {
    let loss = &prepared.scan.loss;
    let sampled_ns = match (sums.first_time, sums.last_time) {
        (Some(first), Some(last)) => last.since(first),
        _ => 0,
    };
    // The recorder measured these at the rings; from a foreign file they are worked out, where
    // its rings can be told apart.
    let (paused_ns, elapsed_ns) = match &profile.ledger {
        Some(ledger) if ledger.elapsed_ns > 0 => (ledger.paused_ns, ledger.elapsed_ns),
        _ => (loss.paused_ns, sampled_ns.saturating_mul(loss.rings)),
    };
    LossReport {
        lost_records: loss.lost_records,
        lost_chunks: loss.lost_chunks,
        lost_samples: loss.lost_samples,
        paused_ns,
        elapsed_ns,
        truncated_bytes: loss.truncated_bytes,
    }
}

/// The header of a recording, without its samples.
pub fn header_of(recording: &Recording) -> Profile {
    let name =
        |event: &EventDesc| EventInfo { name: event.name.as_str().into(), ..EventInfo::default() };
    let mut info = info(recording, &[], &Aggregate::default());
    (info.first_sample, info.last_sample) = recording.features.sample_time().unzip();
    Profile {
        recording: info,
        events: recording.events.iter().map(name).collect(),
        ..Profile::default()
    }
}

fn info(recording: &Recording, clocks: &[ClockReading], sums: &Aggregate) -> RecordingInfo {
    let features = &recording.features;
    let string = |feature| OutsideText::from(features.string(feature).unwrap_or_default());
    let chains = SampleType::CALLCHAIN;
    let stacks = SampleType::STACK_USER | SampleType::REGS_USER;
    RecordingInfo {
        path: recording.path.display().to_string().into(),
        size_bytes: recording.size_bytes,
        hostname: string(Feature::HOSTNAME),
        os_release: string(Feature::OSRELEASE),
        version: string(Feature::VERSION),
        arch: string(Feature::ARCH),
        nr_cpus: features.nr_cpus(),
        sockets: features.sockets().unwrap_or_default(),
        cpu_desc: string(Feature::CPUDESC),
        cpuid: string(Feature::CPUID),
        total_mem_kib: features.word(Feature::TOTAL_MEM),
        cmdline: features.cmdline().into_iter().flatten().map(OutsideText::from).collect(),
        first_sample: sums.first_time,
        last_sample: sums.last_time,
        captured_on_s: captured_on_s(recording, clocks, sums.first_time),
        has_callchains: recording.events.iter().any(|event| {
            event.attr.sample_type.contains(chains) || event.attr.sample_type.contains(stacks)
        }),
        header: HeaderFacts::of(recording),
    }
}

/// From the clock reference in the recording; perf itself shows the file's modification time.
fn captured_on_s(
    recording: &Recording,
    clocks: &[ClockReading],
    first: Option<TimestampNs>,
) -> Option<u64> {
    if let (Some(clock), Some(first)) = (reference(recording, clocks), first) {
        let since_reference = first.0.wrapping_sub(clock.clock_ns.0) as i64;
        let at_ns = clock.wall_clock_ns.checked_add_signed(since_reference)?;
        return Some(at_ns / 1_000_000_000);
    }
    let modified = std::fs::metadata(&recording.path).ok()?.modified().ok()?;
    Some(modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs())
}

/// Why there is nothing in a recording of those who waited all the time.
fn no_thread_ran(recording: &Recording) -> Option<Warning> {
    let ledger = recording.features.ledger().filter(Ledger::no_thread_ran)?;
    let has_stacks = ledger.blocked_at_begin > 0;
    Some(Warning::NoThreadRan { threads: ledger.watched_threads, has_stacks })
}

fn warnings(
    profile: &Profile,
    recording: &Recording,
    prepared: &Prepared,
    sums: &Aggregate,
    stops: &StopCounts,
    names_kernel: bool,
) -> Vec<Warning> {
    let mut warnings = scan_warnings(recording, prepared);
    warnings.extend(stops.warnings());
    if let chains @ 1.. = sums.cut_chains {
        warnings.push(Warning::ChainsCut { chains, max_nodes: MAX_TREE_NODES });
    }
    if let samples @ 1.. = sums.merged_facets {
        warnings.push(Warning::FacetsMerged { samples, max_facets: MAX_FACETS });
    }
    warnings.extend(prepared.tracepoints.problems.iter().cloned().map(Warning::TraceFormats));
    warnings.extend(missing_symbols(profile, prepared, sums, names_kernel));
    warnings
}

/// Warnings about records that the first pass could not use. All views of a recording share them.
pub(crate) fn scan_warnings(recording: &Recording, prepared: &Prepared) -> Vec<Warning> {
    let scan = &prepared.scan;
    let mut warnings: Vec<_> = recording.warnings.iter().cloned().map(Warning::Recording).collect();
    warnings.extend(recording.features.dump_cause().map(Warning::DumpOf));
    warnings.extend(recording.features.let_go().map(Warning::LetGo));
    warnings.extend(no_thread_ran(recording));
    warnings.extend(scan.warnings.iter().cloned());
    warnings.extend(scan.orphan_samples.left_out().map(Warning::OrphanSamples));
    warnings.extend(scan.unsplit_samples.left_out().map(Warning::UnsplitSamples));
    warnings.extend(scan.malformed.left_out().map(Warning::MalformedRecords));
    warnings.extend(prepared.deferred.loss.warnings());
    warnings.extend(scan.cut_maps.warning());
    warnings.extend(unsplit_groups(recording, scan));
    if let changes @ 1.. = prepared.model.epochs_cut() {
        warnings.push(Warning::EpochsCut { changes, max_epochs: MAX_EPOCHS_PER_PROCESS });
    }
    warnings
}

/// True for a leader whose samples have the counts of its group.
pub(crate) fn is_read(attr: &Attr) -> bool {
    attr.sample_type.contains(SampleType::READ) && attr.read_format.contains(ReadFormat::GROUP)
}

/// Events that were read with the samples of their group's leader (`:S`), where these samples cannot be split.
fn unsplit_groups(recording: &Recording, scan: &Scan) -> Option<Warning> {
    let groups = recording.features.group_desc().unwrap_or_default();
    let split = ReadSplit::of(&recording.events);
    // Groups follow each other; no event is in two.
    let mut next = 0;
    let members = groups.iter().flat_map(|group| {
        let leader = group.leader_index as usize;
        let reads = recording.events.get(leader).is_some_and(|event| is_read(&event.attr));
        let end = leader.saturating_add(group.nr_members as usize).min(recording.events.len());
        let members = next.max(leader.saturating_add(1))..end;
        next = next.max(end);
        let split = split.as_ref();
        members.filter(move |member| reads && !split.is_some_and(|it| it.splits(leader, *member)))
    });
    let unsampled = members.filter(|member| scan.samples_by_event[*member] == 0);
    let names = unsampled.map(|event| recording.events[event].name.as_str().into());
    let events: Vec<_> = names.collect();
    (!events.is_empty()).then_some(Warning::UnsplitGroups { events })
}

/// Binaries that have samples and no symbols or not all debug information, each with the reason.
fn missing_symbols(
    profile: &Profile,
    prepared: &Prepared,
    sums: &Aggregate,
    names_kernel: bool,
) -> Vec<Warning> {
    let places = sums.places.values.iter().filter(|place| names_kernel || !place.kernel);
    let used: BTreeSet<_> = places.map(|place| place.dso).collect();
    let (mut missing, mut units) = (Vec::new(), Vec::new());
    for dso in used.iter().copied() {
        let kind = prepared.dsos.get(dso).kind;
        if matches!(
            kind,
            RecordedKind::Unknown | RecordedKind::KernelSymbol(_) | RecordedKind::Interpreted(_)
        ) {
            continue;
        }
        let binary = prepared.binaries.get(dso);
        units.extend(binary.and_then(|binary| missing_units(profile, dso, &binary.symbols)));
        units.extend(binary.and_then(|binary| given_up(profile, dso, &binary.symbols)));
        let problem = prepared.binaries.problem(dso);
        missing.extend(problem.map(|reason| Warning::NoSymbols {
            binary: profile.dsos[dso.index()].short_name.clone(),
            reason,
        }));
    }
    if let binaries @ 1.. = missing.len().saturating_sub(MAX_NAMED_BINARIES) {
        missing.truncate(MAX_NAMED_BINARIES);
        missing.push(Warning::MoreWithoutSymbols { binaries });
    }
    units.truncate(MAX_NAMED_BINARIES);
    missing.extend(units);
    let is_walked = profile.ledger.as_ref().is_some_and(|ledger| ledger.stacks.walks > 0);
    missing.extend(unnamed_runtimes::warnings(prepared, &used, is_walked));
    if let [only] = &profile.cgroups[..]
        && only.path.exact() == "/"
    {
        missing.push(Warning::RootCgroupAlone);
    }
    missing
}

fn given_up(profile: &Profile, dso: DsoIndex, symbols: &DsoSymbols) -> Option<Warning> {
    let given_up = symbols.given_up();
    (given_up != GivenUp::default()).then(|| Warning::NamesGivenUp {
        binary: profile.dsos[dso.index()].short_name.clone(),
        given_up,
    })
}

fn missing_units(profile: &Profile, dso: DsoIndex, symbols: &DsoSymbols) -> Option<Warning> {
    let missing = symbols.missing_units();
    let file = missing.named.first()?.display().to_string();
    Some(Warning::MissingUnits {
        binary: profile.dsos[dso.index()].short_name.clone(),
        file: file.into(),
        files: missing.count,
    })
}
