//! The recorded machine over time: processes, mappings, binaries, cgroups.

pub(crate) mod address_map;
pub(crate) mod binaries;
pub(crate) mod cgroups;
pub(crate) mod change;
pub(crate) mod clock_relation;
pub(crate) mod dso_index;
pub(crate) mod dso_table;
pub(crate) mod kernel_load;
pub(crate) mod kernel_reference;
pub(crate) mod machine;
pub(crate) mod own_names;
pub(crate) mod process;
pub(crate) mod replay;
