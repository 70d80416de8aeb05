//! Options that name whom to record.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use whit_host::named::Names;

/// Names of targets beside cgroups, which are among the options of events.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct NameArgs {
    /// Record only these containers, by their ids; twelve digits are enough
    #[arg(long, value_name = "ID,..", value_delimiter = ',')]
    container: Vec<String>,
    /// Record only these systemd units
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    unit: Vec<String>,
    /// Record only threads with these names, and all threads of processes with these names, also those
    /// that get the name later
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    comm: Vec<String>,
}

impl NameArgs {
    /// Whether an option is given, with names or without.
    pub(crate) fn are_given(&self) -> bool {
        [&self.container, &self.unit, &self.comm].iter().any(|names| !names.is_empty())
    }

    /// All names, with those of cgroups.
    pub(crate) fn with_cgroups(&self, cgroups: Vec<String>) -> Names {
        let given =
            |names: &[String]| names.iter().filter(|name| !name.is_empty()).cloned().collect();
        Names {
            cgroups,
            containers: given(&self.container),
            units: given(&self.unit),
            comms: given(&self.comm),
        }
    }
}
