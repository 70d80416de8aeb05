//! Compilers, and forms of debug information.

use clap::ValueEnum;
use std::path::Path;

use crate::installed::version_by;
use crate::named::named;

/// A compiler of the programs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum Compiler {
    /// GNU C++.
    #[value(name = "g++")]
    Gcc,
    /// Clang for C++.
    #[value(name = "clang++")]
    Clang,
    /// The compiler of Rust programs.
    #[value(name = "rustc")]
    Rust,
    /// The compiler of Go programs.
    Go,
}

impl Compiler {
    /// Whether there is such a form.
    pub(super) fn makes(self, form: Form) -> bool {
        match form {
            Form::Split | Form::Package => self != Compiler::Go,
            Form::Full | Form::DebugFile | Form::Dwz | Form::Compressed | Form::Nothing => true,
        }
    }

    /// Its own statement, where it is installed.
    pub(super) fn version(self) -> Option<String> {
        let option = if self == Compiler::Go { "version" } else { "--version" };
        version_by(Path::new(&self.to_string()), &[option]).ok()
    }
}

named!(Compiler);

/// A form of debug information.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, ValueEnum)]
pub(crate) enum Form {
    /// All in the program.
    Full,
    /// A stripped program, and a file that its debug link names.
    DebugFile,
    /// `.dwo` files beside the program.
    #[value(name = "dwo")]
    Split,
    /// These in a package, `.dwp`.
    #[value(name = "dwp")]
    Package,
    /// Moved by `dwz` into a file that two programs share.
    Dwz,
    /// Compressed sections.
    Compressed,
    /// A stripped program alone.
    #[value(name = "none")]
    Nothing,
}

named!(Form);
