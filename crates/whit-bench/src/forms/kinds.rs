//! Compilers, and forms of debug information.

use std::path::Path;
use std::process::Command;

use crate::named::go_by_name;
use crate::peer;

/// A compiler of the programs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Compiler {
    /// GNU C++.
    Gcc,
    /// Clang for C++.
    Clang,
    /// The compiler of Rust programs.
    Rust,
    /// The compiler of Go programs.
    Go,
}

impl Compiler {
    /// Every compiler, in the order of printing.
    pub const ALL: [Compiler; 4] = [Compiler::Gcc, Compiler::Clang, Compiler::Rust, Compiler::Go];

    fn name(self) -> &'static str {
        match self {
            Compiler::Gcc => "g++",
            Compiler::Clang => "clang++",
            Compiler::Rust => "rustc",
            Compiler::Go => "go",
        }
    }

    /// Whether there is such a form.
    pub(super) fn makes(self, form: Form) -> bool {
        match form {
            Form::Split | Form::Package => self != Compiler::Go,
            Form::Full | Form::DebugFile | Form::Dwz | Form::Compressed | Form::Nothing => true,
        }
    }

    /// Its own statement, where it is installed.
    pub(super) fn version(self) -> Option<String> {
        match self {
            Compiler::Go => {
                let output = Command::new("go").arg("version").output().ok()?;
                Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            }
            _ => peer::version(Path::new(self.name())).ok(),
        }
    }
}

go_by_name!(Compiler, "compiler", Compiler::ALL);

/// A form of debug information.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// All in the program.
    Full,
    /// A stripped program, and a file that its debug link names.
    DebugFile,
    /// `.dwo` files beside the program.
    Split,
    /// These in a package, `.dwp`.
    Package,
    /// Moved by `dwz` into a file that two programs share.
    Dwz,
    /// Compressed sections.
    Compressed,
    /// A stripped program alone.
    Nothing,
}

impl Form {
    /// Every form, in the order of printing.
    pub const ALL: [Form; 7] = [
        Form::Full,
        Form::DebugFile,
        Form::Split,
        Form::Package,
        Form::Dwz,
        Form::Compressed,
        Form::Nothing,
    ];

    fn name(self) -> &'static str {
        match self {
            Form::Full => "full",
            Form::DebugFile => "debug-file",
            Form::Split => "dwo",
            Form::Package => "dwp",
            Form::Dwz => "dwz",
            Form::Compressed => "compressed",
            Form::Nothing => "none",
        }
    }
}

go_by_name!(Form, "form", Form::ALL);
