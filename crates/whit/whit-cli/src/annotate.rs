//! `whit annotate`.

use crate::brief::check_handles;
use crate::completion;
use crate::failure::{bail_usage, usage};
use crate::heading;
use crate::input::InputArgs;
use crate::message;
use crate::progress::answer;
use crate::sources::{Place, Sources};
use crate::symbol_args::LoadArgs;
use crate::terminal::{LineWidthArgs, TerminalArgs};
use crate::unsupported_options::{OfAnnotate, UnsupportedArgs};
use anyhow::{Result, bail};
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use whit_annotate::{AnnotatedFunction, Chosen, Syntax, Wanted, Weights, annotate};
use whit_perfdata::reader::Recording;
use whit_profile::model::{EventId, Profile};
use whit_profile::warning::Warning;
use whit_profile::{CodeFinder, Reading, Samples, WithCode};
use whit_types::OutsideText;
use whit_view::annotate::{AnnotateOptions, Annotated, PercentType, write_json, write_text};
use whit_view::hists::Grouping;
use whit_view::warning::warning_text;

/// Functions that are shown without a name.
const DEFAULT_LIMIT: usize = 3;
/// Names and files that a message lists.
const MAX_LISTED: usize = 5;

/// An example for each group of options.
const EXAMPLES: &str = "\
Examples:
  Filter    whit annotate find_product -d shop --event cycles
  Output    whit annotate find_product --json
  Rows      whit annotate --percent-type global-period --show-nr-samples
  Code      whit annotate find_product -l -M intel --prefix src
  Symbols   whit annotate do_syscall_64 --vmlinux vmlinux
  General   whit annotate find_product --no-pager";

/// Arguments of `whit annotate`.
#[derive(clap::Args, Debug)]
// Call chains do not count here.
#[command(mut_arg("max_stack", |arg| arg.hide(true)), after_help = EXAMPLES)]
pub(crate) struct AnnotateArgs {
    /// Function, by its name or by an address in it such as 0x1234 [default: the functions with the largest
    /// shares]
    #[arg(value_name = "FUNCTION", add = completion::functions())]
    function: Option<String>,
    #[command(flatten)]
    input: InputArgs,
    /// The same as FUNCTION
    #[arg(short, long, value_name = "FUNCTION", conflicts_with = "function", help_heading = heading::FILTER,
          add = completion::functions())]
    symbol: Option<String>,
    /// Only functions in these binaries
    #[arg(short, long, value_name = "NAME,..", value_delimiter = ',', help_heading = heading::FILTER,
          add = completion::dsos())]
    dsos: Vec<String>,
    /// Only samples of this event
    #[arg(short, long, value_name = "EVENT", help_heading = heading::FILTER)]
    event: Option<String>,
    /// Without FUNCTION, show so many functions
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LIMIT, help_heading = heading::FILTER)]
    limit: usize,
    /// Without FUNCTION, leave out functions below this share of the event
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, help_heading = heading::FILTER)]
    percent_limit: f64,
    /// Leave out functions whose code is not at hand
    #[arg(long, help_heading = heading::FILTER)]
    skip_missing: bool,
    /// Print text (the default)
    #[arg(long, help_heading = heading::OUTPUT)]
    stdio: bool,
    /// Print instructions, lines and weights as JSON
    #[arg(long, conflicts_with = "stdio", help_heading = heading::OUTPUT)]
    json: bool,
    /// Print only the tables
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    /// Shares are of the function or of the event (local, global), in periods or samples (period, hits)
    #[arg(long, value_name = "TYPE", default_value = "local-period", value_parser = percent_type, help_heading = heading::ROWS)]
    percent_type: PercentType,
    /// Add a column with the number of samples
    #[arg(short = 'n', long, help_heading = heading::ROWS)]
    show_nr_samples: bool,
    /// Add a column with the sum of periods
    #[arg(long, help_heading = heading::ROWS)]
    show_total_period: bool,
    /// Print how far shares can be trusted (the default with --json and on a terminal)
    #[arg(long, overrides_with = "no_intervals", help_heading = heading::ROWS)]
    intervals: bool,
    /// Do not print how far shares can be trusted
    #[arg(long, help_heading = heading::ROWS)]
    no_intervals: bool,
    /// Put all events into columns beside each other, also those that were not recorded as a group
    #[arg(long, help_heading = heading::ROWS)]
    group: bool,
    /// Print source lines between instructions (the default)
    #[arg(long, overrides_with = "no_source", help_heading = heading::CODE)]
    source: bool,
    /// Print instructions alone
    #[arg(long, help_heading = heading::CODE)]
    no_source: bool,
    /// Print the source lines with the largest shares before the instructions
    #[arg(short = 'l', long, help_heading = heading::CODE)]
    print_line: bool,
    /// Print the paths of source files whole
    #[arg(short = 'P', long, help_heading = heading::CODE)]
    full_paths: bool,
    /// Look for source files below this directory
    #[arg(long, value_name = "FOLDER", help_heading = heading::CODE)]
    prefix: Option<PathBuf>,
    /// With --prefix, take so many directories from the paths that the compiler recorded
    #[arg(long, value_name = "N", requires = "prefix", help_heading = heading::CODE)]
    prefix_strip: Option<usize>,
    /// Print the bytes of instructions
    #[arg(long, help_heading = heading::CODE)]
    asm_raw: bool,
    /// Write instructions of x86 as AT&T does (att, the default) or as Intel does (intel)
    #[arg(short = 'M', long, value_name = "STYLE", value_parser = syntax, help_heading = heading::CODE)]
    disassembler_style: Option<Syntax>,
    /// The same as -M intel
    #[arg(long, conflicts_with = "disassembler_style", help_heading = heading::CODE)]
    intel: bool,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    width: LineWidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
    #[command(flatten)]
    unsupported_options: UnsupportedArgs<OfAnnotate>,
}

