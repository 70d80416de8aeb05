//! The properties by which samples are summed up.

/// The facets of rows that are told apart by none.
pub(crate) const NO_FACETS: u32 = u32::MAX;

/// Samples with equal keys are summed up in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub(crate) event: u32,
    pub(crate) thread: u32,
    /// `u32::MAX` where the thread has no name.
    pub(crate) comm: u32,
    /// [`NO_FACETS`] where none are wanted.
    pub(crate) facets: u32,
    pub(crate) node: u32,
}

impl RowKey {
    pub(crate) fn context(&self) -> Context {
        Context { event: self.event, thread: self.thread, comm: self.comm, facets: self.facets }
    }
}

/// Properties that tell samples of one call chain apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Context {
    pub(crate) event: u32,
    pub(crate) thread: u32,
    pub(crate) comm: u32,
    /// [`NO_FACETS`] where none are wanted.
    pub(crate) facets: u32,
}
