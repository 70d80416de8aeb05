//! Indexes into the tables of a profile.

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id_type!(
    /// Index into [`Profile::events`](crate::model::Profile::events).
    EventId
);
id_type!(
    /// Index into [`Profile::threads`](crate::model::Profile::threads).
    ThreadId
);
id_type!(
    /// Index into [`Profile::comms`](crate::model::Profile::comms).
    CommId
);
id_type!(
    /// Index into [`Profile::cgroups`](crate::model::Profile::cgroups).
    CgroupId
);
id_type!(
    /// Index into [`Profile::facets`](crate::model::Profile::facets).
    FacetsId
);
id_type!(
    /// Index into [`Profile::texts`](crate::model::Profile::texts).
    TextId
);
id_type!(
    /// Index into [`Profile::dsos`](crate::model::Profile::dsos).
    DsoId
);
id_type!(
    /// Index into [`Profile::functions`](crate::model::Profile::functions).
    FunctionId
);
id_type!(
    /// Index into [`Profile::files`](crate::model::Profile::files).
    FileId
);
id_type!(
    /// Index into [`Profile::frames`](crate::model::Profile::frames).
    FrameId
);
id_type!(
    /// Index into [`Profile::nodes`](crate::model::Profile::nodes).
    NodeId
);

impl NodeId {
    /// No node: the parent of a root.
    pub const NONE: NodeId = NodeId(u32::MAX);
}
