//! Call stacks as lists of functions.

use crate::hists::{Filters, has_part, listed, names_function};
use whit_profile::model::{DsoKind, FunctionId, NodeId, Profile};
use whit_profile::switches::{SwitchRow, Switches};
use whit_types::OutsideText;

/// One frame: a function, and whether it was inlined. [`None`] where no call stack was recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChainEntry(pub Option<(FunctionId, bool)>);

/// Stands for the call stack where none was recorded.
const NO_STACK: &str = "[no call stack]";

impl ChainEntry {
    /// No call stack.
    pub const NONE: ChainEntry = ChainEntry(None);

    /// The function's name; that of an inlined one is marked.
    pub fn name(self, profile: &Profile) -> OutsideText {
        match self.0 {
            None => NO_STACK.into(),
            Some((function, inlined)) => {
                let name = profile.functions[function.index()].name.exact();
                let mark = if inlined { " (inlined)" } else { "" };
                format!("{name}{mark}").into()
            }
        }
    }

    /// The order of equally heavy functions: as by name, without making it.
    pub(super) fn order(self, profile: &Profile) -> (&str, bool) {
        match self.0 {
            None => (NO_STACK, false),
            Some((function, inlined)) => {
                (profile.functions[function.index()].name.exact(), inlined)
            }
        }
    }

    /// True for code of the kernel and its modules.
    pub(super) fn is_of_kernel(self, profile: &Profile) -> bool {
        self.0.is_some_and(|(function, _)| {
            let dso = profile.functions[function.index()].dso;
            matches!(profile.dsos[dso.index()].kind, DsoKind::Kernel | DsoKind::KernelModule)
        })
    }

    /// The binary's short name; empty where no call stack was recorded.
    pub fn dso(self, profile: &Profile) -> OutsideText {
        let dso = self.0.map(|(function, _)| profile.functions[function.index()].dso);
        dso.map(|dso| profile.dsos[dso.index()].short_name.clone()).unwrap_or_default()
    }
}

/// The profile's call stacks, and which of them are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Stacks<'a> {
    profile: &'a Profile,
    filters: &'a Filters,
    inline: bool,
}

impl<'a> Stacks<'a> {
    /// For the profile that was loaded with the switches.
    pub fn new(profile: &'a Profile, filters: &'a Filters, inline: bool) -> Stacks<'a> {
        Stacks { profile, filters, inline }
    }

    /// The names behind the stacks.
    pub fn profile(&self) -> &'a Profile {
        self.profile
    }

    /// The frames of a stack, innermost first; at least one.
    pub fn frames(&self, node: NodeId) -> Vec<ChainEntry> {
        let mut frames = Vec::new();
        let mut at = node;
        while let Some(call) = self.profile.nodes.get(at.index()) {
            let frame = &self.profile.frames[call.frame.index()];
            if self.inline || !frame.inlined {
                frames.push(ChainEntry(Some((frame.function, frame.inlined))));
            }
            at = call.parent;
        }
        if frames.is_empty() {
            frames.push(ChainEntry::NONE);
        }
        frames
    }

    /// Whether the filters let a stack of a command pass.
    pub fn wants(&self, comm: &OutsideText, frames: &[ChainEntry]) -> bool {
        let Filters { comms, dsos, symbols, symbol_part, .. } = self.filters;
        let functions = || frames.iter().filter_map(|place| Some(place.0?.0));
        let of_dso = |function: FunctionId| {
            let dso = &self.profile.dsos[self.profile.functions[function.index()].dso.index()];
            listed(dsos, &dso.short_name) || listed(dsos, &dso.path)
        };
        let of_symbol = |function: FunctionId| {
            names_function(symbols, self.profile, &self.profile.functions[function.index()])
        };
        let of_part = |function: FunctionId| {
            has_part(symbol_part.as_deref(), &self.profile.functions[function.index()])
        };
        listed(comms, comm)
            && (dsos.is_empty() || functions().any(of_dso))
            && (symbols.is_empty() || functions().any(of_symbol))
            && (symbol_part.is_none() || functions().any(of_part))
    }

    /// Rows that the filters let pass, with their stacks.
    pub fn rows(
        self,
        switches: &'a Switches,
    ) -> impl Iterator<Item = (usize, &'a SwitchRow, Vec<ChainEntry>)> {
        switches.rows.iter().enumerate().filter_map(move |(index, row)| {
            let frames = self.frames(row.node);
            let comm = &self.profile.comms[row.comm.index()];
            let tid = self.profile.threads[row.thread.index()].tid;
            if !self.filters.tids.is_empty() && !self.filters.tids.contains(&tid) {
                return None;
            }
            self.wants(comm, &frames).then_some((index, row, frames))
        })
    }
}
