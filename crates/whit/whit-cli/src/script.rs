//! `whit script`.

use crate::completion;
use crate::failure::{bail_usage, usage};
use crate::heading;
use crate::input::RecordingArgs;
use crate::message;
use crate::progress::answer;
use crate::symbol_args::LoadArgs;
use crate::terminal::{LineWidthArgs, TerminalArgs};
use crate::unsupported_options::{OfScript, UnsupportedArgs};
use crate::without_match;
use anyhow::Result;
use std::io::Write;
use whit_perfdata::feature::Feature;
use whit_perfdata::reader::Recording;
use whit_profile::model::EventId;
use whit_profile::script::Script;
use whit_profile::script::TimeBase;
use whit_profile::{Reading, Samples};
use whit_profile::{Tracepoints, WantedTrace};
use whit_types::Arch;
use whit_view::folded::{FoldedOptions, write_folded};
use whit_view::hists::Filters;
use whit_view::script::{Addresses, Choice, FieldSpec, SampleContext, SampleText};
use whit_view::stdio;
use whit_view::warning::warning_text;

mod dump;
mod records;

use records::RecordArgs;

/// Arguments of `whit script`.
#[derive(clap::Args, Debug)]
pub(crate) struct ScriptArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Print these fields: a list, or +FIELD and -FIELD to change the default
    #[arg(short = 'F', long, value_name = "FIELD,..", allow_hyphen_values = true, help_heading = heading::OUTPUT)]
    fields: Vec<String>,
    /// Print folded stacks for flame-graph tools: command;caller;callee weight
    #[arg(long, help_heading = heading::OUTPUT)]
    folded: bool,
    /// Print times since the first sample
    #[arg(long, conflicts_with = "deltatime", help_heading = heading::OUTPUT)]
    reltime: bool,
    /// Print times since the sample before
    #[arg(long, help_heading = heading::OUTPUT)]
    deltatime: bool,
    /// End call chains at these functions
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::OUTPUT, add = completion::functions())]
    stop_bt: Vec<String>,
    /// Use only samples of these commands
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::comms())]
    comms: Vec<String>,
    /// Use only samples in these binaries
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::dsos())]
    dsos: Vec<String>,
    /// Use only samples in these functions, or at addresses of the process or of functions' starts (0x4007a0)
    #[arg(short = 'S', long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::functions())]
    symbols: Vec<String>,
    /// Use samples at up to so many bytes from each address of --symbols on
    #[arg(long, value_name = "BYTES", requires = "symbols", help_heading = heading::FILTER)]
    addr_range: Option<u64>,
    /// Print the samples of each event to a file of its own: RECORDING.EVENT.dump
    #[arg(long, help_heading = heading::OUTPUT)]
    per_event_dump: bool,
    /// Print time stamps in nanoseconds
    #[arg(long, help_heading = heading::OUTPUT)]
    ns: bool,
    /// Do not print call chains, but the place of each sample
    #[arg(short = 'G', long, help_heading = heading::OUTPUT)]
    hide_call_graph: bool,
    /// Print the header of the recording before the samples
    #[arg(long, help_heading = heading::OUTPUT)]
    header: bool,
    /// Print only the header of the recording
    #[arg(long, help_heading = heading::OUTPUT)]
    header_only: bool,
    #[command(flatten)]
    records: RecordArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    width: LineWidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfScript>,
}

/// Runs `whit script`.
pub(crate) fn run(args: &ScriptArgs) -> Result<u8> {
    let specs = args.fields.iter().map(|text| FieldSpec::parse(text).map_err(usage));
    let specs = specs.collect::<Result<Vec<_>>>()?;
    let recording = args.input.open()?;
    if args.header || args.header_only {
        let mut out = args.width.fit(args.terminal.output(), true);
        stdio::write_header(&mut out, &whit_profile::header_of(&recording))?;
        out.flush()?;
        if args.header_only {
            return Ok(0);
        }
    }
    if args.addr_range.is_some() && args.choice().addresses.is_empty() {
        bail_usage!("--addr-range begins at an address: give one, as in --symbols 0x4007a0");
    }
    if args.per_event_dump {
        return dump::print(args, &recording, &specs);
    }
    if args.folded { fold(args, &recording) } else { print(args, &recording, &specs) }
}

impl ScriptArgs {
    fn choice(&self) -> Choice {
        Choice {
            time_base: match (self.reltime, self.deltatime) {
                (true, _) => TimeBase::First,
                (_, true) => TimeBase::Previous,
                _ => TimeBase::Clock,
            },
            comms: self.comms.clone(),
            dsos: self.dsos.clone(),
            symbols: self.symbols.clone(),
            addresses: Addresses::of(&self.symbols, self.addr_range.unwrap_or(0)),
            event: None,
            stop_at: self.stop_bt.clone(),
        }
    }
}

fn fold(args: &ScriptArgs, recording: &Recording) -> Result<u8> {
    let options = args.load.options(recording)?;
    let profile = answer(Reading::open(recording, &options), Samples::default(), false)?;
    profile.warnings.iter().map(warning_text).for_each(message::error);
    let mut out = args.terminal.output();
    let options = FoldedOptions { inline: args.load.inline(), ..FoldedOptions::default() };
    for event in 0..profile.events.len() as u32 {
        write_folded(&mut out, &profile, EventId(event), &options)?;
    }
    out.flush()?;
    Ok(0)
}

fn context_of(recording: &Recording) -> SampleContext {
    let arch = recording.features.string(Feature::ARCH);
    let arch = arch.map_or(Arch::native(), |machine| Arch::from_uname(&machine));
    let tracepoints = Tracepoints::of(recording, WantedTrace::Text);
    SampleContext { tracepoints, arch }
}

/// The printer of samples, as the options have it.
fn text_of(args: &ScriptArgs, recording: &Recording, specs: &[FieldSpec]) -> Result<SampleText> {
    let events = &recording.events;
    let context = context_of(recording);
    let mut text = SampleText::new(events, context, specs, args.ns, args.hide_call_graph)?;
    for problem in &text.context.tracepoints.problems {
        message::error(format_args!("{}: {problem}", recording.path.display()));
    }
    text.check_instructions(events).map_err(usage)?;
    text.choice = args.choice();
    text.records = args.records.kinds();
    text.switches = args.records.switches(recording)?;
    Ok(text)
}

fn print(args: &ScriptArgs, recording: &Recording, specs: &[FieldSpec]) -> Result<u8> {
    let text = text_of(args, recording, specs)?;
    let options = args.load.options(recording)?;
    let reading = Reading::open(recording, &options);
    let mut out = args.width.fit(args.terminal.output(), true);
    let script = Script { format: &text, out: &mut out };
    let summary = answer(reading, script, args.terminal.pages());
    out.flush()?;
    drop(out);
    let summary = summary?;
    summary.warnings.iter().map(warning_text).for_each(message::error);
    if summary.samples == 0 {
        explain_nothing(args, reading)?;
    }
    Ok(0)
}

/// Why no sample is printed, where filters are the cause.
fn explain_nothing(args: &ScriptArgs, reading: Reading<'_>) -> Result<()> {
    let Choice { comms, dsos, symbols, .. } = args.choice();
    let filters = Filters { comms, dsos, symbols, ..Filters::default() };
    let mut profile = reading.answer(Samples::default())?;
    without_match::warn(&mut profile, &filters);
    without_match::print(&profile);
    Ok(())
}
