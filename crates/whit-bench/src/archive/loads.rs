//! The recorded programs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::named::go_by_name;

/// Calls functions that Java compiles, for the seconds in its argument.
const JAVA: &str = "\
public class Busy {
    static int leaf(int n) { int s = 0; for (int i = 0; i < n; i++) s = s * 31 + i; return s; }
    static int middle(int n) { return n == 0 ? leaf(20000) : middle(n - 1) + leaf(100); }
    public static void main(String[] arguments) {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L; int sum = 0;
        while (System.nanoTime() < end) sum += middle(10);
        System.exit(sum == 1 ? 1 : 0);
    }
}
";
/// Calls functions of Python, for the seconds in its argument.
const PYTHON: &str = "\
import sys, time
def leaf(n):
    return sum(i * i for i in range(n))
def middle(n):
    return middle(n - 1) + leaf(100) if n else leaf(2000)
end = time.monotonic() + int(sys.argv[1])
while time.monotonic() < end:
    middle(10)
";

/// A recorded program, and how it is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Load {
    /// C++ without frame pointers, with stack dumps.
    CppDumps,
    /// The same, unwound in the kernel.
    Cpp,
    /// Go, unwound in the kernel.
    Go,
    /// Rust, unwound in the kernel.
    Rust,
    /// Java, whose virtual machine writes the names of its code at its end.
    Java,
    /// Python, whose functions the kernel's program walks.
    Python,
}

impl Load {
    /// Every load, in the order of printing.
    pub const ALL: [Load; 6] =
        [Load::CppDumps, Load::Cpp, Load::Go, Load::Rust, Load::Java, Load::Python];

    fn name(self) -> &'static str {
        match self {
            Load::CppDumps => "cpp-dumps",
            Load::Cpp => "cpp",
            Load::Go => "go",
            Load::Rust => "rust",
            Load::Java => "java",
            Load::Python => "python",
        }
    }

    /// The workload in the repository.
    pub fn workload(self) -> Option<&'static str> {
        match self {
            Load::CppDumps | Load::Cpp => Some("deep"),
            Load::Go => Some("deep-go"),
            Load::Rust => Some("deep-rs"),
            Load::Java | Load::Python => None,
        }
    }

    /// The options of `whit record`.
    pub fn options(self) -> Vec<String> {
        let stacks = match self {
            Load::CppDumps => "--engine=ring --call-graph dwarf,8192",
            _ => "--engine=bpf",
        };
        let all = format!("-e cpu-clock -F 997 {stacks}");
        all.split_ascii_whitespace().map(str::to_owned).collect()
    }

    /// The command, which writes its process's number into `pid`. Sources are written into `place`.
    pub(super) fn command(
        self,
        seconds: u32,
        workloads: &Path,
        place: &Path,
    ) -> Result<Vec<String>, Error> {
        let shown = |path: PathBuf| path.display().to_string();
        let source = |name: &str, text: &str| {
            let path = place.join(name);
            fs::write(&path, text).map_err(Error::file("write", &path))?;
            Ok::<_, Error>(shown(path))
        };
        let seconds = seconds.to_string();
        let words = match (self, self.workload()) {
            (_, Some(name)) => vec![shown(workloads.join(name)), "--seconds".to_owned(), seconds],
            (Load::Java, None) => {
                let options = [
                    "-XX:+UnlockDiagnosticVMOptions",
                    "-XX:+DumpPerfMapAtExit",
                    "-XX:+PreserveFramePointer",
                ];
                let mut words = vec!["java".to_owned()];
                words.extend(options.map(str::to_owned));
                words.extend([source("Busy.java", JAVA)?, seconds]);
                words
            }
            (_, None) => vec!["python3".to_owned(), source("busy.py", PYTHON)?, seconds],
        };
        let number = shown(place.join("pid"));
        let shell = ["sh", "-c", "echo $$ > \"$0\"; exec \"$@\""].map(str::to_owned);
        Ok([&shell[..], &[number], &words].concat())
    }
}

go_by_name!(Load, "load", Load::ALL);
