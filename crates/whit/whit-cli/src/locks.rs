//! `whit locks`.

use crate::brief::check_handles;
use crate::heading;
use crate::input::RecordingArgs;
use crate::progress::answer;
use crate::symbol_args::LoadArgs;
use crate::terminal::{TerminalArgs, WidthArgs, show};
use crate::wall::{StackFilterArgs, WaitLengthArgs, needs_switches};
use crate::without_match;
use anyhow::{Result, bail};
use whit_perfdata::reader::Recording;
use whit_profile::model::Profile;
use whit_profile::switches::{SamplesAndSwitches, SwitchOptions, Switches, WaitFilter};
use whit_profile::warning::Warning;
use whit_profile::{Reading, Samples};
use whit_view::locks::{By, DEFAULT_LIMIT, LockViewOptions, write_json, write_text};

/// Arguments of `whit locks`.
#[derive(clap::Args, Debug)]
pub(crate) struct LocksArgs {
    #[command(flatten)]
    input: RecordingArgs,
    /// Print the table as JSON, with every wait's call chains
    #[arg(long, help_heading = heading::OUTPUT)]
    json: bool,
    /// Make a row for each lock, for each callsite (the function that wants the lock), or for each holder (the thread
    /// that ended the wait, and the function that released the lock)
    #[arg(long, value_name = "KEY", default_value = "lock", hide_possible_values = true, help_heading = heading::ROWS)]
    by: Key,
    /// Print at most N rows [default: 20; with --json all]
    #[arg(long, value_name = "N", help_heading = heading::ROWS)]
    limit: Option<usize>,
    /// Print call chains of waits and of their holders below each row
    #[arg(short = 'g', long, help_heading = heading::ROWS)]
    call_graph: bool,
    #[command(flatten)]
    stacks: StackFilterArgs,
    /// Print only the table
    #[arg(short, long, help_heading = heading::OUTPUT)]
    quiet: bool,
    #[command(flatten)]
    waits: WaitLengthArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    width: WidthArgs,
    #[command(flatten)]
    terminal: TerminalArgs,
}

/// [`By`] on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Key {
    Lock,
    Callsite,
    Holder,
}

/// Runs `whit locks`.
pub(crate) fn run(args: &LocksArgs) -> Result<u8> {
    let options = args.view_options()?;
    let waits = args.waits.filter()?;
    let recording = args.input.open()?;
    let (mut profile, switches) = load(args, &recording, waits)?;
    check_handles(&options.filters.symbols, &profile)?;
    without_match::warn(&mut profile, &options.filters);
    if !switches.locks.kernel_recorded {
        needs_switches(&profile, &switches)?;
        needs_stacks(&profile, &switches)?;
    }
    if options.by == By::Holder && !switches.sources.wakeups {
        bail!(
            "{} has no wake-ups, and so no holders: record with whit record --engine=bpf --wakeups",
            profile.recording.path
        );
    }
    show(
        args.width.fit(args.terminal.output(), !args.json),
        args.json,
        |out| write_json(out, &profile, &switches, &options),
        |out| write_text(out, &profile, &switches, &options),
    )?;
    Ok(0)
}

fn load(args: &LocksArgs, recording: &Recording, waits: WaitFilter) -> Result<(Profile, Switches)> {
    let options = args.load.options(recording)?;
    let switches = SwitchOptions { locks: true, waits, ..SwitchOptions::default() };
    let question = SamplesAndSwitches { samples: Samples::default(), switches };
    let reading = Reading::open(recording, &options);
    let (mut profile, switches) = answer(reading, question, args.quiet)?;
    // No number of locks comes from samples.
    profile.warnings.retain(|warning| !matches!(warning, Warning::SamplesInStep { .. }));
    Ok((profile, switches))
}

/// Refuses a recording whose waits have no call stacks.
fn needs_stacks(profile: &Profile, switches: &Switches) -> Result<()> {
    if !switches.sources.stacks {
        bail!(
            "{} has no call stacks of switches, which tell waits for locks from others: record with \
             whit record --engine=bpf --wakeups",
            profile.recording.path
        );
    }
    Ok(())
}

impl LocksArgs {
    fn view_options(&self) -> Result<LockViewOptions> {
        Ok(LockViewOptions {
            filters: self.stacks.filters(),
            by: match self.by {
                Key::Lock => By::Lock,
                Key::Callsite => By::CallSite,
                Key::Holder => By::Holder,
            },
            limit: self.limit.or((!self.json).then_some(DEFAULT_LIMIT)),
            chains: self.call_graph,
            inline: self.load.inline(),
            quiet: self.quiet,
        })
    }
}
