//! Commands of the control channel.

use std::sync::mpsc::channel;
use std::time::Instant;

use whit_host::control::{Command, Received};
use whit_perfdata::blocked::Edge;

use super::reader_thread::Order;
use super::{End, Session, listing};
use crate::error::CaptureError;
use crate::notice::Notice;

impl Session<'_> {
    /// Carries commands out, and answers each.
    pub(super) fn obey(&mut self, received: Received) -> Result<Option<End>, CaptureError> {
        for line in received.unknown {
            self.listener.notice(Notice::UnknownCommand { line });
        }
        for command in received.commands {
            let end = self.obey_one(command)?;
            self.waiter.acknowledge();
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
                let text = listing::list(&self.shared.events, how);
                self.listener.notice(Notice::EventList { text });
            }
            Command::Snapshot => return self.snapshot(),
            Command::Stop => return Ok(Some(End::Stopped)),
            Command::Ping => {}
        }
        Ok(None)
    }

    fn command_enable(&mut self, name: Option<String>) -> Result<(), CaptureError> {
        if name.is_none() {
            self.enabled.start(Instant::now());
            self.engine.switch_on()?;
        }
        let found = self.set_enabled(true, name.as_deref());
        if name.is_none() {
            self.recorded.start();
            self.write_blocked(Edge::Begin);
        }
        self.answer(true, found, name);
        Ok(())
    }

    fn command_disable(&mut self, name: Option<String>) {
        let found = match &name {
            None => {
                self.switch_off(Instant::now());
                true
            }
            Some(name) => self.set_enabled(false, Some(name)),
        };
        self.answer(false, found, name);
    }

    fn answer(&mut self, on: bool, found: bool, name: Option<String>) {
        self.listener.notice(match (found, name) {
            (false, Some(event)) => Notice::NoSuchEvent { event },
            (_, event) => Notice::EventsSwitched { event, on },
        });
    }

    /// SIGUSR2: a new output where outputs are switched, else the contents of the rings that are
    /// overwritten.
    pub(super) fn snapshot(&mut self) -> Result<Option<End>, CaptureError> {
        if self.plan.schedule.switch.is_some() {
            return self.switch_output();
        }
        let has_backward = |session: &Self| {
            use whit_perfdata::attr::AttrFlags;
            let events = session.shared.events.iter();
            events.into_iter().any(|e| e.event.attr.has(AttrFlags::WRITE_BACKWARD))
        };
        if !has_backward(self) {
            self.listener.notice(Notice::NothingToSnapshot);
            return Ok(None);
        }
        let replies: Vec<_> = self
            .running
            .iter()
            .map(|ring_drainer| {
                let (reply, done) = channel();
                ring_drainer.order(Order::Snapshot(reply));
                done
            })
            .collect();
        // A reader that drops the reply has ended, and says so itself.
        for done in replies {
            let _ = done.recv();
        }
        Ok(None)
    }
}
