//! The recorder: its begin, its end, and its start after an end.

use super::{Recording, Service, ServiceError};
use crate::recorder::{self, LiveStream, StartError};
use std::time::{Duration, Instant};

/// Waits before the recorder is started again: doubled each time, from the first to the last.
const BACKOFF: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(500)..=Duration::from_secs(60);
/// After a recorder that ran this long, the waits begin anew.
const STEADY: Duration = Duration::from_secs(60);
/// The recorder empties its rings once a second, and a busy machine may delay it. After this time, it is asked.
const SILENCE: Duration = Duration::from_secs(10);
/// Time for the answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
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
        if !self.sinks.is_empty() {
            stream.with_window(|window, _| window.want_from(begun_ns));
        }
        if self.settings.keeps_seconds()
            && let Err(error) = stream.with_window(|window, _| window.compress())
        {
            self.log.say(format_args!("fewer seconds are kept: they are not compressed: {error}"));
        }
        let arguments = self.memory.arguments(&self.settings);
        let talk = (&self.waker, &self.log);
        let is_hurried = self.settings.keeps_seconds();
        let line = (self.program.as_path(), &arguments[..]);
        let recorder = recorder::start(line, stream, is_hurried, &self.signals, talk)?;
        self.shared.set_recorder(Some(recorder.pid()));
        self.follow(recorder.stream());
        self.mappings_lost = 0;
        let since = Instant::now();
        self.memory.begin();
        self.recording = Recording::Runs { recorder, since, is_announced: false, asked: None };
        Ok(())
    }

    pub(super) fn follow(&self, stream: &LiveStream) {
        self.keeper.iter().for_each(|keeper| keeper.follow(stream));
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
        self.end_a_hanging_recorder();
        match &self.recording {
            Recording::Runs { recorder, .. } if recorder.stream().is_over() => self.has_ended(),
            _ => Ok(()),
        }
    }

    /// Time until a recorder that stays silent has to be asked, or was asked for long enough.
    pub(super) fn until_silence(&self) -> Duration {
        match &self.recording {
            Recording::Runs { recorder, is_announced: true, asked, .. } => match asked {
                None => SILENCE.saturating_sub(recorder.stream().silent_for()),
                Some(asked) => ANSWER_TIMEOUT.saturating_sub(asked.elapsed()),
            },
            _ => Duration::MAX,
        }
    }

    /// A recorder may stand still while its pipe is open: it is stopped, or waits for a device for ever. Then it does not
    /// even answer. A quiet target is no reason, since an answer needs no records.
    fn end_a_hanging_recorder(&mut self) {
        let Recording::Runs { recorder, is_announced: true, asked, .. } = &mut self.recording
        else {
            return;
        };
        let silent_for = recorder.stream().silent_for();
        match *asked {
            None if silent_for < SILENCE => return,
            None => {
                *asked = Some(Instant::now());
                recorder.stream().ask_for_a_sign();
                return;
            }
            Some(at) if silent_for < at.elapsed() => {
                *asked = None;
                return;
            }
            Some(at) if at.elapsed() < ANSWER_TIMEOUT => return,
            Some(_) => {
                recorder.kill();
                // Its stream ends a moment later: until then, nothing more is to be done.
                *asked = Some(Instant::now());
            }
        }
        self.counters().recorder_hangs.one();
        let silent_s = silent_for.as_secs();
        self.log.say(format_args!(
            "the recorder hangs: it has written nothing for {silent_s} s, and does not answer; it is ended"
        ));
    }

    fn has_begun(&mut self) {
        self.fallback = None;
        self.count_gap();
        let gap = self.gap_since.take().map(|since| since.elapsed()).unwrap_or_default();
        self.gap_counted = Duration::ZERO;
        let of_window = self.origin.elapsed().saturating_sub(self.clock.begun());
        self.window_gap += gap.min(of_window);
        if std::mem::replace(&mut self.had_begun, true) {
            let gap = gap.as_secs_f64();
            self.log.say_always(format_args!("recording goes on: for {gap:.1} s, no recorder ran"));
        } else {
            let window = self.settings.window;
            // `whit bench watch` waits for the first word.
            self.log.say_always(format_args!("recording: a window ends every {window}"));
            self.notify.is_ready();
        }
    }

    /// Counts the time without a recorder up to now: it may last. The time before the first one is no loss.
    pub(super) fn count_gap(&mut self) {
        let Some(since) = self.gap_since.filter(|_| self.had_begun) else { return };
        let gap = since.elapsed();
        let more = gap.saturating_sub(self.gap_counted);
        self.counters().gap_ms.add(more.as_millis() as u64);
        self.gap_counted = gap;
    }

    /// Nobody asked the recorder to end.
    fn has_ended(&mut self) -> Result<(), ServiceError> {
        if self.had_begun {
            self.cut();
        }
        let recording = std::mem::replace(&mut self.recording, Recording::Ended);
        let Recording::Runs { mut recorder, since, is_announced, .. } = recording else {
            return Ok(());
        };
        self.gap_since.get_or_insert_with(Instant::now);
        self.shared.set_recorder(None);
        let ended = recorder.end();
        let is_short_of_memory = self.learn_of_memory(&ended);
        if !self.had_begun && !is_short_of_memory {
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
