//! `whit script`.

use crate::input::InputArgs;
use crate::output;
use crate::progress::LoadProgress;
use crate::symbol_args::LoadArgs;
use anyhow::Result;
use std::io::Write;
use whit_perfdata::attr::{SampleType, pmu_type};
use whit_perfdata::feature::{EventDesc, Feature};
use whit_perfdata::reader::Recording;
use whit_perfdata::tracing_data::TracingData;
use whit_profile::model::EventId;
use whit_profile::script::{ScriptedFrame, ScriptedSample};
use whit_view::folded::{FoldedOptions, write_folded};
use whit_view::script::trace::{TraceContext, TraceFormat};
use whit_view::script::{
    EventKind, EventTraits, FieldSpec, Fields, Layout, ScriptFrame, ScriptSample, TraceRecord,
    append_sample,
};

/// Arguments of `whit script`.
#[derive(clap::Args, Debug)]
pub(crate) struct ScriptArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Fields to print: a list, or `+FIELD` and `-FIELD` to change the default
    #[arg(short = 'F', long, value_name = "FIELD,..", allow_hyphen_values = true)]
    fields: Vec<String>,
    /// Print folded stacks for flame-graph tools: `command;caller;callee weight`
    #[arg(long)]
    folded: bool,
    /// Print time stamps to the nanosecond
    #[arg(long)]
    ns: bool,
    #[command(flatten)]
    load: LoadArgs,
}

/// Runs `whit script`.
pub(crate) fn run(args: &ScriptArgs) -> Result<u8> {
    let recording = args.input.open()?;
    if args.folded { fold(args, &recording) } else { print(args, &recording) }
}

fn fold(args: &ScriptArgs, recording: &Recording) -> Result<u8> {
    let progress = LoadProgress::new("reading", false);
    let profile = whit_profile::load(recording, &args.load.options(recording), &|done, total| {
        progress.update(done, total);
    });
    progress.finish();
    let profile = profile?;
    profile.warnings.iter().for_each(|warning| eprintln!("whit: {warning}"));
    let mut out = output::stdout();
    let options = FoldedOptions { inline: args.load.inline(), ..FoldedOptions::default() };
    for event in 0..profile.events.len() as u32 {
        write_folded(&mut out, &profile, EventId(event), &options)?;
    }
    out.flush()?;
    Ok(0)
}

fn print(args: &ScriptArgs, recording: &Recording) -> Result<u8> {
    let specs =
        args.fields.iter().map(|text| FieldSpec::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let event_width = recording.events.iter().map(|e| e.name.len()).max().unwrap_or(0);
    let layouts = recording
        .events
        .iter()
        .map(|event| {
            let fields = FieldSpec::resolve(&specs, &traits(event))?;
            Ok(Layout { fields, event_width, nanoseconds: args.ns })
        })
        .collect::<Result<Vec<_>>>()?;
    let tracepoints = Tracepoints::of(recording);
    let progress = LoadProgress::new("reading", false);
    let mut out = output::stdout();
    let summary = whit_profile::script::script(
        recording,
        &args.load.options(recording),
        &|done, total| progress.update(done, total),
        &|sample, text| append(sample, &layouts[sample.event], &tracepoints, text),
        &mut out,
    );
    progress.finish();
    out.flush()?;
    summary?.warnings.iter().for_each(|warning| eprintln!("whit: {warning}"));
    Ok(0)
}

fn has_callchain(event: &EventDesc) -> bool {
    event.attr.sample_type.contains(SampleType::CALLCHAIN)
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
    EventTraits { name: &event.name, kind, recorded, has_callchain: has_callchain(event) }
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

    fn record<'a>(&'a self, scripted: &ScriptedSample<'a>) -> Option<TraceRecord<'a>> {
        let format = self.formats.get(scripted.event)?.as_ref()?;
        let function_at = scripted.kernel_function_at;
        let context = TraceContext { data: &self.data, function_at };
        Some(TraceRecord { format, raw: scripted.sample.raw?, context })
    }
}

fn append(
    scripted: &ScriptedSample<'_>,
    layout: &Layout,
    tracepoints: &Tracepoints,
    out: &mut Vec<u8>,
) {
    let frames: Vec<_> = scripted.frames.iter().map(frame).collect();
    let unnamed = format!(":{}", scripted.tid.0);
    let sample = ScriptSample {
        comm: if scripted.comm.is_empty() { &unnamed } else { scripted.comm },
        pid: scripted.pid,
        tid: scripted.tid,
        cpu: scripted.sample.cpu,
        time: scripted.time,
        period: scripted.period,
        event: &scripted.event_desc.name,
        trace: tracepoints.record(scripted),
        flags: "",
        addr: scripted.sample.addr.unwrap_or(0),
        addr_frame: None,
        weight: scripted.sample.weight.unwrap_or(0),
        phys_addr: 0,
        has_callchain: has_callchain(scripted.event_desc),
        frames: &frames,
    };
    append_sample(out, &sample, layout);
}

fn frame(frame: &ScriptedFrame) -> ScriptFrame<'_> {
    ScriptFrame {
        ip: frame.address.0,
        symbol: frame.function.as_deref(),
        symbol_offset: frame.function_offset,
        dso: frame.dso.as_deref(),
        source: frame.source.as_ref().map(|(file, line)| (&**file, *line)),
        inlined: frame.inlined,
    }
}
