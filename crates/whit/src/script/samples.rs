//! Connects the samples of a recording with the printer.

use crate::message;
use whit_perfdata::attr::{AttrFlags, SampleType, pmu_type};
use whit_perfdata::feature::{EventDesc, Feature};
use whit_perfdata::reader::Recording;
use whit_perfdata::tracing_data::TracingData;
use whit_print_format::{TraceContext, TraceFormat};
use whit_profile::script::{Candidate, CodeAt, Format, ScriptedFrame, ScriptedSample, TimeBase};
use whit_types::{Arch, Avma, OutsideText, TimestampNs};
use whit_view::script::{
    EventKind, EventTraits, FieldError, FieldSpec, Fields, Layout, ScriptFrame, ScriptSample,
    TraceRecord, append_frame, append_sample,
};

/// `PERF_COUNT_SW_PAGE_FAULTS`, and its minor and major ones.
const PAGE_FAULTS: [u64; 3] = [2, 5, 6];
/// `PERF_COUNT_SW_DUMMY`.
const DUMMY: u64 = 9;
/// `PERF_COUNT_HW_BRANCH_INSTRUCTIONS`.
const BRANCHES: u64 = 4;

/// How the samples of a recording are printed.
pub(super) struct SampleText {
    /// By event.
    layouts: Vec<Layout>,
    tracepoints: Tracepoints,
    arch: Option<Arch>,
    pub(super) choice: Choice,
}

/// Which samples and frames are printed, and from when times count. Empty lists let everything pass.
#[derive(Default)]
pub(super) struct Choice {
    pub(super) time_base: TimeBase,
    pub(super) comms: Vec<String>,
    pub(super) dsos: Vec<String>,
    pub(super) symbols: Vec<String>,
    /// Functions that end a chain.
    pub(super) stop_at: Vec<String>,
}

/// True where a list has a name, exactly or as it is printed.
fn names(list: &[String], name: OutsideText<&str>) -> bool {
    list.iter().any(|listed| name.exact() == listed || name.escaped() == listed.as_str())
}

impl SampleText {
    /// With perf's fields, changed as the `-F` lists say.
    pub(super) fn new(
        recording: &Recording,
        specs: &[FieldSpec],
        nanoseconds: bool,
    ) -> Result<SampleText, FieldError> {
        let events = &recording.events;
        let width = |event: &EventDesc| OutsideText::new(&event.name).escaped().len();
        let event_width = events.iter().map(width).max().unwrap_or(0);
        let layout = |event: &EventDesc| {
            let traits = traits(event);
            let fields = FieldSpec::resolve(specs, &traits)?;
            Ok(Layout { fields, event_width, nanoseconds, has_callchain: traits.has_callchain })
        };
        let layouts = events.iter().map(layout).collect::<Result<_, _>>()?;
        let arch = recording.features.string(Feature::ARCH);
        let arch = arch.map_or(Arch::native(), |machine| Arch::from_uname(&machine));
        let (tracepoints, choice) = (Tracepoints::of(recording), Choice::default());
        Ok(SampleText { layouts, tracepoints, arch, choice })
    }
}

impl Format for SampleText {
    fn time_base(&self) -> TimeBase {
        self.choice.time_base
    }

    fn wants(&self, candidate: &Candidate<'_>) -> bool {
        let Choice { comms, dsos, symbols, .. } = &self.choice;
        let comm_passes = comms.is_empty() || candidate.comm.is_some_and(|comm| names(comms, comm));
        if !comm_passes || (dsos.is_empty() && symbols.is_empty()) {
            return comm_passes;
        }
        let code = candidate.address.map(|address| candidate.lookup.code_at(address));
        let code = code.unwrap_or_default();
        let passes = |list: &[String], name: Option<OutsideText<&str>>| {
            list.is_empty() || name.is_some_and(|name| names(list, name))
        };
        let dso = code.dso.as_ref().map(OutsideText::borrowed);
        passes(symbols, code.function.as_ref().map(OutsideText::borrowed))
            && (passes(dsos, dso) || passes(dsos, code.dso.as_ref().map(OutsideText::base_name)))
    }

    fn ends_chain(&self, function: OutsideText<&str>) -> bool {
        !self.choice.stop_at.is_empty() && names(&self.choice.stop_at, function)
    }

    fn wants_chain(&self, event: usize) -> bool {
        self.layouts[event].fields.has(Fields::IP)
    }

    fn frame(&self, event: usize, frame: &ScriptedFrame<'_>, out: &mut Vec<u8>) {
        let frame = ScriptFrame {
            ip: frame.address.0,
            symbol: frame.function,
            symbol_offset: frame.function_offset,
            dso: frame.dso,
            source: frame.source,
            inlined: frame.inlined,
        };
        append_frame(out, &frame, &self.layouts[event]);
    }

