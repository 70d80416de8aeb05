//! The last stage: events have stopped, the rings are empty. Losses are added up, the header is completed, the
//! command is waited for.

use std::io;
use std::time::{Duration, Instant};

use whit_engine_api::{DecodeCounts, EngineLosses, EngineSummary, OutputEnd};
use whit_host::named::Chosen;
use whit_host::target::Target;
use whit_perfdata::budget_history::BudgetHistory;
use whit_perfdata::ledger::Ledger;
use whit_sys::{ExitStatus, Workload};

use super::budget::BudgetKeeper;
use super::ledger::Ending;
use super::outcome::{End, Outcome};
use super::output_file::{EndedOutput, OutputFile};
use super::parts::SessionParts;
use super::reader_thread::ReaderThread;
use super::target_time;
use super::unreported_loss::{Losses, UnreportedLoss};
use super::wait::SessionWaiter;
use crate::error::CaptureError;
use crate::notice::Notice;

/// How long one look for signals takes while the command runs on.
const SIGNAL_INTERVAL: Duration = Duration::from_secs(10);
/// `SIGTERM` has this number on every architecture.
const SIGTERM: i32 = 15;

/// A recording that has ended, with all its records.
pub(super) struct Drained<'a> {
    parts: SessionParts<'a>,
    output: EndedOutput,
    /// `None` where the output could not be written.
    end: Option<End>,
    /// When events stopped.
    stopped: Instant,
    /// The recorder's CPU time when the rings were empty.
    used_ns: u64,
    decoded: DecodeCounts,
    /// How many threads were watched, and how many of these ran.
    ran: (u64, u64),
}