fn percent_type(text: &str) -> Result<PercentType, String> {
    PercentType::parse(text)
        .ok_or_else(|| "it takes local-period, global-period, local-hits or global-hits".to_owned())
}

fn syntax(text: &str) -> Result<Syntax, String> {
    Syntax::parse(text).ok_or_else(|| "it takes att or intel".to_owned())
}

/// Runs `whit annotate`.
pub(crate) fn run(args: &AnnotateArgs) -> Result<u8> {
    if !(0.0..=100.0).contains(&args.percent_limit) {
        bail_usage!("--percent-limit takes a share between 0 and 100");
    }
    let recording = args.input.open()?;
    if !args.may_be_of_kernel()
        && let Some(code) = args.annotated(&recording, false)?
    {
        return Ok(code);
    }
    let code = args.annotated(&recording, true)?;
    // With the kernel's names, an absent function is an error.
    Ok(code.unwrap_or(0))
}

impl AnnotateArgs {
    /// Annotates and prints; gives the exit code. `None` where nothing is found, and the kernel's code has no names.
    fn annotated(&self, recording: &Recording, names_kernel: bool) -> Result<Option<u8>> {
        let options = self.load.options(recording)?;
        let blocks = self.wants_intervals();
        let samples = Samples { leaves: true, blocks, names_kernel, ..Samples::default() };
        let reading = Reading::open(recording, &options);
        let (profile, finder) = answer(reading, WithCode(samples), self.quiet)?;
        let wanted = Wanted { dsos: self.dsos.clone(), event: self.event(&profile)? };
        let weights = Weights::new(&profile);
        let found = self.find(&profile, &weights, &wanted, &finder)?;
        if found.is_empty() && !names_kernel {
            return Ok(None);
        }
        check_handles(self.name().as_slice(), &profile)?;
        let chosen = match (found.is_empty(), self.name()) {
            (true, Some(name)) => {
                return Err(self.not_found(name, &profile, &weights, &wanted, &finder));
            }
            _ => found,
        };
        let functions: Vec<_> =
            chosen.into_iter().map(|one| self.take_apart(one, &finder)).collect();
        let annotated = Annotated { profile: &profile, weights: &weights, functions: &functions };
        let mut sources = Sources::new(self.source_place());
        self.print(&annotated, wanted.event, &finder, &mut sources)?;
        self.warn_of_missing(&sources);
        self.check_code(&annotated).map(Some)
    }

