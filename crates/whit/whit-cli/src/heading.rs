//! Headings of groups of options in `--help`.

pub(crate) const EVENTS: &str = "Events";
pub(crate) const TARGET: &str = "Target";
pub(crate) const CHAINS: &str = "Call chains";
pub(crate) const SAMPLES: &str = "Contents of samples";
pub(crate) const SIDEBAND: &str = "Switches and sideband";
pub(crate) const TIME: &str = "Time and control";
pub(crate) const RINGS: &str = "Rings and readers";
pub(crate) const AGGREGATION: &str = "Aggregation";
pub(crate) const ROWS: &str = "Rows";
pub(crate) const FILTER: &str = "Filter";
pub(crate) const SYMBOLS: &str = "Symbols";
pub(crate) const CODE: &str = "Code";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const GENERAL: &str = "General";
