//! What stands at an address, from the view of a sample.

use crate::chain::{ChainEntry, ChainMaker, CodePlace, Side};
use crate::load::Prepared;
use crate::place_names::PlaceNames;
use crate::process::Epoch;
use std::sync::Arc;
use whit_types::{Avma, Pid, TimestampNs};

/// Code at an address.
#[derive(Clone, Debug, Default)]
pub struct CodeAt {
    /// Function, where known.
    pub function: Option<Arc<str>>,
    /// Distance from the function's start.
    pub function_offset: u64,
    /// Path of the binary; `None` where no mapping explains the address.
    pub dso: Option<Arc<str>>,
}

/// Looks addresses up in the address space of a sample, at its time.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) names: &'a PlaceNames<'a>,
    pub(super) maker: &'a ChainMaker<'a>,
    pub(super) pid: Pid,
    pub(super) epoch: Option<&'a Epoch>,
    pub(super) time: TimestampNs,
}

impl Lookup<'_> {
    /// The kernel function at an address, and the distance from its start.
    pub fn kernel_function_at(&self, address: u64) -> Option<(Arc<str>, u64)> {
        let dso = self.prepared.model.kernel_at(Avma(address));
        let named = self.names.name(CodePlace { dso, place: address, kernel: true });
        let offset = named.address.0.checked_sub(named.function_start.0)?;
        named.function.clone().map(|function| (function, offset))
    }

    /// The code at an address of the kernel (the upper half) or of the process.
    pub fn code_at(&self, address: Avma) -> CodeAt {
        let side = if address.0 >> 63 == 0 { Side::User } else { Side::Kernel };
        let entry = ChainEntry { address, is_return_address: false, side };
        let place = self.maker.locate(entry, self.pid, self.epoch, self.time);
        let named = self.names.name(place);
        CodeAt {
            function: named.function.clone(),
            function_offset: named.address.0.wrapping_sub(named.function_start.0),
            dso: self.prepared.dso_path(place.dso).cloned(),
        }
    }
}