    /// False for a name that only a program's function can have, and for chosen binaries that are none of the kernel's.
    /// The kernel makes its list of symbols anew for each reader, and that takes longer than all else.
    fn may_be_of_kernel(&self) -> bool {
        let is_programs = |name: &str| name.contains("::") || name.contains(['<', '(', '@', ' ']);
        let is_kernels = |dso: &String| dso.starts_with('[') || !dso.contains('/');
        match self.name() {
            Some(name) if is_programs(name) => false,
            _ => self.dsos.is_empty() || self.dsos.iter().any(is_kernels),
        }
    }

    fn name(&self) -> Option<&str> {
        self.function.as_deref().or(self.symbol.as_deref())
    }

    fn event(&self, profile: &Profile) -> Result<Option<EventId>> {
        let Some(wanted) = &self.event else { return Ok(None) };
        let names = profile.events.iter().map(|event| &event.name);
        let is_it =
            |name: &OutsideText| name.exact() == wanted || name.escaped() == wanted.as_str();
        match names.clone().position(is_it) {
            Some(at) => Ok(Some(EventId(at as u32))),
            None => {
                let known: Vec<_> = names.map(OutsideText::to_string).collect();
                bail_usage!(
                    "the recording has no event {wanted}: its events are {}",
                    known.join(", ")
                )
            }
        }
    }

    fn find(
        &self,
        profile: &Profile,
        weights: &Weights<'_>,
        wanted: &Wanted,
        finder: &CodeFinder,
    ) -> Result<Vec<Chosen>> {
        if profile.events.iter().all(|event| event.samples == 0) {
            bail!("the recording {} has no samples", profile.recording.path);
        }
        let Some(name) = self.name() else {
            let found = weights.hottest(self.limit, self.percent_limit, wanted, finder);
            if found.is_empty() {
                bail!(
                    "no function has samples{}: list all code that has with `whit report --no-children -s \
                     dso,symbol`{}",
                    self.limits(),
                    no_symbols(profile)
                );
            }
            return Ok(found);
        };
        Ok(weights.find(name, wanted, finder))
    }

    /// The options that leave functions out, for messages.
    fn limits(&self) -> String {
        let mut limits = Vec::new();
        if !self.dsos.is_empty() {
            limits.push(format!("in {}", self.dsos.join(", ")));
        }
        if let Some(event) = &self.event {
            limits.push(format!("of {event}"));
        }
        limits.iter().map(|limit| format!(" {limit}")).collect()
    }

    fn not_found(
        &self,
        name: &str,
        profile: &Profile,
        weights: &Weights<'_>,
        wanted: &Wanted,
        finder: &CodeFinder,
    ) -> anyhow::Error {
        let limits = self.limits();
        let around = weights.inlined_into(name, finder);
        if !around.is_empty() {
            return usage(anyhow::anyhow!(
                "{name} is only inlined{limits}, and its samples are in the functions around it: annotate {}",
                list(around.iter())
            ));
        }
        let names = weights.names(wanted);
        let alike: Vec<_> = names.iter().filter(|known| known.exact().contains(name)).collect();
        let nearest = || whit_events::nearest(name, names.iter().map(OutsideText::exact));
        let advice = match (&alike[..], nearest()) {
            ([], None) => String::new(),
            ([], Some(nearest)) => format!("did you mean '{nearest}'? To choose another one, "),
            (alike, _) => {
                format!("did you mean {}? To choose another one, ", list(alike.iter().copied()))
            }
        };
        usage(anyhow::anyhow!(
            "no sample{limits} is in a function named {name}: {advice}list the functions with `whit report \
             --no-children -s dso,symbol`{}",
            no_symbols(profile)
        ))
    }

