//! Connects the samples of a recording with the printer.

use crate::failure::bail_usage;
use crate::message;
use anyhow::Result;
use whit_perfdata::attr::{AttrFlags, SampleType, pmu_type};
use whit_perfdata::feature::{EventDesc, Feature};
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RecordHeader, misc, record_type};
use whit_print_format::TraceContext;
use whit_profile::script::{
    Candidate, CodeAt, EventSwitches, Format, RecordKinds, ScriptedFrame, ScriptedRecord,
    ScriptedSample, TimeBase,
};
use whit_profile::{Tracepoints, WantedTrace};
use whit_types::{Arch, Avma, OutsideText, TimestampNs};
use whit_view::hists::lists_function;
use whit_view::script::{
    EventKind, EventTraits, FieldError, FieldSpec, Fields, Layout, LineStart, ScriptFrame,
    ScriptSample, TraceRecord, append_frame, append_line_start, append_record, append_sample,
};

/// `PERF_COUNT_SW_PAGE_FAULTS`, and its minor and major ones.
const PAGE_FAULTS: [u64; 3] = [2, 5, 6];
/// `PERF_COUNT_SW_DUMMY`.
const DUMMY: u64 = 9;
/// `PERF_COUNT_SW_BPF_OUTPUT`.
const BPF_OUTPUT: u64 = 10;
/// `PERF_COUNT_HW_BRANCH_INSTRUCTIONS`.
const BRANCHES: u64 = 4;

/// Fields of the branch stack.
const BRANCH_FIELDS: Fields = Fields::BRSTACK.with(Fields::BRSTACKSYM).with(Fields::BRSTACKINSN);

/// `PERF_SAMPLE_BRANCH_ANY`.
const ANY_BRANCH: u64 = 1 << 3;

/// How the samples of a recording are printed.
pub(super) struct SampleText {
    /// By event.
    layouts: Vec<Layout>,
    tracepoints: Tracepoints,
    arch: Option<Arch>,
    pub(super) choice: Choice,
    /// Records that are printed between the samples.
    pub(super) records: RecordKinds,
    pub(super) switches: EventSwitches,
}

/// Which samples and frames are printed, and from when times count. Empty lists let everything pass.
#[derive(Default)]
pub(super) struct Choice {
    pub(super) time_base: TimeBase,
    pub(super) comms: Vec<String>,
    pub(super) dsos: Vec<String>,
    pub(super) symbols: Vec<String>,
    /// Addresses among the symbols.
    pub(super) addresses: Addresses,
    /// Only this event.
    pub(super) event: Option<usize>,
    /// Functions that end a chain.
    pub(super) stop_at: Vec<String>,
}

/// Ranges of addresses, each from a number in a list of symbols on.
#[derive(Default)]
pub(super) struct Addresses {
    starts: Vec<u64>,
    length_bytes: u64,
}

impl Addresses {
    /// The words that begin with `0x`.
    pub(super) fn of(symbols: &[String], length_bytes: u64) -> Addresses {
        let number = |word: &String| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        Addresses { starts: symbols.iter().filter_map(number).collect(), length_bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// True for an address in a range, and for one in a function that begins at a range's start.
    fn have(&self, address: u64, function_start: Option<u64>) -> bool {
        let is_in = |start: &u64| {
            let distance = address.wrapping_sub(*start);
            distance < self.length_bytes.max(1) || function_start == Some(*start)
        };
        self.starts.iter().any(is_in)
    }
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
        hides_chains: bool,
    ) -> std::result::Result<SampleText, FieldError> {
        let events = &recording.events;
        let width = |event: &EventDesc| OutsideText::new(&event.name).escaped().len();
        let event_width = events.iter().map(width).max().unwrap_or(0);
        let layout = |event: &EventDesc| {
            let traits = traits(event);
            let fields = FieldSpec::resolve(specs, &traits)?;
            let has_callchain = traits.has_callchain && !hides_chains;
            Ok(Layout { fields, event_width, nanoseconds, has_callchain })
        };
        let layouts = events.iter().map(layout).collect::<std::result::Result<_, _>>()?;
        let arch = recording.features.string(Feature::ARCH);
        let arch = arch.map_or(Arch::native(), |machine| Arch::from_uname(&machine));
        let tracepoints = Tracepoints::of(recording, WantedTrace::Text);
        for problem in &tracepoints.problems {
            message::error(format_args!("{}: {problem}", recording.path.display()));
        }
        let choice = Choice::default();
        let (records, switches) = (RecordKinds::default(), EventSwitches::default());
        Ok(SampleText { layouts, tracepoints, arch, choice, records, switches })
    }
}

impl SampleText {
    /// Whether the instructions between branches can be known, where they are asked for.
    ///
    /// # Errors
    /// Some branches were not recorded, or the code is not of x86.
    pub(super) fn check_instructions(&self, recording: &Recording) -> Result<()> {
        let asked = Fields::BRSTACKINSN;
        let events = self.layouts.iter().zip(&recording.events);
        let mut asking = events.filter(|(layout, _)| layout.fields.has(asked)).peekable();
        if asking.peek().is_some() && self.arch == Some(Arch::Aarch64) {
            bail_usage!(
                "brstackinsn knows the instructions of x86 alone: print branches with -F brstack"
            );
        }
        if asking.any(|(_, event)| event.attr.branch_sample_type & ANY_BRANCH == 0) {
            bail_usage!(
                "brstackinsn needs all branches, and the recording has a choice of them: record again with -b"
            );
        }
        Ok(())
    }
}

impl Format for SampleText {
    fn time_base(&self) -> TimeBase {
        self.choice.time_base
    }

