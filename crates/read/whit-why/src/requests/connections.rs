//! Requests of a server's connections, from the data that goes through them.
//!
//! A request begins where the server receives data and has not begun to answer an earlier one. It ends with the last call
//! that sends before the next request is received. So a request is known when the next one is.
//!
//! The call that sends the last data may end after the next request was received: by another thread, while this one was
//! off its CPU. So the beginning of each call that sends is recorded too, on kernels that have a place for that. On others,
//! requests that another thread answers are left out.

use rustc_hash::FxHashMap;
use whit_perfdata::request::SocketStep;
use whit_profile::tables::{ConnectionMark, RequestKey, RequestMark};
use whit_types::TimestampNs;

use super::call::{Call, Counts};

/// Calls of a connection that send at a time and are remembered.
const SENDERS_MAX: usize = 64;

/// A request, with the calls that answer it.
struct Request {
    from: TimestampNs,
    /// The thread that received it.
    reader: u32,
    key: Option<RequestKey>,
    /// The end of the last call that sent, and its thread.
    answered: Option<(TimestampNs, u32)>,
    /// Threads in calls that send.
    senders: Vec<u32>,
}

impl Request {
    fn of(mark: RequestMark) -> Request {
        Request {
            from: mark.time,
            reader: mark.thread,
            key: mark.key,
            answered: None,
            senders: Vec::new(),
        }
    }

    /// Whether it has an answer, and no call sends more of it.
    fn is_complete(&self) -> bool {
        self.answered.is_some() && self.senders.is_empty()
    }

    fn has_answer(&self) -> bool {
        self.answered.is_some() || !self.senders.is_empty()
    }

    /// Ends a call of a thread that sends; gives whether there was one.
    fn end_call(&mut self, thread: u32) -> bool {
        let sender = self.senders.iter().position(|sender| *sender == thread);
        sender.map(|at| self.senders.swap_remove(at)).is_some()
    }
}

/// A connection that has had data.
#[derive(Default)]
struct Connection {
    /// Requests whose last calls go on although the next one was received.
    earlier: Vec<Request>,
    /// The request that was received last.
    current: Option<Request>,
}

impl Connection {
    /// Takes received data. Gives the request before, if it is complete.
    fn receive(&mut self, mark: RequestMark) -> Option<Request> {
        if self.current.as_ref().is_some_and(|current| !current.has_answer()) {
            return None;
        }
        let before = self.current.replace(Request::of(mark))?;
        if before.senders.is_empty() {
            return Some(before);
        }
        self.earlier.push(before);
        None
    }

    fn begin_to_send(&mut self, thread: u32) {
        if let Some(current) = &mut self.current
            && current.senders.len() < SENDERS_MAX
        {
            current.senders.push(thread);
        }
    }

    /// Ends a call that sends. Gives an earlier request that is complete by it.
    fn end_call(&mut self, thread: u32, sent: Option<TimestampNs>) -> Option<Request> {
        let at = self.earlier.iter_mut().position(|request| request.end_call(thread));
        let Some(at) = at else {
            if let Some(current) = &mut self.current
                && current.end_call(thread)
            {
                current.answered = sent.map(|time| (time, thread)).or(current.answered);
            }
            return None;
        };
        let request = &mut self.earlier[at];
        request.answered = sent.map(|time| (time, thread)).or(request.answered);
        if !request.senders.is_empty() {
            return None;
        }
        let request = self.earlier.swap_remove(at);
        match (request.answered, &mut self.current) {
            // There was no answer: data that came meanwhile was more of the request.
            (None, Some(current)) => {
                let Request { from, reader, key, .. } = request;
                (current.from, current.reader, current.key) = (from, reader, key);
                None
            }
            _ => Some(request),
        }
    }

    /// Whether the server owes no answer.
    fn is_idle(&self) -> bool {
        self.earlier.is_empty() && self.current.as_ref().is_none_or(Request::is_complete)
    }
}

