//! News of the readers for the session.

use std::sync::mpsc::{Receiver, Sender, channel};

use whit_sys::Waker;

use crate::error::CaptureError;

/// News of a reader for the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderEvent {
    /// As much has been written as one output is to hold.
    SwitchDue,
    /// As much has been written as all of the recording may.
    SizeReached,
    /// No task is left that could write into the reader's rings.
    AllGone,
    /// The reader has ended: its stream cannot be written, or it could not wait.
    Ended,
}

/// Where readers leave their news.
#[derive(Clone, Debug)]
pub(super) struct SessionNotifier {
    sender: Sender<ReaderEvent>,
    wake: Waker,
}

impl SessionNotifier {
    /// A notifier, and where the news arrives.
    pub(super) fn open() -> Result<(SessionNotifier, Receiver<ReaderEvent>), CaptureError> {
        let (sender, receiver) = channel();
        let wake = Waker::new().map_err(CaptureError::system("create an event descriptor"))?;
        Ok((SessionNotifier { sender, wake }, receiver))
    }

    /// Wakes when there is news.
    pub(super) fn waker(&self) -> Waker {
        self.wake.clone()
    }

    pub(super) fn send(&self, news: ReaderEvent) {
        // The session listens until it has joined the reader.
        let _ = self.sender.send(news);
        let _ = self.wake.wake();
    }
}
