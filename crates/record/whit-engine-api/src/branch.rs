//! `-b`, `-j`: which branches the CPU's branch records hold (`perf_event_attr.branch_sample_type`).
//!
//! Bits: `enum perf_branch_sample_type` in `include/uapi/linux/perf_event.h`. Names: those of
//! `perf record -j`.

use std::str::FromStr;

/// Bits by name.
const NAMES: [(&str, u64); 17] = [
    ("u", 1 << 0),
    ("k", 1 << 1),
    ("hv", 1 << 2),
    ("any", 1 << 3),
    ("any_call", 1 << 4),
    ("any_ret", 1 << 5),
    ("ind_call", 1 << 6),
    ("abort_tx", 1 << 7),
    ("in_tx", 1 << 8),
    ("no_tx", 1 << 9),
    ("cond", 1 << 10),
    ("stack", 1 << 11),
    ("ind_jmp", 1 << 12),
    ("call", 1 << 13),
    ("save_type", 1 << 16),
    ("priv", 1 << 18),
    ("counter", 1 << 19),
];
/// User mode, kernel, hypervisor: the rest of a filter says which branches.
const LEVELS: u64 = 0b111;
const USER: u64 = 1 << 0;
const CALL_STACK: u64 = 1 << 11;
const NO_FLAGS: u64 = 1 << 14;
const NO_CYCLES: u64 = 1 << 15;
const HW_INDEX: u64 = 1 << 17;

/// Kinds of branches to record, and the data to record with each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchFilter(pub u64);

/// A filter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is no branch filter; there are {}", known())]
pub struct BranchFilterError {
    name: String,
}

impl BranchFilter {
    /// Any branch, in the modes that the event counts in.
    pub const ANY: BranchFilter = BranchFilter(1 << 3);
    /// The user's calls that have not returned: a call chain. The flags and cycles of branches are
    /// not wanted; the hardware's index tells readers which entries two samples share.
    pub const CALL_CHAIN: BranchFilter =
        BranchFilter(USER | CALL_STACK | NO_FLAGS | NO_CYCLES | HW_INDEX);
}

impl FromStr for BranchFilter {
    type Err = BranchFilterError;

    /// Reads a comma-separated list. Modes alone stand for any branch in them.
    fn from_str(text: &str) -> Result<Self, BranchFilterError> {
        let bit = |name: &str| {
            let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            known.map(|(_, bit)| *bit).ok_or_else(|| BranchFilterError { name: name.to_owned() })
        };
        let mut names = text.split(',').map(str::trim);
        let mask = names.try_fold(0, |mask, name| Ok(mask | bit(name)?))?;
        let any = if mask & !LEVELS == 0 { Self::ANY.0 } else { 0 };
        Ok(BranchFilter(mask | any))
    }
}

fn known() -> String {
    NAMES.map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_those_of_perf() {
        // `perf record -vv` 6.1 prints them for the same filters.
        for (text, mask) in [
            ("any", 1 << 3),
            ("u", 1 | 1 << 3),
            ("any_call,u", 1 | 1 << 4),
            ("any,u,k", 0b1011),
            ("stack,u", 1 | 1 << 11),
            ("cond,call,ind_call,any_ret,save_type", 1 << 10 | 1 << 13 | 1 << 6 | 1 << 5 | 1 << 16),
            ("HV, k", 0b1110),
        ] {
            assert_eq!(text.parse(), Ok(BranchFilter(mask)), "{text}");
        }
        assert_eq!(BranchFilter::CALL_CHAIN.0, 0x2c801);
    }

    #[test]
    fn unknown_names_are_answered_with_the_known_ones() {
        for text in ["", "any,", "sideways"] {
            let error = text.parse::<BranchFilter>().unwrap_err();
            assert!(error.to_string().contains("any_call, any_ret"), "{error}");
        }
    }
}
