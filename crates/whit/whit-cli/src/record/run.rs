//! Carries `whit record` out.

use super::embed::{self, Embedded};
use super::one_frame::FirstChains;
use super::probes::Probes;
use super::samples::arch;
use super::{RecordArgs, off_cpu, overhead};
use crate::message;
use crate::output;
use anyhow::Result;
use std::io::{self, IsTerminal};
use whit_capture::notice::{Listener, Notice};
use whit_capture::registers;
use whit_capture::session::{self, Outcome};
use whit_host::level::Level;
use whit_host::roots::Roots;

/// Shells add this to the number of a signal that ended a program.
const SIGNAL_BASE: u8 = 128;

/// Records; gives the exit code.
pub(crate) fn run(args: &RecordArgs) -> Result<u8> {
    if args.samples.lists_registers() {
        return list_registers();
    }
    // Unwind tables are made from buffers of many megabytes.
    whit_sys::memory::return_large_buffers();
    if let Some(pairs) = args.measure_overhead {
        return overhead::measure(&args.command, pairs, args.quiet);
    }
    let mut listener = Notices(args);
    let roots = Roots::default();
    let mut probes = Probes::default();
    let options = args.options(&roots, &mut probes, &mut listener)?;
    if args.dry_run {
        return Ok(0);
    }
    let outcome = session::record(&options, &roots, &mut listener)?;
    let waits =
        args.sideband.off_cpu.then(|| off_cpu::append(&options.output, args.off_cpu_threshold()));
    let waits = waits.transpose()?;
    let names = args.embed_symbols.map(|extent| embed::embed(&outcome, extent));
    if !args.quiet {
        message::answer(&outcome.summary);
        // With these options the output has another name, or is one of several.
        let has_its_name = args.switch_output.is_none() && !args.timestamp_filename;
        if has_its_name && outcome.stacks.is_none() {
            FirstChains::cut(&options.output).iter().for_each(message::warning);
        }
        outcome.stacks.iter().for_each(message::answer);
        waits.iter().for_each(message::answer);
        if let Some(Embedded::Written(names)) = &names {
            message::answer(names);
        }
        if args.verbose > 0 {
            outcome.stacks.iter().for_each(|stacks| message::answer(stacks.details()));
        }
    }
    Ok(match names {
        Some(Embedded::Stopped(signal)) => SIGNAL_BASE + signal.number() as u8,
        _ => exit_code(&outcome),
    })
}

fn exit_code(outcome: &Outcome) -> u8 {
    u8::try_from(outcome.exit_code()).unwrap_or(u8::MAX)
}

fn list_registers() -> Result<u8> {
    output::line(format_args!("available registers: {}", registers::list(arch()?).join(" ")))?;
    Ok(0)
}

/// Prints notices as the options ask.
struct Notices<'a>(&'a RecordArgs);

impl Listener for Notices<'_> {
    fn notice(&mut self, notice: Notice) {
        self.0.print(&notice);
    }

    fn when_set_up_is_slow(&mut self) -> Box<dyn FnOnce() + Send> {
        let is_shown = !self.0.quiet && io::stderr().is_terminal();
        Box::new(move || {
            if is_shown {
                message::answer("preparing; Ctrl-C ends it");
            }
        })
    }
}

impl RecordArgs {
    fn print(&self, notice: &Notice) {
        // On a terminal there is someone to press the keys.
        let has_no_reader = matches!(notice, Notice::Recording) && !io::stderr().is_terminal();
        match notice.level() {
            _ if has_no_reader => {}
            Level::Verbose if self.verbose == 0 || self.quiet => {}
            Level::Warning if self.quiet => {}
            Level::Answer if self.quiet => {}
            level => message::of_level(level, notice),
        }
    }
}