/// The connections of one name.
#[derive(Default)]
pub(super) struct Connections {
    known: FxHashMap<u64, Connection>,
    /// Whether beginnings of calls that send are recorded.
    has_begins: bool,
    /// `None` for a recording that is complete.
    live: Option<Live>,
}

/// Bounds of a recording that is still being made.
#[derive(Clone, Copy)]
pub(super) struct Live {
    /// Most connections that are remembered.
    pub(super) connections_max: usize,
    /// An answer that has taken longer ends its request.
    pub(super) longest_ns: u64,
}

impl Connections {
    pub(super) fn live(bounds: Live) -> Connections {
        Connections { live: Some(bounds), ..Connections::default() }
    }

    /// Takes the next mark. All of them come in order of time.
    pub(super) fn add(&mut self, mark: RequestMark, of: ConnectionMark, found: &mut Found<'_>) {
        let is_new = !self.known.contains_key(&of.connection);
        if is_new {
            self.make_room(found);
        }
        self.has_begins |= of.step == SocketStep::SendBegins;
        let connection = self.known.entry(of.connection).or_default();
        let (time, thread) = (mark.time, mark.thread);
        match of.step {
            SocketStep::Received(_) => found.add(connection.receive(mark)),
            SocketStep::Ended if self.live.is_some() && connection.is_idle() => {
                self.known.remove(&of.connection);
            }
            SocketStep::Ended => {}
            SocketStep::SendBegins => {
                // Data that the server sends by itself is no answer; the first may be one.
                found.counts.without_begin += u64::from(is_new);
                connection.begin_to_send(thread);
            }
            SocketStep::SentNothing => found.add(connection.end_call(thread, None)),
            SocketStep::Sent(_) => {
                if !self.has_begins {
                    found.counts.without_begin += u64::from(is_new);
                    connection.begin_to_send(thread);
                    found.take_ambiguous(&mut connection.current, thread);
                }
                found.add(connection.end_call(thread, Some(time)));
                let is_long = |request: &mut Request| {
                    let took_ns = time.since(request.from);
                    self.live.is_some_and(|live| took_ns > live.longest_ns) && request.is_complete()
                };
                found.add(connection.current.take_if(is_long));
            }
        }
    }

    /// Forgets connections that owe no answer, and all where that is not enough.
    fn make_room(&mut self, found: &mut Found<'_>) {
        let Some(Live { connections_max, .. }) = self.live else { return };
        if self.known.len() >= connections_max {
            self.known.retain(|_, connection| !connection.is_idle());
        }
        if self.known.len() >= connections_max {
            found.counts.left += self.forget();
        }
    }

    /// Forgets all; gives the number of requests without a complete answer.
    pub(super) fn forget(&mut self) -> u64 {
        let known = std::mem::take(&mut self.known);
        known.values().filter(|connection| !connection.is_idle()).count() as u64
    }

    /// Ends the recording: requests without an answer are open.
    pub(super) fn finish(self, found: &mut Found<'_>) {
        for connection in self.known.into_values() {
            for request in connection.earlier.into_iter().chain(connection.current) {
                found.counts.open += u64::from(!request.is_complete());
                found.add(request.is_complete().then_some(request));
            }
        }
        found.calls.sort_by_key(|call| call.to);
    }
}

/// Where calls go.
pub(super) struct Found<'a> {
    pub(super) calls: &'a mut Vec<Call>,
    pub(super) counts: &'a mut Counts,
}

impl Found<'_> {
    fn add(&mut self, request: Option<Request>) {
        let Some(Request { from, reader, key, answered: Some((to, thread)), .. }) = request else {
            return;
        };
        self.counts.handed_over += u64::from(reader != thread);
        self.calls.push(Call { thread, goroutine: None, from, to, depth: 0, key });
    }

    /// Without the beginning of a call that sends, data that another thread has received may be the next request.
    fn take_ambiguous(&mut self, current: &mut Option<Request>, thread: u32) {
        let is_ambiguous = |it: &mut Request| it.reader != thread;
        self.counts.ambiguous += u64::from(current.take_if(is_ambiguous).is_some());
    }
}

#[cfg(test)]
mod tests;
