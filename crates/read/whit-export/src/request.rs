//! Requests on the time lines of their threads.

use whit_profile::model::ThreadId;
use whit_types::TimestampNs;

/// A request: an interval of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The thread that serves it.
    pub thread: ThreadId,
    /// Beginning.
    pub from: TimestampNs,
    /// End.
    pub to: TimestampNs,
    /// The number of its name in [`Requests::names`].
    pub name: u32,
    /// The key as text.
    pub key: Option<String>,
}

/// Requests with their names.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// Names, as the recorder was given them.
    pub names: Vec<String>,
    requests: Vec<Request>,
}

impl Requests {
    /// Those of a recording, in any order.
    pub fn new(names: Vec<String>, mut requests: Vec<Request>) -> Requests {
        // One within another is behind it.
        requests.sort_by_key(|it| (it.thread, it.name, it.from, std::cmp::Reverse(it.to)));
        Requests { names, requests }
    }

    /// By thread and name, in order of time.
    pub(crate) fn by_thread_and_name(&self) -> impl Iterator<Item = &[Request]> {
        self.requests.chunk_by(|a, b| (a.thread, a.name) == (b.thread, b.name))
    }

    /// Those of a thread.
    pub(crate) fn of(&self, thread: ThreadId) -> &[Request] {
        let first = self.requests.partition_point(|request| request.thread < thread);
        let rest = &self.requests[first..];
        &rest[..rest.partition_point(|request| request.thread == thread)]
    }

    pub(crate) fn name(&self, request: &Request) -> &str {
        self.names.get(request.name as usize).map_or("", String::as_str)
    }
}