    fn sample(&self, scripted: &ScriptedSample<'_>, out: &mut Vec<u8>) {
        let unnamed;
        let comm = match scripted.comm {
            Some(comm) => comm,
            None => {
                unnamed = format!(":{}", scripted.tid.0);
                OutsideText::new(&*unnamed)
            }
        };
        let function_at = |address| scripted.lookup.kernel_function_at(address);
        let context = TraceContext { strings: &self.tracepoints.data, function_at: &function_at };
        let format = self.tracepoints.formats[scripted.event].as_ref();
        let raw = scripted.sample.raw;
        let layout = &self.layouts[scripted.event];
        let addr = scripted.sample.addr.unwrap_or(0);
        let shows_addr = layout.fields.has(Fields::ADDR) && has_data_symbol(scripted.event_desc);
        let addr_code = shows_addr.then(|| scripted.lookup.data_at(Avma(addr)));
        let sample = ScriptSample {
            comm,
            pid: scripted.pid,
            tid: scripted.tid,
            cpu: scripted.sample.cpu,
            time: TimestampNs(scripted.time.0.saturating_sub(scripted.shown_since.0)),
            period: scripted.period,
            event: OutsideText::new(&scripted.event_desc.name),
            trace: format.zip(raw).map(|(format, raw)| TraceRecord { format, raw, context }),
            flags: "",
            addr,
            addr_frame: addr_code.as_ref().map(|code| code_frame(Avma(addr), code)),
            weight: scripted.sample.weight.unwrap_or(0),
            phys_addr: scripted.sample.phys_addr.unwrap_or(0),
            cgroup: scripted.sample.cgroup.and_then(|number| scripted.lookup.cgroup(number)),
            intr_regs: scripted.sample.intr_regs,
            user_regs: scripted.sample.user_regs,
            arch: self.arch,
            branch_stack: scripted.sample.branch_stack,
            code_at: &|address, take| take(&code_frame(address, &scripted.lookup.code_at(address))),
            frames: &|out| scripted.chain.append(out),
        };
        append_sample(out, &sample, layout);
    }
}

fn code_frame(address: Avma, code: &CodeAt) -> ScriptFrame<'_> {
    ScriptFrame {
        ip: address.0,
        symbol: code.function.as_ref().map(OutsideText::borrowed),
        symbol_offset: code.function_offset,
        dso: code.dso.as_ref().map(OutsideText::borrowed),
        source: None,
        inlined: false,
    }
}

/// True for events whose data address perf names: page faults, and branches one by one.
fn has_data_symbol(event: &EventDesc) -> bool {
    let attr = &event.attr;
    match attr.pmu_type {
        pmu_type::SOFTWARE => PAGE_FAULTS.contains(&attr.config),
        pmu_type::HARDWARE => {
            attr.config == BRANCHES && attr.sample_period_or_freq == 1 && !attr.has(AttrFlags::FREQ)
        }
        _ => false,
    }
}

/// An event that never counts: it has no sample that could lack a field.
fn is_dummy(event: &EventDesc) -> bool {
    event.attr.pmu_type == pmu_type::SOFTWARE && event.attr.config == DUMMY
}

fn traits(event: &EventDesc) -> EventTraits<'_> {
    let recorded = [
        (SampleType::IP, Fields::IP),
        (SampleType::TID, Fields::TID),
        (SampleType::TIME, Fields::TIME),
        (SampleType::CPU, Fields::CPU),
        (SampleType::ADDR, Fields::ADDR),
        (SampleType::WEIGHT, Fields::WEIGHT),
        (SampleType::PHYS_ADDR, Fields::PHYS_ADDR),
        (SampleType::REGS_INTR, Fields::IREGS),
        (SampleType::REGS_USER, Fields::UREGS),
        (SampleType::BRANCH_STACK, Fields::BRSTACK | Fields::BRSTACKSYM),
        (SampleType::CGROUP, Fields::CGROUP),
        (SampleType::WEIGHT_STRUCT, Fields::WEIGHT),
        (SampleType::RAW, Fields::TRACE),
    ];
    let is_recorded = |kind| event.attr.sample_type.contains(kind) || is_dummy(event);
    let recorded = recorded
        .into_iter()
        .filter(|(recorded, _)| is_recorded(*recorded))
        .fold(Fields::NONE, |all, (_, field)| all | field);
    let kind = match event.attr.pmu_type {
        pmu_type::HARDWARE => EventKind::Hardware,
        pmu_type::SOFTWARE => EventKind::Software,
        pmu_type::TRACEPOINT => EventKind::Tracepoint,
        pmu_type::RAW => EventKind::Raw,
        _ => EventKind::Other,
    };
    let has_callchain = event.attr.sample_type.contains(SampleType::CALLCHAIN);
    EventTraits { name: &event.name, kind, recorded, has_callchain }
}

/// How the recording's tracepoints are printed.
struct Tracepoints {
    data: TracingData,
    /// By event; `None` for an event that is no tracepoint, or whose format was not recorded.
    formats: Vec<Option<TraceFormat>>,
}

impl Tracepoints {
    fn of(recording: &Recording) -> Tracepoints {
        let section = recording.features.get(Feature::TRACING_DATA).unwrap_or_default();
        let data = match TracingData::parse(section) {
            Ok(data) => data,
            Err(_) if section.is_empty() => TracingData::default(),
            Err(error) => {
                message::error(format_args!("{}: {error}", recording.path.display()));
                TracingData::default()
            }
        };
        for problem in &data.problems {
            message::error(format_args!("{}: {problem}", recording.path.display()));
        }
        let format = |event: &EventDesc| {
            let is_tracepoint = event.attr.pmu_type == pmu_type::TRACEPOINT;
            let described = data.event(event.attr.config).filter(|_| is_tracepoint)?;
            Some(TraceFormat::new(described, data.long_size_bytes))
        };
        let formats = recording.events.iter().map(format).collect();
        Tracepoints { data, formats }
    }
}
