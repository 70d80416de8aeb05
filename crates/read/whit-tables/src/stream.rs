//! Rows that a thread reads ahead.

use crate::database::{Cancel, Database, Opened, POLL, TableError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use whit_profile::tables::StreamEnd;

/// Batches that wait for the reader.
const MAX_BATCHES: usize = 8;

enum Message<R> {
    Rows(Vec<R>),
    End(Result<(), String>),
}

/// Hands batches on; gives false where nobody takes them any more.
pub(crate) struct Outlet<R>(SyncSender<Message<R>>);

impl<R> Outlet<R> {
    pub(crate) fn send(&self, rows: Vec<R>) -> bool {
        rows.is_empty() || self.0.send(Message::Rows(rows)).is_ok()
    }
}

/// The other end.
pub(crate) struct Stream<R> {
    messages: Receiver<Message<R>>,
    batch: std::vec::IntoIter<R>,
}

impl<R: Send + 'static> Stream<R> {
    /// Starts a thread that reads a recording.
    pub(crate) fn start(
        opened: Arc<Opened>,
        read: impl FnOnce(&Opened, &Outlet<R>) -> Result<(), StreamEnd> + Send + 'static,
    ) -> Stream<R> {
        let (sender, messages) = sync_channel(MAX_BATCHES);
        std::thread::spawn(move || {
            let outlet = Outlet(sender);
            let end = match read(&opened, &outlet) {
                Ok(()) | Err(StreamEnd::Stopped) => Ok(()),
                Err(error @ (StreamEnd::Load(_) | StreamEnd::NoRoom)) => Err(error.to_string()),
            };
            // Where nobody listens any more, nobody misses it.
            let _ = outlet.0.send(Message::End(end));
        });
        Stream { messages, batch: Vec::new().into_iter() }
    }

    /// The next row.
    pub(crate) fn next(
        &mut self,
        database: &Database,
        recording: usize,
    ) -> Result<Option<R>, TableError> {
        loop {
            if let Some(row) = self.batch.next() {
                return Ok(Some(row));
            }
            let problem = match self.receive(database.cancel())? {
                Some(Message::Rows(rows)) => {
                    self.batch = rows.into_iter();
                    continue;
                }
                Some(Message::End(Ok(()))) => return Ok(None),
                Some(Message::End(Err(problem))) => problem,
                None => "the thread that read it ended unexpectedly; please report this".to_owned(),
            };
            return Err(database.error(recording, problem));
        }
    }

    fn receive(&self, cancel: &Cancel) -> Result<Option<Message<R>>, TableError> {
        loop {
            if cancel.is_cancelled() {
                return Err(TableError::Cancelled);
            }
            match self.messages.recv_timeout(POLL) {
                Ok(message) => return Ok(Some(message)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }
}