impl<'a> Drained<'a> {
    /// Stops the events, and takes the readers back. `drain` gives these, and the first error that one of them had.
    pub(super) fn new(
        mut parts: SessionParts<'a>,
        output: OutputFile,
        (end, stopped): (End, Instant),
        drain: impl FnOnce() -> (Vec<ReaderThread>, Option<io::Error>),
    ) -> Drained<'a> {
        parts.control.switch_off(stopped);
        parts.control.disable_side_band();
        let ran = parts.control.ran(&parts.context);
        let (readers, failed) = drain();
        let (end, failed) = match end {
            End::WriteFailed(error) => (None, Some(error)),
            end => (Some(end), failed),
        };
        let used_ns = output.used_ns();
        let mut decoded = DecodeCounts::default();
        readers.iter().for_each(|reader| decoded += reader.decode_counts());
        let shares = readers.into_iter().map(ReaderThread::into_share).collect();
        let output = output.ended(shares, failed);
        Drained { parts, output, end, stopped, used_ns, decoded, ran }
    }

    /// Completes the output, and waits for the command.
    pub(super) fn finish(mut self) -> Result<Outcome, CaptureError> {
        let OutputEnd { records, interpreted, losses, summary: stacks } =
            self.parts.control.end_output(Some(self.decoded));
        let unreported = self.write_losses(&losses);
        self.output.write_last(&records, interpreted);
        self.settle();
        self.terminate_workload();
        let ledger = self.ledger(&unreported, stacks.as_deref());
        self.say_what_ran(&ledger);
        let Drained { parts, output, end, stopped, .. } = self;
        let SessionParts {
            context, listener, control, mut outputs, meters, waiter, workload, ..
        } = parts;
        // From here on the target runs undisturbed.
        drop((control, meters));
        let (mut summary, failed) = outputs.close(output, &context, ledger, listener);
        let end = failed.map(End::WriteFailed).or(end).unwrap_or(End::ReaderEnded);
        let command = wait_for_command(workload, waiter, &end)?;
        if matches!(end, End::WriteFailed(_) | End::ReaderEnded) {
            summary.unrecorded = Some(stopped.elapsed());
        }
        Ok(Outcome { summary, end, command, stacks })
    }

    /// Writes records for losses that no record reports, and gives these.
    fn write_losses(&mut self, of_engine: &EngineLosses) -> Vec<UnreportedLoss> {
        let SessionParts { context, listener, control, meters, .. } = &mut self.parts;
        let losses = Losses { events: control.events(), of_engine };
        let unreported = match self.output.has_failed() {
            true => Vec::new(),
            false => losses.unreported(self.output.shares(), self.stopped),
        };
        let shares = self.output.shares();
        let unrecorded = meters.unrecorded(context.roots, losses, shares, *listener);
        for behind in [&unreported, &unrecorded] {
            self.output.write_losses(losses, behind);
        }
        unreported
    }

    fn settle(&mut self) {
        let SessionParts { context, listener, control, .. } = &mut self.parts;
        self.output.settle(&context.synthesis(control.events()), *listener);
    }

    /// As perf: who stops the recorder stops the command.
    fn terminate_workload(&mut self) {
        let stops = matches!(
            self.end,
            Some(End::Signal(_) | End::TargetEnded | End::Stopped | End::SizeReached)
        );
        if let Some(workload) = self.parts.workload.as_mut().filter(|_| stops)
            && let Err(errno) = workload.kill(SIGTERM)
        {
            let what = format!("ending '{}'", workload.command());
            self.parts.listener.notice(Notice::Skipped { what, why: errno.to_string() });
        }
    }

    /// The cost of the output, with the work of the engine.
    fn ledger(
        &mut self,
        unreported: &[UnreportedLoss],
        stacks: Option<&dyn EngineSummary>,
    ) -> Ledger {
        let SessionParts { context, listener, control, meters, budget, .. } = &mut self.parts;
        let (enabled, spans) = control.lap(self.stopped);
        meters.metering.settle(*listener);
        let ending = Ending { stopped: self.stopped, used_ns: self.used_ns, enabled };
        let mut ledger = self.output.ledger(meters, &ending, unreported, context.roots);
        if context.plan.output.files.switch.is_none() {
            (ledger.watched_threads, ledger.ran_threads) = self.ran;
        }
        ledger.names_chosen = context.plan.events.target.chosen().map_or(0, Chosen::count);
        ledger.period_redraws = control.end_redraws();
        if let Some(stacks) = stacks {
            stacks.enter(&mut ledger);
        }
        self.output.state_spans(spans);
        let history = budget.as_mut().and_then(BudgetKeeper::lap);
        let reduced = history.as_ref().and_then(BudgetHistory::reduction);
        reduced.into_iter().for_each(|reduced| listener.notice(Notice::Reduced(reduced)));
        ledger
    }

    /// Says so where threads ran without samples, or where none ran.
    fn say_what_ran(&mut self, ledger: &Ledger) {
        let SessionParts { context, listener, control, .. } = &mut self.parts;
        let samples = ledger.samples.saturating_add(ledger.lost_records);
        let (events, engine) = control.events_and_engine();
        let without_samples = target_time::compare(&context.plan, events, engine, samples);
        let no_thread_ran = no_thread_ran(ledger, &context.plan.events.target);
        without_samples.into_iter().chain(no_thread_ran).for_each(|notice| listener.notice(notice));
    }
}

/// The notice where none of the threads that were recorded ran.
fn no_thread_ran(ledger: &Ledger, target: &Target) -> Option<Notice> {
    let id = match target {
        Target::Processes(ids) => ids.first().map(|pid| pid.main_thread()),
        Target::Threads(ids) => ids.first().copied(),
        _ => None,
    };
    let threads = ledger.watched_threads;
    let has_stacks = ledger.blocked_at_begin > 0;
    ledger.no_thread_ran().then_some(Notice::NoThreadRan { threads, id, has_stacks })
}

/// Waits for the command. Where writing failed it runs on, and a signal to us is its signal too.
fn wait_for_command(
    workload: Option<Workload>,
    mut waiter: SessionWaiter,
    end: &End,
) -> Result<Option<ExitStatus>, CaptureError> {
    waiter.close_control()?;
    let Some(mut workload) = workload else { return Ok(None) };
    loop {
        if let Some(exit) = workload.try_wait()? {
            return Ok(Some(exit.status));
        }
        let woken = waiter.wait(Some(SIGNAL_INTERVAL))?;
        if let Some(signal) = woken.stop {
            if matches!(end, End::Signal(_)) {
                // Asked twice: do not wait for a command that ignores SIGTERM.
                return Ok(None);
            }
            let _ = workload.kill(signal.number());
        }
    }
}
