//! The parts of debug information that names need.

/// Sections that name functions.
pub const SYMBOL_SECTIONS: [&str; 2] = [".symtab", ".strtab"];

/// Sections that tell inlined functions and lines, and the link to a file that several binaries share. Locations of
/// variables are not among them.
pub const DEBUG_SECTIONS: [&str; 11] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_str",
    ".debug_line",
    ".debug_line_str",
    ".debug_rnglists",
    ".debug_ranges",
    ".debug_aranges",
    ".debug_addr",
    ".debug_str_offsets",
    ".gnu_debugaltlink",
];

/// Sections of a file that several binaries share, as `dwz` makes it.
pub const SUPPLEMENT_SECTIONS: [&str; 5] =
    [".debug_info", ".debug_abbrev", ".debug_str", ".debug_line", ".debug_line_str"];

/// The wanted parts of one binary.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Parts {
    /// Single sections, where a server has them.
    Sections {
        /// Those that name functions.
        symbols: bool,
        /// Those that tell inlined functions and lines.
        debug_info: bool,
    },
    /// The whole file: for a binary that is not at hand, so that nothing else says where its code lies.
    Whole,
}
