//! Numbers of binaries.

/// Index into a [`DsoTable`](crate::machine_model::dso_table::DsoTable).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct DsoIndex(pub u32);

impl DsoIndex {
    /// Memory that no mapping explains.
    pub(crate) const UNKNOWN: DsoIndex = DsoIndex(0);
    /// The kernel image.
    pub(crate) const KERNEL: DsoIndex = DsoIndex(1);

    /// Position in the tables of binaries.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
