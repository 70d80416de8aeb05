use super::*;
use crate::lbr::{Action, FlushAlways, LastOwnerRule, LbrEvent, OwnerTag, Running, View};
use std::string::{String, ToString};

/// Two CPUs and three address spaces.
const FULL: Exploration<'_> =
    Exploration { cpus: 2, mms: 3, filters: &[BranchFilter::USER], states_max: 3_000_000 };

/// One CPU, with events for both privileges in turn. CPUs share nothing but tasks that migrate, and any
/// task may come at any time here, so that this covers any number of CPUs.
const PRIVILEGES: Exploration<'_> = Exploration {
    cpus: 1,
    mms: 3,
    filters: &[BranchFilter::USER, BranchFilter::ALL],
    states_max: 3_000_000,
};

fn path(found: &Found) -> Vec<String> {
    found.leak.iter().flatten().map(ToString::to_string).collect()
}

#[test]
fn owner_tag_never_leaks() {
    for exploration in [FULL, PRIVILEGES] {
        let found = exploration.run(OwnerTag::default());
        std::println!("OwnerTag: {} states, {} transitions", found.states, found.transitions);
        assert_eq!(path(&found), Vec::<String>::new());
        assert!(found.complete && found.states > 500, "{} states", found.states);
    }
}

/// Things that a policy can be deaf to, to see whether the explorer finds it.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum To {
    SchedIn,
    MmDropped,
    Adopted,
    Foreign,
    Installed,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Deaf(OwnerTag, To);

impl LbrPolicy for Deaf {
    fn on(&mut self, event: LbrEvent) -> Action {
        let heard = match event {
            LbrEvent::SchedIn(_) => To::SchedIn,
            LbrEvent::MmDropped => To::MmDropped,
            LbrEvent::Adopted(_) => To::Adopted,
            LbrEvent::Foreign(_) => To::Foreign,
            LbrEvent::Installed(_) => To::Installed,
            LbrEvent::SchedOut(_) | LbrEvent::Restored(_) => return self.0.on(event),
        };
        if heard == self.1 { Action::Keep } else { self.0.on(event) }
    }

    fn view(&self, running: Running, reader: BranchFilter) -> View {
        self.0.view(running, reader)
    }
}

/// The sequence that speaks against the rule of the last owner, exec left aside.
#[test]
fn the_last_owner_rule_leaks_over_an_exit() {
    let found = FULL.run(LastOwnerRule::default());
    std::println!("LastOwnerRule, {} states:\n  {}", found.states, path(&found).join("\n  "));
    assert!(found.leak.is_some());

    let without_exec = without(|kind| matches!(kind, StepKind::Exec(_) | StepKind::Borrow(_)));
    let steps = shortest_leak(LastOwnerRule::default(), &without_exec);
    std::println!("LastOwnerRule without exec:\n  {}", steps.join("\n  "));
    // P1 out, P2 in and running, P2 exits, P1 in.
    assert!(steps.iter().any(|step| step.contains("exit")), "{steps:?}");
    assert!(steps.last().is_some_and(|step| step.contains("switch to a task of mm")), "{steps:?}");
}

#[test]
fn flushing_always_leaks_over_an_exec_within_a_slice_alone() {
    let found = FULL.run(FlushAlways);
    std::println!("FlushAlways:\n  {}", path(&found).join("\n  "));
    assert!(path(&found).iter().any(|step| step.contains("exec")), "{found:?}");
    let others = without(|kind| matches!(kind, StepKind::Exec(_) | StepKind::Borrow(_)));
    assert_eq!(shortest_leak(FlushAlways, &others), Vec::<String>::new());
}

/// To call the registers nobody's after a guest ran, while its task goes on to record, leaks: the table
/// that this crate's policy was made from said so, and the explorer found it.
#[test]
fn every_event_is_needed() {
    for to in [To::SchedIn, To::MmDropped, To::Adopted, To::Foreign, To::Installed] {
        let found = PRIVILEGES.run(Deaf(OwnerTag::default(), to));
        assert!(found.leak.is_some(), "deaf to {to:?}");
    }
    let found = PRIVILEGES.run(UnownedAfterGuests(OwnerTag::default()));
    std::println!("nobody's after guests:\n  {}", path(&found).join("\n  "));
    assert!(path(&found).iter().any(|step| step.contains("guest")), "{found:?}");
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct UnownedAfterGuests(OwnerTag);

impl LbrPolicy for UnownedAfterGuests {
    fn on(&mut self, event: LbrEvent) -> Action {
        match event {
            LbrEvent::Foreign(_) => self.0.on(LbrEvent::Foreign(Running::Kernel)),
            event => self.0.on(event),
        }
    }

    /// Records without an owner would have to be shown, or none would be after a guest.
    fn view(&self, running: Running, reader: BranchFilter) -> View {
        let is_unowned = self.0 == OwnerTag::default();
        if is_unowned { View::all(reader) } else { self.0.view(running, reader) }
    }
}

#[test]
fn a_search_that_gives_up_says_so() {
    let found = Exploration { states_max: 10, ..FULL }.run(OwnerTag::default());
    assert!(!found.complete && found.states == 10);
}

fn without(left_out: impl Fn(StepKind) -> bool) -> impl Fn(StepKind) -> bool {
    move |kind| !left_out(kind)
}

/// The same search with some steps left out.
fn shortest_leak<P: LbrPolicy + Clone + Ord>(
    policy: P,
    allowed: &impl Fn(StepKind) -> bool,
) -> Vec<String> {
    let start = State::new(policy);
    let mut found = BTreeMap::from([(start.clone(), Vec::new())]);
    let mut queue = VecDeque::from([start]);
    while let Some(state) = queue.pop_front() {
        let path: Vec<String> = found[&state].clone();
        if state.leaks(1) {
            return path;
        }
        for step in state.steps(1, 3, &[BranchFilter::USER]) {
            let next = state.take(step);
            if allowed(step.kind) && !found.contains_key(&next) {
                let mut path = path.clone();
                path.push(step.to_string());
                found.insert(next.clone(), path);
                queue.push_back(next);
            }
        }
    }
    Vec::new()
}
