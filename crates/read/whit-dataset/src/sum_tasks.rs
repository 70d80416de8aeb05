//! Groups of rows, handed out to threads.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use whit_tables::TableError;

/// Groups that one thread reads before it takes the next ones.
const GROUPS_PER_TASK: usize = 4;

/// Groups of a file. Threads share no reader: it has one position in the file.
pub(crate) struct Task<R> {
    pub(crate) part: usize,
    pub(crate) reader: R,
    pub(crate) groups: Vec<usize>,
}

/// The work that comes.
pub(crate) struct Tasks<R>(Mutex<State<R>>);

struct State<R> {
    /// Files, by their places.
    parts: VecDeque<usize>,
    /// Further groups of files that were opened.
    rest: Vec<(usize, VecDeque<usize>)>,
    given_back: Vec<Task<R>>,
}

enum Next<R> {
    Task(Task<R>),
    File(usize),
    Groups(usize, Vec<usize>),
}

fn take(groups: &mut VecDeque<usize>) -> Vec<usize> {
    let count = groups.len().min(GROUPS_PER_TASK);
    groups.drain(..count).collect()
}

impl<R> State<R> {
    fn next(&mut self) -> Option<Next<R>> {
        if let Some(task) = self.given_back.pop() {
            return Some(Next::Task(task));
        }
        while let Some((part, groups)) = self.rest.last_mut() {
            if let taken @ [_, ..] = &take(groups)[..] {
                return Some(Next::Groups(*part, taken.to_vec()));
            }
            self.rest.pop();
        }
        self.parts.pop_front().map(Next::File)
    }
}

impl<R> Tasks<R> {
    /// All groups of these files.
    pub(crate) fn of(parts: VecDeque<usize>) -> Tasks<R> {
        Tasks(Mutex::new(State { parts, rest: Vec::new(), given_back: Vec::new() }))
    }

    /// The next groups; `None` behind the last.
    pub(crate) fn next(
        &self,
        open: &impl Fn(usize) -> Result<R, TableError>,
        groups_of: &impl Fn(&R) -> Vec<usize>,
    ) -> Result<Option<Task<R>>, TableError> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = lock();
        match state.next() {
            None => Ok(None),
            Some(Next::Task(task)) => Ok(Some(task)),
            Some(Next::Groups(part, groups)) => {
                drop(state);
                Ok(Some(Task { part, reader: open(part)?, groups }))
            }
            Some(Next::File(part)) => {
                // The others wait for the groups of the last file.
                let waiting = state.parts.is_empty().then_some(state);
                let reader = open(part)?;
                let mut all: VecDeque<usize> = groups_of(&reader).into();
                let groups = take(&mut all);
                waiting.unwrap_or_else(lock).rest.push((part, all));
                Ok(Some(Task { part, reader, groups }))
            }
        }
    }

    /// Takes groups back that were not read.
    pub(crate) fn give_back(&self, task: Task<R>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).given_back.push(task);
    }

    /// Whether all was handed out.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has_rest = state.rest.iter().any(|(_, groups)| !groups.is_empty());
        state.parts.is_empty() && state.given_back.is_empty() && !has_rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A reader has the number of its file, and each file so many groups.
        #[test]
        fn each_group_is_read_once(
            groups in prop::collection::vec(0..11_usize, 0..7),
            threads in 1..4_usize,
            gives_back in 0..3_usize,
        ) {
            let tasks = Tasks::of((0..groups.len()).collect());
            let open = |part: usize| Ok(part);
            let groups_of = |part: &usize| (0..groups[*part]).collect();
            let returns = Mutex::new(gives_back);
            let work = || {
                let mut read = Vec::new();
                while let Some(mut task) = tasks.next(&open, &groups_of).expect("no error") {
                    assert_eq!(task.part, task.reader);
                    let mut left = returns.lock().expect("a lock");
                    if *left > 0 && task.groups.len() > 1 {
                        *left -= 1;
                        let rest = task.groups.split_off(1);
                        tasks.give_back(Task { part: task.part, reader: task.reader, groups: rest });
                    }
                    drop(left);
                    read.extend(task.groups.into_iter().map(|group| (task.part, group)));
                }
                read
            };
            let mut read: Vec<_> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
                all.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
            });
            read.sort_unstable();
            let of_part = |(part, count): (usize, &usize)| (0..*count).map(move |group| (part, group));
            let expected: Vec<_> = groups.iter().enumerate().flat_map(of_part).collect();
            prop_assert_eq!(read, expected);
            prop_assert!(tasks.is_done());
        }
    }
}
