//! From the samples of a recording to what prints them.

use whit_perfdata::attr::{SampleType, pmu_type};
use whit_perfdata::feature::{EventDesc, Feature};
use whit_perfdata::reader::Recording;
use whit_perfdata::tracing_data::TracingData;
use whit_profile::script::{Format, ScriptedFrame, ScriptedSample};
use whit_view::script::trace::{TraceContext, TraceFormat};
use whit_view::script::{
    EventKind, EventTraits, FieldError, FieldSpec, Fields, Layout, ScriptFrame, ScriptSample,
    TraceRecord, append_frame, append_sample,
};

/// How the samples of a recording are printed.
pub(super) struct SampleText {
    /// By event.
    layouts: Vec<Layout>,
    tracepoints: Tracepoints,
}

impl SampleText {
    /// With perf's fields, changed as the `-F` lists say.
    pub(super) fn new(
        recording: &Recording,
        specs: &[FieldSpec],
        nanoseconds: bool,
    ) -> Result<SampleText, FieldError> {
        let events = &recording.events;
        let event_width = events.iter().map(|event| event.name.len()).max().unwrap_or(0);
        let layout = |event: &EventDesc| {
            let traits = traits(event);
            let fields = FieldSpec::resolve(specs, &traits)?;
            Ok(Layout { fields, event_width, nanoseconds, has_callchain: traits.has_callchain })
        };
        let layouts = events.iter().map(layout).collect::<Result<_, _>>()?;
        Ok(SampleText { layouts, tracepoints: Tracepoints::of(recording) })
    }
}

impl Format for SampleText {
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
        let comm = if scripted.comm.is_empty() {
            unnamed = format!(":{}", scripted.tid.0);
            &unnamed
        } else {
            scripted.comm
        };
        let function_at = |address| scripted.lookup.kernel_function_at(address);
        let context = TraceContext { data: &self.tracepoints.data, function_at: &function_at };
        let format = self.tracepoints.formats[scripted.event].as_ref();
        let raw = scripted.sample.raw;
        let sample = ScriptSample {
            comm,
            pid: scripted.pid,
            tid: scripted.tid,
            cpu: scripted.sample.cpu,
            time: scripted.time,
            period: scripted.period,
            event: &scripted.event_desc.name,
            trace: format.zip(raw).map(|(format, raw)| TraceRecord { format, raw, context }),
            flags: "",
            addr: scripted.sample.addr.unwrap_or(0),
            addr_frame: None,
            weight: scripted.sample.weight.unwrap_or(0),
            phys_addr: 0,
            frames: &|out| scripted.chain.append(out),
        };
        append_sample(out, &sample, &self.layouts[scripted.event]);
    }
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
        (SampleType::RAW, Fields::TRACE),
    ];
    let recorded = recorded
        .into_iter()
        .filter(|(recorded, _)| event.attr.sample_type.contains(*recorded))
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
    /// By event; `None` for what is no tracepoint, or one whose format was not recorded.
    formats: Vec<Option<TraceFormat>>,
}

impl Tracepoints {
    fn of(recording: &Recording) -> Tracepoints {
        let section = recording.features.get(Feature::TRACING_DATA).unwrap_or_default();
        let data = match TracingData::parse(section) {
            Ok(data) => data,
            Err(_) if section.is_empty() => TracingData::default(),
            Err(error) => {
                eprintln!("whit: {}: {error}", recording.path.display());
                TracingData::default()
            }
        };
        for problem in &data.problems {
            eprintln!("whit: {}: {problem}", recording.path.display());
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
