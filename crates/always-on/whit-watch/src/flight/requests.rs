//! Requests in the recorder's stream: those that are longer than a rule allows are events.

use super::recorder::Shared;
use std::sync::Arc;
use std::time::Duration;
use whit_live::Observer;
use whit_perfdata::reader::pipe_head;
use whit_perfdata::record::{RawRecord, record_type};
use whit_trigger::{RecordedRequest, Rule, Settings};
use whit_why::{SlowRequest, SlowRequests};

/// Characters of a key in messages and in the header of a dump.
const KEY_MAX: usize = 128;

/// Finds the requests that rules wait for.
#[derive(Debug)]
pub(super) struct RequestWatch {
    limits: Vec<(String, Duration)>,
    slow: Option<SlowRequests>,
    shared: Arc<Shared>,
    /// Those that the status has.
    uncertain: u64,
}

impl RequestWatch {
    /// `None` where no rule waits for a request.
    pub(super) fn of(settings: &Settings, shared: &Arc<Shared>) -> Option<Box<dyn Observer>> {
        let limit = |rule: &Rule| match rule {
            Rule::Request { name, longest } => Some((name.clone(), *longest)),
            _ => None,
        };
        let limits: Vec<_> = settings.on.iter().filter_map(limit).collect();
        let (slow, shared, uncertain) = (None, shared.clone(), 0);
        let watch = RequestWatch { limits, slow, shared, uncertain };
        (!watch.limits.is_empty()).then(|| Box::new(watch) as Box<dyn Observer>)
    }
}

impl Observer for RequestWatch {
    fn begin(&mut self, head: &[u8]) {
        let (events, features) = pipe_head(head);
        let limits = self.limits.iter().map(|(name, longest)| (name.as_str(), *longest));
        let limits: Vec<_> = limits.collect();
        self.slow = Some(SlowRequests::new(&events, &features, &limits));
        self.uncertain = 0;
    }

    fn see(&mut self, record: RawRecord<'_>) {
        let Some(slow) = &mut self.slow else { return };
        let shared = &self.shared;
        slow.take(record, &mut |request| shared.report(recorded(request)));
        if record.header.kind == record_type::FINISHED_ROUND {
            let before = std::mem::replace(&mut self.uncertain, slow.uncertain());
            shared.count_uncertain_requests(self.uncertain - before);
        }
    }
}

fn recorded(SlowRequest { name, pid, call }: SlowRequest) -> RecordedRequest {
    let took = Duration::from_nanos(call.duration_ns());
    let caller = match call.goroutine {
        Some(goroutine) => format!("goroutine {}", goroutine.number()),
        None => format!("thread {}", call.thread),
    };
    let mut detail = format!(" in {caller} of process {}", pid.0);
    if let Some(key) = &call.key {
        let key = key.to_string();
        detail.extend(", key ".chars().chain(key.chars().take(KEY_MAX)));
        detail.push_str(if key.chars().nth(KEY_MAX).is_some() { "..." } else { "" });
    }
    RecordedRequest { name: name.to_string(), took, detail }
}