    fn records(&self) -> RecordKinds {
        self.records
    }

    fn switches(&self) -> EventSwitches {
        self.switches
    }

    fn shows_chain(&self, event: usize) -> bool {
        self.layouts[event].has_callchain
    }

    fn record(&self, scripted: &ScriptedRecord<'_>, out: &mut Vec<u8>) {
        let Some(layout) = self.layouts.get(scripted.event) else { return };
        let unnamed;
        let comm = match scripted.comm {
            Some(comm) => comm,
            None => {
                unnamed = format!(":{}", scripted.comm_tid.0);
                OutsideText::new(&*unnamed)
            }
        };
        let header = scripted.record.header;
        let start = LineStart {
            comm,
            pid: scripted.pid,
            tid: scripted.tid,
            cpu: scripted.cpu,
            time: TimestampNs(scripted.time.0.saturating_sub(scripted.shown_since.0)),
            misc: header.misc,
            marks: marks(header),
        };
        append_line_start(out, &start, layout);
        append_record(out, scripted.record);
    }

    fn wants(&self, candidate: &Candidate<'_>) -> bool {
        let Choice { comms, dsos, symbols, addresses, event, .. } = &self.choice;
        if event.is_some_and(|event| event != candidate.event) {
            return false;
        }
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
        let is_at = |address: Avma| {
            let is_known = code.function.is_some();
            let start = is_known.then(|| address.0.wrapping_sub(code.function_offset));
            !addresses.is_empty() && addresses.have(address.0, start)
        };
        let is_there = candidate.address.is_some_and(is_at);
        let is_in = || {
            let function = code.function.as_ref();
            symbols.is_empty() || function.is_some_and(|name| lists_function(symbols, name))
        };
        (is_there || is_in())
            && (passes(dsos, dso) || passes(dsos, code.dso.as_ref().map(OutsideText::base_name)))
    }

    fn ends_chain(&self, function: OutsideText<&str>) -> bool {
        !self.choice.stop_at.is_empty() && lists_function(&self.choice.stop_at, &function)
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
        let format = self.tracepoints.format(scripted.event);
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
            ip: scripted.sample.ip,
            period: scripted.period,
            event: OutsideText::new(&scripted.event_desc.name),
            trace: format.zip(raw).map(|(format, raw)| TraceRecord { format, raw, context }),
            flags: "",
            addr,
            addr_frame: addr_code.as_ref().map(|code| code_frame(Avma(addr), code)),
            weight: scripted.sample.weight.unwrap_or(0),
            phys_addr: scripted.sample.phys_addr.unwrap_or(0),
            misc: scripted.misc,
            data_src: scripted.sample.data_src.unwrap_or(0),
            instruction_latency: scripted.sample.instruction_latency,
            page_sizes_bytes: (
                scripted.sample.data_page_size_bytes.unwrap_or(0),
                scripted.sample.code_page_size_bytes.unwrap_or(0),
            ),
            bpf_output: raw.filter(|_| is_bpf_output(scripted.event_desc)),
            cgroup: scripted.sample.cgroup.and_then(|number| scripted.lookup.cgroup(number)),
            intr_regs: scripted.sample.intr_regs,
            user_regs: scripted.sample.user_regs,
            arch: self.arch,
            branch_stack: scripted.sample.branch_stack,
            code_at: &|address, take| take(&code_frame(address, &scripted.lookup.code_at(address))),
            code_bytes: &|address, most, out| scripted.lookup.code_bytes(address, most, out),
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

/// An event through which BPF programs write.
fn is_bpf_output(event: &EventDesc) -> bool {
    event.attr.pmu_type == pmu_type::SOFTWARE && event.attr.config == BPF_OUTPUT
}

/// The letters of a record's type in field `misc`.
fn marks(header: RecordHeader) -> &'static str {
    let has = |bit: u16| header.misc & bit != 0;
    match header.kind {
        record_type::MMAP | record_type::MMAP2 if has(misc::MMAP_DATA) => "M",
        record_type::COMM if has(misc::COMM_EXEC) => "E",
        record_type::SWITCH | record_type::SWITCH_CPU_WIDE => {
            match (has(misc::SWITCH_OUT), has(misc::SWITCH_OUT_PREEMPT)) {
                (true, true) => "Sp",
                (true, false) => "S",
                _ => "",
            }
        }
        _ => "",
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
        (SampleType::BRANCH_STACK, BRANCH_FIELDS),
        (SampleType::CGROUP, Fields::CGROUP),
        (SampleType::WEIGHT_STRUCT, Fields::WEIGHT | Fields::INS_LAT),
        (SampleType::WEIGHT, Fields::INS_LAT),
        (SampleType::DATA_SRC, Fields::DATA_SRC),
        (SampleType::DATA_PAGE_SIZE, Fields::DATA_PAGE_SIZE),
        (SampleType::CODE_PAGE_SIZE, Fields::CODE_PAGE_SIZE),
        (SampleType::RAW, Fields::TRACE | Fields::BPF_OUTPUT),
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
