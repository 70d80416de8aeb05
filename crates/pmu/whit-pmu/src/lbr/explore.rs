//! Every sequence of events on a machine with a few CPUs and address spaces.
//!
//! The machine is a graph: the running task of each CPU, the owners of the records in its
//! registers, the policy's state. A breadth-first search visits every state that any sequence of
//! steps leads to, and looks in each whether a sample taken there would show forbidden records. The
//! first such state is found by one of the shortest sequences.
//!
//! Registers are modelled as the set of those whose records *may* be in them: to record adds to the set
//! and nothing but a reset, a restore or a deep sleep takes from it. Address spaces never end: an exit ends
//! a task, and others of its address space may go on. Both allow more than a machine can do.

mod machine;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::{BranchFilter, LbrPolicy};

use machine::State;
pub use machine::{CPUS_MAX, MMS_MAX, Step, StepKind};

/// The explored machine.
#[derive(Clone, Debug)]
pub struct Exploration<'a> {
    /// CPUs, up to [`CPUS_MAX`].
    pub cpus: usize,
    /// Address spaces, up to [`MMS_MAX`].
    pub mms: usize,
    /// Filters that events may have.
    pub filters: &'a [BranchFilter],
    /// States after which the search gives up.
    pub states_max: usize,
}

/// Result of an exploration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// States that were visited.
    pub states: usize,
    /// Steps from one state to another.
    pub transitions: usize,
    /// The steps to a state in which a sample would show forbidden records.
    pub leak: Option<Vec<Step>>,
    /// False where the search gave up.
    pub complete: bool,
}

impl Exploration<'_> {
    /// Explores the machine with `policy` on every CPU.
    ///
    /// # Panics
    /// With more CPUs or address spaces than there is room for.
    pub fn run<P: LbrPolicy + Clone + Ord>(&self, policy: P) -> Found {
        assert!(self.cpus <= CPUS_MAX && self.mms <= MMS_MAX, "there is no room for so many");
        let start = State::new(policy);
        let mut search = Search { found: BTreeMap::new(), steps: Vec::new() };
        search.found.insert(start.clone(), 0);
        search.steps.push(None);
        let mut queue = VecDeque::from([(start, 0)]);
        let mut transitions = 0;
        while let Some((state, number)) = queue.pop_front() {
            if state.leaks(self.cpus) {
                return search.end(transitions, Some(number));
            }
            for step in state.steps(self.cpus, self.mms, self.filters) {
                let next = state.take(step);
                transitions += 1;
                if search.found.contains_key(&next) {
                    continue;
                }
                if search.found.len() == self.states_max {
                    let given_up = search.end(transitions, None);
                    return Found { complete: false, ..given_up };
                }
                let next_number = search.steps.len();
                search.found.insert(next.clone(), next_number);
                search.steps.push(Some((number, step)));
                queue.push_back((next, next_number));
            }
        }
        search.end(transitions, None)
    }
}

/// States with their numbers; for each number, the state and the step that it was reached from.
struct Search<P> {
    found: BTreeMap<State<P>, usize>,
    steps: Vec<Option<(usize, Step)>>,
}

impl<P> Search<P> {
    fn end(&self, transitions: usize, leak: Option<usize>) -> Found {
        let leak = leak.map(|mut number| {
            let mut path = Vec::new();
            while let Some((before, step)) = self.steps[number] {
                path.push(step);
                number = before;
            }
            path.reverse();
            path
        });
        Found { states: self.found.len(), transitions, leak, complete: true }
    }
}

#[cfg(test)]
mod tests;
