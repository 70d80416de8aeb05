//! Which event goes on which counter.

use crate::counter::{COUNTERS_MAX, CounterIndex, CounterMask};

/// An event that needs a counter.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct Request {
    /// Counters that can count it.
    pub allowed: CounterMask,
    /// The one that it is on or was on last, which it keeps where it can: nothing has to be written.
    pub previous: Option<CounterIndex>,
}

/// An event without a counter.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Hash)]
pub struct NoCounter {
    /// Its place among the requests.
    pub request: usize,
}

/// Gives every event a counter among `counters`, or none any.
///
/// Events keep their previous counters where those are allowed. The others take theirs in the order of
/// ascending choice, fixed counters first, so that general-purpose ones are left for events that need
/// one. Only where an event finds all of its counters taken are others moved, along a shortest-found
/// augmenting path; so a solution is found wherever there is one.
///
/// # Errors
/// An event that has no counter in any solution that has the events before it; `assigned` is
/// unspecified then.
///
/// # Panics
/// Where `assigned` is shorter than `requests`.
pub fn assign(
    requests: &[Request],
    counters: CounterMask,
    assigned: &mut [CounterIndex],
) -> Result<(), NoCounter> {
    if requests.len() > COUNTERS_MAX {
        return Err(NoCounter { request: COUNTERS_MAX });
    }
    let mut matching = Matching { requests, counters, on: [None; COUNTERS_MAX] };
    let mut waiting = [0; COUNTERS_MAX];
    let mut waiting_len = 0;
    for (index, request) in requests.iter().enumerate() {
        let kept = request.previous.filter(|counter| matching.is_free(*counter, request));
        match kept {
            Some(counter) => matching.on[counter.index()] = Some(index),
            None => {
                waiting[waiting_len] = index;
                waiting_len += 1;
            }
        }
    }
    let waiting = &mut waiting[..waiting_len];
    // Within one choice the order of requests stays: it makes the result deterministic.
    waiting.sort_unstable_by_key(|index| (requests[*index].allowed.len(), *index));
    for index in waiting {
        let mut visited = CounterMask::EMPTY;
        if !matching.place(*index, &mut visited) {
            return Err(NoCounter { request: *index });
        }
    }
    for (counter, index) in matching.on.iter().enumerate() {
        if let Some(index) = index {
            let bit = CounterMask::from_bits(1 << counter).first();
            assigned[*index] = bit.unwrap_or(assigned[*index]);
        }
    }
    Ok(())
}

struct Matching<'a> {
    requests: &'a [Request],
    counters: CounterMask,
    on: [Option<usize>; COUNTERS_MAX],
}

