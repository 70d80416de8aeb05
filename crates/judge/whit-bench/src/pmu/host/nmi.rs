//! Lines of the tracepoint `nmi:nmi_handler`.

use serde::Serialize;

/// NMI handlers that ran.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct Handlers {
    /// Number of runs of a handler.
    pub(crate) count: u64,
    /// How long they took together.
    pub(crate) total_ns: u64,
    /// How long the longest took.
    pub(crate) max_ns: u64,
    /// Handlers that the trace had no room for.
    pub(crate) lost: u64,
}

impl Handlers {
    /// How long one took on average.
    pub(crate) fn average_ns(&self) -> f64 {
        self.total_ns as f64 / self.count.max(1) as f64
    }
}

/// The event, behind its time.
const EVENT: &str = ": nmi_handler: ";
/// The field.
const LENGTH: &str = "delta_ns: ";
/// Linux's handler of the PMU.
const HANDLERS: [&str; 2] = ["perf_event_nmi_handler", "perf_ibs_nmi_handler"];

/// Adds up handlers of the PMU in the text of a trace; other lines are left out.
///
/// ```text
///   deep-4242  [001] d.Z1.  812.345678: nmi_handler: perf_event_nmi_handler() delta_ns: 1513 handled: 1
/// ```
pub(crate) fn parse(trace: &str) -> Handlers {
    let lengths = trace.lines().filter_map(|line| {
        let (_, event) = line.split_once(EVENT)?;
        let (handler, fields) = event.split_once('(')?;
        let length = fields.split_once(LENGTH)?.1.split_whitespace().next()?;
        HANDLERS.contains(&handler).then(|| length.parse::<u64>().ok()).flatten()
    });
    lengths.fold(Handlers::default(), |sum, ns| Handlers {
        count: sum.count + 1,
        total_ns: sum.total_ns.saturating_add(ns),
        max_ns: sum.max_ns.max(ns),
        lost: 0,
    })
}

/// The number of overwritten events, from the files `per_cpu/cpu*/stats` of a trace.
pub(super) fn overruns(stats: &str) -> u64 {
    let value = |line: &str| line.strip_prefix("overrun:")?.trim().parse::<u64>().ok();
    stats.lines().filter_map(value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As kernels print it; the last line as those after 6.15 do.
    const RECORDED: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 5/5   #P:2
#
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
            deep-4242    [001] d.Z1.   812.345678: nmi_handler: perf_event_nmi_handler() delta_ns: 1513 handled: 1
            deep-4242    [001] d.Z1.   812.345679: nmi_handler: nmi_cpu_backtrace_handler() delta_ns: 90 handled: 0
          <idle>-0       [000] d.Z2.   812.445678: nmi_handler: perf_event_nmi_handler() delta_ns: 961 handled: 1
            deep-4242    [001] d.Z1.   812.545678: nmi_handler: perf_event_nmi_handler() delta_ns: -3 handled: 1
            deep-4242    [001] d.Z1.   812.645678: nmi_handler: perf_event_nmi_handler() delta_ns: 526 handled: 1 source_bitmap: 0x0
";

    #[test]
    fn handlers_of_the_pmu_are_added_up() {
        let handlers = parse(RECORDED);
        assert_eq!(handlers, Handlers { count: 3, total_ns: 3000, max_ns: 1513, lost: 0 });
        assert!((handlers.average_ns() - 1000.0).abs() < f64::EPSILON);
        assert_eq!(parse("").average_ns(), 0.0);
    }

    #[test]
    fn overruns_are_added_up() {
        let stats =
            "entries: 12\noverrun: 3\ncommit overrun: 7\nbytes: 80\nentries: 1\noverrun: 4\n";
        assert_eq!(overruns(stats), 7);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".*(: nmi_handler: .*)?") {
            parse(&text);
            overruns(&text);
        }
    }
}
