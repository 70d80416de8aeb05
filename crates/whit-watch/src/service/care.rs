//! The recorder: its begin, its end, and its start after an end.

use super::{Recording, Service, ServiceError};
use crate::recorder::{LiveStream, Recorder, StartError};
use std::time::{Duration, Instant};

/// Waits before the recorder is started again: doubled each time, from the first to the last.
const BACKOFF: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(60);
/// After a recorder that ran this long, the waits begin anew.
const STEADY: Duration = Duration::from_secs(60);
/// The waits.
#[derive(Debug)]
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff(*BACKOFF.start())
    }
}

impl Backoff {
    /// The next wait, after a recorder that ran for some time.
    fn after(&mut self, ran: Duration) -> Duration {
        if ran >= STEADY {
            *self = Backoff::default();
        }
        let wait = self.0;
        self.0 = (wait * 2).min(*BACKOFF.end());
        wait
    }
}

impl Service<'_> {
    pub(super) fn start_recorder(&mut self) -> Result<(), StartError> {
        let stream = LiveStream::new(self.bounds(), self.origin);
        let begun_ns = self.clock.begun().as_nanos() as u64;
        stream.with_window(|window, _| window.want_from(begun_ns));
        let arguments = self.settings.recorder_arguments();
        let talk = (&self.waker, &self.log);
        let recorder = Recorder::start(&self.program, &arguments, stream, &self.signals, talk)?;
        self.shared.set_recorder(Some(recorder.pid()));
        let since = Instant::now();
        self.recording = Recording::Runs { recorder, since, is_announced: false };
        Ok(())
    }

    /// Sees its begin and its end, and starts it again.
    pub(super) fn look_after_recorder(&mut self) -> Result<(), ServiceError> {
        match &mut self.recording {
            Recording::Runs { recorder, is_announced, .. }
                if !*is_announced && recorder.stream().has_begun() =>
            {
                *is_announced = true;
                self.has_begun();
            }
            Recording::Waits { until } if Instant::now() >= *until => self.again(),
            _ => {}
        }
        match &self.recording {
            Recording::Runs { recorder, .. } if recorder.stream().is_over() => self.has_ended(),
            _ => Ok(()),
        }
    }

    fn has_begun(&mut self) {
        self.fallback = None;
        let since = self.gap_since.take().unwrap_or_else(Instant::now);
        let of_window = self.origin.elapsed().saturating_sub(self.clock.begun());
        self.window_gap += since.elapsed().min(of_window);
        if std::mem::replace(&mut self.had_begun, true) {
            let gap = since.elapsed();
            self.counters().gap_ms.add(gap.as_millis() as u64);
            let gap = gap.as_secs_f64();
            self.log.tell(format_args!("records again: for {gap:.1} s, no recorder ran"));
        } else {
            self.log.tell("records");
            self.notify.is_ready();
        }
    }

    /// Nobody asked the recorder to end.
    fn has_ended(&mut self) -> Result<(), ServiceError> {
        if self.had_begun {
            self.cut();
        }
        let recording = std::mem::replace(&mut self.recording, Recording::Ended);
        let Recording::Runs { recorder, since, is_announced } = recording else { return Ok(()) };
        self.gap_since.get_or_insert_with(Instant::now);
        self.shared.set_recorder(None);
        let ended = recorder.end();
        if !self.had_begun {
            let code = ended.code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0);
            return Err(ServiceError::Recorder {
                messages: ended.messages,
                code: code.unwrap_or(1),
            });
        }
        if let Some(settings) = self.fallback.take().filter(|_| !is_announced) {
            self.fall_back(settings, &ended);
            return Ok(());
        }
        self.counters().recorder_ends.one();
        let last = ended.messages.lines().last().unwrap_or_default();
        self.log
            .say(format_args!("the recorder ended ({}): it is started again. {last}", ended.how));
        self.recording =
            Recording::Waits { until: Instant::now() + self.backoff.after(since.elapsed()) };
        Ok(())
    }

    pub(super) fn again(&mut self) {
        if let Err(error) = self.start_recorder() {
            // The program may be replaced at this moment.
            self.log.say(error);
            let wait = self.backoff.after(Duration::ZERO);
            self.recording = Recording::Waits { until: Instant::now() + wait };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_begin_anew_after_a_steady_recorder() {
        let mut backoff = Backoff::default();
        let waits: Vec<_> = (0..9).map(|_| backoff.after(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(backoff.after(STEADY), *BACKOFF.start());
        assert_eq!(backoff.after(Duration::ZERO), *BACKOFF.start() * 2);
    }
}
