//! Names of kernel functions by address, for what tracepoints refer to.

use crate::chain::CodePlace;
use crate::load::Prepared;
use crate::place_symbols::PlaceNamer;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;
use whit_types::Avma;

/// Addresses that one thread remembers.
const MAX_REMEMBERED: usize = 1 << 16;

/// A function and the distance of the address from its start.
type Found = Option<(Arc<str>, u64)>;

/// Names kernel functions. One per thread.
pub(crate) struct KernelNames<'a> {
    prepared: &'a Prepared,
    remembered: RefCell<FxHashMap<u64, Found>>,
}

impl<'a> KernelNames<'a> {
    pub(crate) fn new(prepared: &'a Prepared) -> Self {
        KernelNames { prepared, remembered: RefCell::default() }
    }

    /// The function at an address.
    pub(crate) fn function_at(&self, address: u64) -> Found {
        let mut remembered = self.remembered.borrow_mut();
        if let Some(found) = remembered.get(&address) {
            return found.clone();
        }
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        let found = self.look_up(address);
        remembered.insert(address, found.clone());
        found
    }

    fn look_up(&self, address: u64) -> Found {
        let dso = self.prepared.model.kernel_at(Avma(address));
        let place = CodePlace { dso, place: address, kernel: true };
        let named = PlaceNamer::new(&self.prepared.dsos, &self.prepared.binaries).name(&place);
        let offset = named.address.0.checked_sub(named.function_start.0)?;
        named.function.map(|function| (function, offset))
    }
}