impl Matching<'_> {
    fn is_free(&self, counter: CounterIndex, request: &Request) -> bool {
        let usable = request.allowed.intersection(self.counters).contains(counter);
        usable && self.on[counter.index()].is_none()
    }

    /// Puts an event on a free counter, else on one whose event finds another. Each counter is visited
    /// once, so this goes as deep as there are counters at most.
    fn place(&mut self, index: usize, visited: &mut CounterMask) -> bool {
        let request = self.requests[index];
        let usable = request.allowed.intersection(self.counters).without(*visited);
        let in_order = || usable.fixed().iter().chain(usable.without(usable.fixed()).iter());
        if let Some(counter) = in_order().find(|counter| self.is_free(*counter, &request)) {
            self.on[counter.index()] = Some(index);
            return true;
        }
        for counter in in_order() {
            if visited.contains(counter) {
                continue;
            }
            visited.insert(counter);
            let Some(other) = self.on[counter.index()] else { continue };
            if self.place(other, visited) {
                self.on[counter.index()] = Some(index);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    fn request(bits: u64) -> Request {
        Request { allowed: CounterMask::from_bits(bits), previous: None }
    }

    fn all() -> CounterMask {
        CounterMask::from_bits(u64::MAX)
    }

    fn solve(requests: &[Request], counters: CounterMask) -> Option<Vec<CounterIndex>> {
        let mut assigned = vec![CounterIndex::general(0); requests.len()];
        assign(requests, counters, &mut assigned).ok().map(|()| assigned)
    }

    /// Every way to give counters out, tried one after the other.
    fn possible(requests: &[Request], free: CounterMask) -> bool {
        let Some((first, rest)) = requests.split_first() else { return true };
        first
            .allowed
            .intersection(free)
            .iter()
            .any(|counter| possible(rest, free.without(CounterMask::single(counter))))
    }

    #[test]
    fn fixed_counters_come_first_and_leave_general_ones_to_others() {
        let fixed = 1 << 32;
        let counters = CounterMask::from_bits(1 | fixed);
        let names = |bits: &[u64]| {
            let requests: Vec<_> = bits.iter().map(|bits| request(*bits)).collect();
            solve(&requests, counters)
                .map(|counters| counters.iter().map(|counter| counter.index()).collect::<Vec<_>>())
        };
        assert_eq!(names(&[1 | fixed]), Some(vec![32]));
        assert_eq!(names(&[1 | fixed, 1]), Some(vec![32, 0]));
        assert_eq!(names(&[1 | fixed, 1, 1]), None);
        assert_eq!(names(&[2]), None, "a counter that there is not");
    }

    #[test]
    fn overlapping_constraints_are_tracked_back() {
        // Ascending choice alone fails: {0,3}, {1,3} and {2,3} may leave nothing for {0,1,2}.
        let bits = [0b1001, 0b1010, 0b1100, 0b0111];
        let requests: Vec<_> = bits.iter().map(|bits| request(*bits)).collect();
        assert!(solve(&requests, all()).is_some());
    }

    #[test]
    fn events_without_a_counter_are_named() {
        let mut assigned = [CounterIndex::general(0); 3];
        let requests = [request(0b11), request(0b11), request(0b11)];
        let error = assign(&requests, all(), &mut assigned);
        assert_eq!(error, Err(NoCounter { request: 2 }));
        let many = vec![request(u64::MAX); 49];
        assert_eq!(assign(&many, all(), &mut []), Err(NoCounter { request: 48 }));
    }

    fn requests() -> impl Strategy<Value = Vec<Request>> {
        let counter = |bit: u8| {
            if bit < 5 { CounterIndex::general(bit) } else { CounterIndex::fixed(bit - 5) }
        };
        let mask = (0..256_u64).prop_map(|bits| (bits & 0x1f) | ((bits >> 5) << 32));
        let one = (mask, prop::option::of(0..8_u8)).prop_map(move |(bits, previous)| Request {
            allowed: CounterMask::from_bits(bits),
            previous: previous.map(counter),
        });
        prop::collection::vec(one, 0..9)
    }

    proptest! {
        #![proptest_config(crate::testing::cases(2000))]

        /// Never invalid, and a solution wherever there is one.
        #[test]
        fn as_good_as_exhaustive_matching(requests in requests(), counters in 0..256_u64) {
            let counters = CounterMask::from_bits((counters & 0x1f) | ((counters >> 5) << 32));
            let solution = solve(&requests, counters);
            prop_assert_eq!(solution.is_some(), possible(&requests, counters));
            if let Some(solution) = solution {
                let taken: CounterMask = solution.iter().copied().collect();
                prop_assert_eq!(taken.len() as usize, requests.len());
                for (request, counter) in requests.iter().zip(&solution) {
                    prop_assert!(request.allowed.intersection(counters).contains(*counter));
                }
            }
        }

        /// Events that are placed stay, for any later requests.
        #[test]
        fn placed_events_stay(requests in requests()) {
            if let Some(solution) = solve(&requests, all()) {
                let again: Vec<_> = requests.iter().zip(&solution).map(|(request, counter)| {
                    Request { previous: Some(*counter), ..*request }
                }).collect();
                prop_assert_eq!(solve(&again, all()), Some(solution));
            }
        }
    }
}
