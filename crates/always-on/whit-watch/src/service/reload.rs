//! Other settings while the service runs, and its end.

use super::{Recording, Service, ServiceError, now};
use crate::clock::WindowClock;
use crate::recorder::Ended;
use crate::settings::Settings;
use crate::sinks::Sinks;
use std::time::{Duration, Instant};
use whit_sys::clock::ClockId;

/// Time that a recorder has for its last records.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

impl Service<'_> {
    /// Reads the configuration again. A bad one changes nothing.
    pub(super) fn reload(&mut self) {
        let now_ns = ClockId::MONOTONIC.now_ns().unwrap_or_default();
        self.notify.is_reloading(now_ns / 1000);
        let old = self.settings.clone();
        let loaded = self.source.load().map_err(|error| error.to_string());
        match loaded.and_then(|settings| self.apply(settings)) {
            Ok(is_other_recorder) => {
                self.counters().reloads.one();
                self.log.say_always("the configuration was read again");
                self.fallback = is_other_recorder.then_some(old);
            }
            Err(reason) => self.refuse(&reason),
        }
        self.notify.is_ready();
        self.publish();
    }

    fn refuse(&self, reason: &str) {
        self.counters().reloads_refused.one();
        self.log.say_always(format_args!("the old settings stay: {reason}"));
    }

    /// The first recorder with new settings does not record.
    pub(super) fn fall_back(&mut self, settings: Settings, ended: &Ended) {
        let last = ended.messages.lines().last().unwrap_or(&ended.how);
        self.refuse(&format!("the recorder refuses the new ones: {last}"));
        if let Err(reason) = self.apply(settings) {
            self.log.say(format_args!("the old settings cannot be used any more: {reason}"));
            self.again();
        }
        self.publish();
    }

    /// Makes all parts anew; true where that is so for the recorder, too.
    fn apply(&mut self, settings: Settings) -> Result<bool, String> {
        if settings == self.settings {
            return Ok(false);
        }
        if settings.socket() != self.settings.socket() || settings.metrics != self.settings.metrics
        {
            return Err("socket and metrics change at a restart alone".to_owned());
        }
        let sinks = self.maker.sinks(&settings)?;
        let triggers = self.maker.triggers(&settings, &self.fire)?;
        let keeper = self.maker.keeper(&settings)?;
        let is_other_recorder = settings.recorder_arguments() != self.settings.recorder_arguments();
        if is_other_recorder {
            self.drain_recorder();
        }
        self.cut();
        self.settings = settings;
        (self.keeper, self.keeper_bounds) = keeper.unzip();
        self.triggers = triggers;
        let old = std::mem::replace(&mut self.sinks, Sinks::start(sinks, &self.log));
        old.end();
        self.clock = WindowClock::new(self.settings.window.0, now(self.origin));
        let (bounds, has_sinks) = (self.bounds(), !self.sinks.is_empty());
        if let Recording::Runs { recorder, .. } = &self.recording {
            let begun_ns = self.clock.begun().as_nanos() as u64;
            self.follow(recorder.stream());
            recorder.stream().with_window(|window, _| {
                window.set_bounds(bounds);
                if has_sinks {
                    window.want_from(begun_ns);
                } else {
                    window.want_nothing();
                }
            });
        }
        if is_other_recorder || !matches!(self.recording, Recording::Runs { .. }) {
            self.replace_recorder();
        }
        Ok(is_other_recorder)
    }

    fn replace_recorder(&mut self) {
        self.gap_since.get_or_insert_with(Instant::now);
        let old = std::mem::replace(&mut self.recording, Recording::Ended);
        if let Recording::Runs { mut recorder, .. } = old {
            recorder.end();
        }
        self.again();
    }

    /// The recorder writes all that it has.
    fn drain_recorder(&mut self) {
        let Recording::Runs { recorder, .. } = &self.recording else { return };
        recorder.ask_to_end();
        let until = Instant::now() + DRAIN_TIMEOUT;
        while !recorder.stream().is_over() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            // Signals are looked at afterwards, but for their number.
            let ready = self.poller.wait(Some(left)).unwrap_or_default();
            let _ = self.waker.clear();
            if ready.iter().any(|ready| ready.token == super::SIGNAL) {
                return;
            }
        }
    }

    /// Ends the recorder, and gives the last window to the sinks.
    pub(super) fn end(mut self) -> Result<(), ServiceError> {
        self.notify.is_stopping();
        // A second signal does not wait.
        self.drain_recorder();
        self.cut();
        self.triggers.clear();
        self.sinks.end();
        self.log.close();
        Ok(())
    }
}
