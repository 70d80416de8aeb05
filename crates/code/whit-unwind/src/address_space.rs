//! Which module is mapped where in one process.

use std::ops::Range;

use whit_types::{Avma, Svma};

use crate::module::ModuleUnwindInfo;

/// Distance that the loader added to the stated addresses of a module; wraps around for a module
/// that was loaded below its stated address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bias(pub u64);

impl Bias {
    /// The bias of a module whose stated address `svma` is found at `avma`.
    pub fn between(avma: Avma, svma: Svma) -> Bias {
        Bias(avma.0.wrapping_sub(svma.0))
    }

    /// The stated address of `avma`.
    #[inline]
    pub fn to_svma(self, avma: Avma) -> Svma {
        Svma(avma.0.wrapping_sub(self.0))
    }

    /// The actual address of `svma`.
    #[inline]
    pub fn to_avma(self, svma: Svma) -> Avma {
        Avma(svma.0.wrapping_add(self.0))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bias: Bias,
    pub(crate) module: ModuleUnwindInfo,
}

/// The executable mappings of one process at one time.
///
/// A fork is a clone: modules are shared, the list is copied.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {
    /// Sorted, without overlap.
    mappings: Vec<Mapping>,
}

impl AddressSpace {
    /// Nothing mapped.
    pub fn new() -> AddressSpace {
        AddressSpace::default()
    }

    /// Maps `module` at `range`, over earlier mappings. An empty range maps nothing.
    ///
    /// Executable memory without a file belongs here as well, with [`ModuleUnwindInfo::none`]: the
    /// unwinder trusts a guessed return address only where it lies in a mapping.
    pub fn map(&mut self, range: Range<Avma>, bias: Bias, module: ModuleUnwindInfo) {
        if range.start >= range.end {
            return;
        }
        let (start, end) = (range.start.0, range.end.0);
        self.unmap(range);
        let at = self.mappings.partition_point(|mapping| mapping.start < start);
        self.mappings.insert(at, Mapping { start, end, bias, module });
    }

    /// Removes all mappings in `range`, cutting mappings that stick out of it.
    pub fn unmap(&mut self, range: Range<Avma>) {
        let (start, end) = (range.start.0, range.end.0);
        if start >= end {
            return;
        }
        let first = self.mappings.partition_point(|mapping| mapping.end <= start);
        let after = self.mappings.partition_point(|mapping| mapping.start < end);
        if first >= after {
            return;
        }
        let head = &self.mappings[first];
        let head = (head.start < start).then(|| Mapping { end: start, ..head.clone() });
        let tail = &self.mappings[after - 1];
        let tail = (tail.end > end).then(|| Mapping { start: end, ..tail.clone() });
        self.mappings.splice(first..after, head.into_iter().chain(tail));
    }

    /// Number of mappings.
    pub fn len(&self) -> usize {
        self.mappings.len()
    }

    /// True where nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.mappings.is_empty()
    }

    /// The mapping that holds `avma`. `hint` is where the last look-up ended; most frames lie in
    /// the same module as the one before.
    #[inline]
    pub(crate) fn find(&self, avma: u64, hint: &mut usize) -> Option<&Mapping> {
        if let Some(mapping) = self.mappings.get(*hint)
            && mapping.start <= avma
            && avma < mapping.end
        {
            return Some(mapping);
        }
        let after = self.mappings.partition_point(|mapping| mapping.start <= avma);
        let index = after.checked_sub(1)?;
        let mapping = &self.mappings[index];
        if avma >= mapping.end {
            return None;
        }
        *hint = index;
        Some(mapping)
    }

    /// True where `avma` lies in a mapping.
    pub(crate) fn contains(&self, avma: u64) -> bool {
        self.find(avma, &mut { usize::MAX }).is_some()
    }

    /// End of the highest mapping.
    pub(crate) fn end(&self) -> u64 {
        self.mappings.last().map_or(0, |mapping| mapping.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use whit_types::Arch;

    use super::*;

    #[test]
    fn bias_is_applied_in_both_directions() {
        let bias = Bias::between(Avma(0x1000), Svma(0x40_1000));
        assert_eq!(bias.to_svma(Avma(0x1234)), Svma(0x40_1234));
        assert_eq!(bias.to_avma(Svma(0x40_1234)), Avma(0x1234));
    }

    proptest! {
        /// A list of mappings behaves as an array of addresses does.
        #[test]
        fn behaves_as_an_array(ops in prop::collection::vec((0u64..64, 0u64..64, any::<bool>()), 1..40)) {
            let modules: Vec<_> = ops.iter().map(|_| ModuleUnwindInfo::none(Arch::X86_64)).collect();
            let mut space = AddressSpace::new();
            let mut model = [0u32; 64];
            for ((start, end, map), module) in ops.into_iter().zip(modules) {
                let id = if map { module.id() } else { 0 };
                if map {
                    space.map(Avma(start)..Avma(end), Bias(0), module);
                } else {
                    space.unmap(Avma(start)..Avma(end));
                }
                (start..end).for_each(|address| model[address as usize] = id);
            }
            prop_assert!(space.mappings.iter().all(|mapping| mapping.start < mapping.end));
            let mut hint = 0;
            for (address, id) in model.into_iter().enumerate() {
                let found = space.find(address as u64, &mut hint);
                prop_assert_eq!(found.map_or(0, |mapping| mapping.module.id()), id);
                prop_assert_eq!(space.contains(address as u64), id != 0);
            }
        }
    }
}
