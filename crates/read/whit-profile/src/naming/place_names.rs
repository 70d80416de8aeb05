//! Names of places, remembered by one thread.

use crate::call_chain::chain::CodePlace;
use crate::first_pass::prepare::Prepared;
use crate::naming::place_symbols::{NamedCode, PlaceNamer};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// Places that are remembered.
const MAX_REMEMBERED: usize = 1 << 18;

/// Names places. One per thread.
pub(crate) struct PlaceNames<'a> {
    namer: PlaceNamer<'a>,
    known: RefCell<FxHashMap<CodePlace, Rc<NamedCode>>>,
}

impl<'a> PlaceNames<'a> {
    pub(crate) fn new(prepared: &'a Prepared) -> Self {
        let namer = PlaceNamer::new(&prepared.dsos, &prepared.binaries);
        PlaceNames { namer, known: RefCell::default() }
    }

    /// The names and lines of a place.
    pub(crate) fn name(&self, place: CodePlace) -> Rc<NamedCode> {
        let mut known = self.known.borrow_mut();
        if let Some(named) = known.get(&place) {
            return named.clone();
        }
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        let named = Rc::new(self.namer.name(&place));
        known.insert(place, named.clone());
        named
    }
}
