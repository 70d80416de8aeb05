//! The choice of samples and frames.

use whit_profile::script::{Candidate, TimeBase};
use whit_types::{Avma, OutsideText};

use crate::hists::lists_function;

/// Which samples and frames are printed, and from when times count. Empty lists let everything pass.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// From when times are shown.
    pub time_base: TimeBase,
    /// Command names.
    pub comms: Vec<String>,
    /// Paths or names of binaries.
    pub dsos: Vec<String>,
    /// Functions.
    pub symbols: Vec<String>,
    /// Addresses among the symbols.
    pub addresses: Addresses,
    /// Only this event.
    pub event: Option<usize>,
    /// Functions that end a chain.
    pub stop_at: Vec<String>,
}

/// Ranges of addresses, each from a number in a list of symbols on.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    starts: Vec<u64>,
    length_bytes: u64,
}

impl Addresses {
    /// Those of the words that begin with `0x`.
    pub fn of(symbols: &[String], length_bytes: u64) -> Addresses {
        let number = |word: &String| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        Addresses { starts: symbols.iter().filter_map(number).collect(), length_bytes }
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// True for an address in a range, and for one in a function that begins at a range's start.
    fn have(&self, address: u64, function_start: Option<u64>) -> bool {
        let is_in = |start: &u64| {
            let distance = address.wrapping_sub(*start);
            distance < self.length_bytes.max(1) || function_start == Some(*start)
        };
        self.starts.iter().any(is_in)
    }
}

/// True where a list has a name, exactly or as it is printed.
fn names(list: &[String], name: OutsideText<&str>) -> bool {
    list.iter().any(|listed| name.exact() == listed || name.escaped() == listed.as_str())
}

impl Choice {
    /// True for samples that are printed.
    pub(super) fn wants(&self, candidate: &Candidate<'_>) -> bool {
        let Choice { comms, dsos, symbols, addresses, event, .. } = self;
        if event.is_some_and(|event| event != candidate.event) {
            return false;
        }
        let comm_passes = comms.is_empty() || candidate.comm.is_some_and(|comm| names(comms, comm));
        if !comm_passes || (dsos.is_empty() && symbols.is_empty()) {
            return comm_passes;
        }
        let code = candidate.address.map(|address| candidate.lookup.code_at(address));
        let code = code.unwrap_or_default();
        let passes = |list: &[String], name: Option<OutsideText<&str>>| {
            list.is_empty() || name.is_some_and(|name| names(list, name))
        };
        let dso = code.dso.as_ref().map(OutsideText::borrowed);
        let is_at = |address: Avma| {
            let is_known = code.function.is_some();
            let start = is_known.then(|| address.0.wrapping_sub(code.function_offset));
            !addresses.is_empty() && addresses.have(address.0, start)
        };
        let is_there = candidate.address.is_some_and(is_at);
        let is_in = || {
            let function = code.function.as_ref();
            symbols.is_empty() || function.is_some_and(|name| lists_function(symbols, name))
        };
        (is_there || is_in())
            && (passes(dsos, dso) || passes(dsos, code.dso.as_ref().map(OutsideText::base_name)))
    }

    /// True for functions whose callers are not printed.
    pub(super) fn ends_chain(&self, function: OutsideText<&str>) -> bool {
        !self.stop_at.is_empty() && lists_function(&self.stop_at, &function)
    }
}
