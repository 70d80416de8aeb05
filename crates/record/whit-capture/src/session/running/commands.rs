//! Commands of the control channel.

use std::time::Instant;

use whit_host::control::{Command, Received};
use whit_perfdata::attr::AttrFlags;
use whit_perfdata::blocked::Edge;

use super::Running;
use crate::error::CaptureError;
use crate::notice::Notice;
use crate::session::listing;
use crate::session::outcome::End;

impl Running<'_> {
    /// Carries commands out, and answers each.
    pub(super) fn obey(&mut self, received: Received) -> Result<Option<End>, CaptureError> {
        for line in received.unknown {
            self.parts.listener.notice(Notice::UnknownCommand { line });
        }
        for command in received.commands {
            let end = self.obey_one(command)?;
            self.parts.waiter.acknowledge();
            if end.is_some() {
                return Ok(end);
            }
        }
        Ok(None)
    }

    fn obey_one(&mut self, command: Command) -> Result<Option<End>, CaptureError> {
        match command {
            Command::Enable(name) => self.command_enable(name)?,
            Command::Disable(name) => self.command_disable(name),
            Command::Evlist(how) => {
                let text = listing::list(self.parts.control.events(), how);
                self.parts.listener.notice(Notice::EventList { text });
            }
            Command::Snapshot => return self.snapshot(),
            Command::Drain(number) => self.readers.empty_rings(number),
            Command::Stop => return Ok(Some(End::Stopped)),
            Command::Ping => {}
        }
        Ok(None)
    }

    fn command_enable(&mut self, name: Option<String>) -> Result<(), CaptureError> {
        let found = match &name {
            Some(name) => self.parts.control.set_enabled(true, Some(name)),
            None => self.command_enable_all()?,
        };
        self.answer(true, found, name);
        Ok(())
    }

    /// Whether there is any event. A recording that its budget has paused goes on by itself.
    fn command_enable_all(&mut self) -> Result<bool, CaptureError> {
        let now = Instant::now();
        if self.wants(true, now) {
            return Ok(true);
        }
        let found = self.parts.control.switch_on(now)?;
        self.write_blocked(Edge::Begin);
        Ok(found)
    }

    fn command_disable(&mut self, name: Option<String>) {
        let found = match &name {
            None => {
                self.switch_off(Instant::now());
                true
            }
            Some(name) => self.parts.control.set_enabled(false, Some(name)),
        };
        self.answer(false, found, name);
    }

    fn answer(&mut self, on: bool, found: bool, name: Option<String>) {
        self.parts.listener.notice(match (found, name) {
            (false, Some(event)) => Notice::NoSuchEvent { event },
            (_, event) => Notice::EventsSwitched { event, on },
        });
    }

    /// SIGUSR2: a new output where outputs are switched, else the contents of the rings that are
    /// overwritten.
    pub(super) fn snapshot(&mut self) -> Result<Option<End>, CaptureError> {
        if self.parts.context.plan.schedule.switch.is_some() {
            return self.switch_output();
        }
        let mut events = self.parts.control.events().iter();
        if events.any(|event| event.event.attr.has(AttrFlags::WRITE_BACKWARD)) {
            self.readers.snapshot();
        } else {
            self.parts.listener.notice(Notice::NothingToSnapshot);
        }
        Ok(None)
    }
}