    fn take_apart(&self, chosen: Chosen, finder: &CodeFinder) -> AnnotatedFunction {
        let dso = chosen.dso;
        let syntax = if self.intel { Some(Syntax::Intel) } else { self.disassembler_style };
        let function = annotate(chosen, finder, syntax.unwrap_or_default());
        finder.release(dso);
        function
    }

    /// As `whit report` decides.
    fn wants_intervals(&self) -> bool {
        let are_shown = self.json || io::stdout().is_terminal();
        !self.no_intervals && (self.intervals || are_shown)
    }

    fn source_place(&self) -> Place {
        Place { prefix: self.prefix.clone(), strip: self.prefix_strip.unwrap_or(0) }
    }

    fn print(
        &self,
        annotated: &Annotated<'_>,
        event: Option<EventId>,
        finder: &CodeFinder,
        sources: &mut Sources,
    ) -> Result<()> {
        let options = AnnotateOptions {
            percent_type: self.percent_type,
            intervals: self.wants_intervals(),
            show_samples: self.show_nr_samples,
            show_period: self.show_total_period,
            raw: self.asm_raw,
            source: !self.no_source,
            summary: self.print_line,
            full_paths: self.full_paths,
            inline: self.load.inline(),
            skip_missing: self.skip_missing,
            grouping: if self.group { Grouping::Always } else { Grouping::AsRecorded },
            event,
            quiet: self.quiet,
            colour: self.terminal.colour(),
        };
        let mut out = self.width.fit(self.terminal.output(), !self.json);
        // Files below another root are wanted as they are there.
        let own = |line: &_| self.prefix.is_none().then(|| finder.own_line(line)).flatten();
        let mut line_text = |line: &_| own(line).or_else(|| sources.text(line));
        if self.json {
            write_json(&mut out, annotated, &options, &mut line_text)?;
            writeln!(out)?;
        } else {
            write_text(&mut out, annotated, &options, &mut line_text)?;
        }
        Ok(out.flush()?)
    }

    /// Says once which source files are not at hand.
    fn warn_of_missing(&self, sources: &Sources) {
        let missing = sources.missing();
        if missing.len() == 0 || self.quiet {
            return;
        }
        let more = missing.len().saturating_sub(MAX_LISTED);
        let mut files: Vec<_> =
            missing.take(MAX_LISTED).map(|path| path.display().to_string()).collect();
        if more > 0 {
            files.push(format!("and {more} more"));
        }
        message::warning(format_args!(
            "source files are not at hand, and their lines have numbers alone (name their root with --prefix, or \
             leave lines out with --no-source): {}",
            files.join(", ")
        ));
    }

    /// Says which functions have no code. That is a failure where no function has.
    fn check_code(&self, annotated: &Annotated<'_>) -> Result<u8> {
        let functions = annotated.functions;
        if functions.iter().any(|function| function.code.is_ok()) {
            return Ok(0);
        }
        let Some(Err(reason)) = functions.first().map(|function| &function.code) else {
            return Ok(0);
        };
        let profile = annotated.profile;
        let name = &profile.functions[functions[0].chosen.function.index()].name;
        bail!("the instructions of {name} are not at hand: {reason}")
    }
}

/// Some names, the rest counted.
fn list<'a>(names: impl ExactSizeIterator<Item = &'a OutsideText>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let mut listed: Vec<_> = names.take(MAX_LISTED).map(|name| format!("'{name}'")).collect();
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    listed.join(", ")
}

/// Binaries without symbols may hold the wanted function.
fn no_symbols(profile: &Profile) -> String {
    let missing = profile.warnings.iter().filter(|warning| {
        matches!(warning, Warning::NoSymbols { .. } | Warning::MoreWithoutSymbols { .. })
    });
    missing.map(|warning| format!("\n{}", warning_text(warning))).collect()
}
