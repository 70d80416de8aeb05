//! Says which events of a command line will share counters, before anything is counted.
//!
//! `cargo run -p whit-pmu --features alloc --example plan`

use whit_pmu::counter::CounterMask;
use whit_pmu::sched::plan::{PlanEvent, PlanGroup, plan};

fn main() {
    // Two general-purpose counters and the fixed one of instructions.
    let general = CounterMask::first_general(2);
    let counters = general.union(CounterMask::first_fixed(1));
    let event = |name: &str, allowed| PlanEvent { name: name.into(), allowed };
    let any = |name: &str| event(name, general);
    let group = |events: &[PlanEvent]| PlanGroup { events: events.to_vec(), pinned: false };

    let groups = [
        group(&[event("instructions", counters), any("cycles")]),
        group(&[any("cache-misses"), any("branch-misses")]),
        group(&[any("page-walks")]),
        group(&[any("a"), any("b"), any("c"), any("d")]),
    ];
    print!("{}", plan(counters, &groups));
}
