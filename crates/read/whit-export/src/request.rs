//! Requests on the time lines of their threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use whit_profile::model::ThreadId;
use whit_types::TimestampNs;

/// A request: an interval of a thread or goroutine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The thread that serves it; of a goroutine, one of its process.
    pub thread: ThreadId,
    /// The number of the goroutine that serves it.
    pub goroutine: Option<u64>,
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
    /// The lane of each request, in the same order. Requests of goroutines overlap: those of one lane do not.
    lanes: Vec<u32>,
}

impl Requests {
    /// Those of a recording, in any order.
    pub fn new(names: Vec<String>, mut requests: Vec<Request>) -> Requests {
        // One within another is behind it.
        requests.sort_by_key(|it| (it.thread, it.name, it.from, std::cmp::Reverse(it.to)));
        let is_alike = |a: &Request, b: &Request| (a.thread, a.name) == (b.thread, b.name);
        let lanes = requests.chunk_by(is_alike).flat_map(lanes_of).collect();
        Requests { names, requests, lanes }
    }

    /// By thread, name and lane, in order of time, with the number of the lane.
    pub(crate) fn by_lane(&self) -> Vec<(u32, Vec<&Request>)> {
        let mut all: Vec<_> = self.lanes.iter().copied().zip(&self.requests).collect();
        all.sort_by_key(|(lane, it)| (it.thread, it.name, *lane));
        let key = |(lane, it): &(u32, &Request)| (it.thread, it.name, *lane);
        let lanes = all.chunk_by(|a, b| key(a) == key(b));
        lanes.map(|of| (of[0].0, of.iter().map(|(_, it)| *it).collect())).collect()
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

/// Lanes of requests of one thread and name, in order of time. Those of a thread follow each other or are nested, and have
/// the first one.
fn lanes_of(requests: &[Request]) -> Vec<u32> {
    // The lanes of goroutines by their latest end.
    let mut free: BinaryHeap<Reverse<(TimestampNs, u32)>> = BinaryHeap::new();
    let mut last = 0;
    let lanes = requests.iter().map(|request| {
        if request.goroutine.is_none() {
            return 0;
        }
        let ended = free.peek().is_some_and(|Reverse((end, _))| *end <= request.from);
        let lane = match ended.then(|| free.pop()).flatten() {
            Some(Reverse((_, lane))) => lane,
            None => {
                last += 1;
                last
            }
        };
        free.push(Reverse((request.to, lane)));
        lane
    });
    lanes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_one_lane_do_not_overlap() {
        let request = |goroutine, from, to| Request {
            thread: ThreadId(0),
            goroutine,
            from: TimestampNs(from),
            to: TimestampNs(to),
            name: 0,
            key: None,
        };
        let all = [
            request(Some(7), 0, 10),
            request(Some(8), 5, 30),
            request(Some(9), 10, 20),
            request(Some(7), 12, 40),
            request(None, 13, 50),
            request(None, 14, 15),
        ];
        let requests = Requests::new(vec!["web".to_owned()], all.to_vec());
        let lanes: Vec<_> = requests
            .by_lane()
            .into_iter()
            .map(|(lane, of)| {
                let times = of.iter().map(|it| (it.from.0, it.to.0)).collect::<Vec<_>>();
                (lane, times)
            })
            .collect();
        let wanted = [
            (0, vec![(13, 50), (14, 15)]),
            (1, vec![(0, 10), (10, 20)]),
            (2, vec![(5, 30)]),
            (3, vec![(12, 40)]),
        ];
        assert_eq!(lanes, wanted);
    }
}
