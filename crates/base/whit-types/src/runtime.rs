//! Language runtimes whose functions have names only where the program was started for it: one table of the
//! runtimes, how they are recognized, and how they give names.

use std::fmt;

/// A language runtime.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Runtime {
    /// Node.js: V8.
    Node,
    /// A Java virtual machine: HotSpot.
    Java,
    /// CPython.
    Python {
        /// 12 for Python 3.12, where the name of the file tells it.
        minor: Option<u8>,
    },
    /// CRuby, with its compiler YJIT.
    Ruby,
    /// The interpreter of the PHP project, with the compiler of OPcache.
    Php,
    /// LuaJIT.
    LuaJit,
    /// .NET: CoreCLR.
    DotNet,
}

/// One line of the table.
struct Row {
    /// Names of files begin so; a digit, `.`, `-` or the end follows.
    files: &'static [&'static str],
    runtime: Runtime,
    name: &'static str,
    advice: &'static str,
}

/// All runtimes. `docs/runtimes.md` has the same.
static TABLE: [Row; 7] = [
    Row {
        files: &["node", "nodejs", "libnode.so"],
        runtime: Runtime::Node,
        name: "Node.js",
        advice: "node --perf-basic-prof, and --interpreted-frames-native-stack for functions that are not compiled yet",
    },
    Row {
        files: &["libjvm.so"],
        runtime: Runtime::Java,
        name: "Java",
        advice: "JDK 17 and later, while it runs: jcmd PID Compiler.perfmap, or whit record --perf-map; from the start: \
                 java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit; with -XX:+PreserveFramePointer stacks are \
                 whole",
    },
    Row {
        files: &["python", "libpython"],
        runtime: Runtime::Python { minor: None },
        name: "Python",
        advice: "Python 3.11 to 3.14: whit record --engine=bpf; 3.12 and later also: python3 -X perf; 3.13 and later also: \
                 python3 -X perf_jit",
    },
    Row {
        files: &["ruby", "libruby"],
        runtime: Runtime::Ruby,
        name: "Ruby",
        advice: "Ruby 3.3 and later: ruby --yjit --yjit-perf",
    },
    Row {
        files: &["php", "php-fpm", "php-cgi", "libphp"],
        runtime: Runtime::Php,
        name: "PHP",
        advice: "php -d opcache.jit_debug=16",
    },
    Row {
        files: &["luajit", "libluajit"],
        runtime: Runtime::LuaJit,
        name: "LuaJIT",
        advice: "a LuaJIT that was built with XCFLAGS=-DLUAJIT_USE_PERFTOOLS writes a perf-map",
    },
    Row {
        files: &["libcoreclr.so"],
        runtime: Runtime::DotNet,
        name: ".NET",
        advice: "DOTNET_PerfMapEnabled=1 in the program's environment",
    },
];

/// Minor versions of Python 3 whose frames the BPF engine walks.
pub const PYTHON_WALKED: std::ops::RangeInclusive<u8> = 11..=14;
/// The first minor version of Python 3 that gives its functions addresses (`-X perf`), and the first that also
/// describes them (`-X perf_jit`).
const PYTHON_PERF: u8 = 12;
const PYTHON_PERF_JIT: u8 = 13;

impl Runtime {
    /// The runtime that a mapped file belongs to, by the file's name.
    pub fn of_path(path: &[u8]) -> Option<Runtime> {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        let name = std::str::from_utf8(path.rsplit(|byte| *byte == b'/').next()?).ok()?;
        let rest_of = |row: &Row| row.files.iter().find_map(|file| version_behind(name, file));
        let (row, version) = TABLE.iter().find_map(|row| Some((row, rest_of(row)?)))?;
        Some(match row.runtime {
            Runtime::Python { .. } => Runtime::Python { minor: minor_of_python(version) },
            runtime => runtime,
        })
    }

    /// Whether an interpreter runs its functions by default, so that they have no addresses at all.
    pub fn is_interpreter(self) -> bool {
        matches!(self, Runtime::Python { .. })
    }

    /// Whether programs have code of a JIT compiler by default.
    pub fn always_compiles(self) -> bool {
        matches!(self, Runtime::Node | Runtime::Java | Runtime::LuaJit | Runtime::DotNet)
    }

    /// The way to names of functions.
    pub fn advice(self) -> String {
        match self {
            Runtime::Python { minor: Some(minor) } => advice_for_python(minor),
            _ => self.row().advice.to_owned(),
        }
    }

    fn row(self) -> &'static Row {
        let is_it =
            |row: &&Row| std::mem::discriminant(&row.runtime) == std::mem::discriminant(&self);
        TABLE.iter().find(is_it).unwrap_or(&TABLE[0])
    }
}

fn advice_for_python(minor: u8) -> String {
    let walked = PYTHON_WALKED.contains(&minor).then_some("whit record --engine=bpf");
    let perf = (minor >= PYTHON_PERF).then_some("python3 -X perf");
    let perf_jit = (minor >= PYTHON_PERF_JIT).then_some("python3 -X perf_jit");
    let ways: Vec<_> = [walked, perf, perf_jit].into_iter().flatten().collect();
    match ways.split_last() {
        None => format!(
            "Python 3.{} or later with whit record --engine=bpf (3.{minor} is not supported)",
            PYTHON_WALKED.start()
        ),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{}, or {last}", others.join(", ")),
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().name)?;
        match self {
            Runtime::Python { minor: Some(minor) } => write!(f, " 3.{minor}"),
            _ => Ok(()),
        }
    }
}

/// The rest of a name that begins with that of a file of a runtime and goes on with a version or an ending.
fn version_behind<'a>(name: &'a str, file: &str) -> Option<&'a str> {
    let rest = name.strip_prefix(file)?;
    // `node-gyp`, `node.js` and `python3-config` are other programs.
    let version = rest.split(".so").next()?;
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | 't');
    version.chars().all(is_version).then_some(rest)
}

/// `3.12`, `3.13t.so.1.0`.
fn minor_of_python(version: &str) -> Option<u8> {
    let minor = version.strip_prefix("3.")?;
    let digits = minor.bytes().take_while(u8::is_ascii_digit).count();
    minor[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_name_their_runtime() {
        let python = |minor| Some(Runtime::Python { minor });
        for (path, runtime) in [
            ("/usr/bin/node", Some(Runtime::Node)),
            ("/usr/lib/libnode.so.108 (deleted)", Some(Runtime::Node)),
            ("/usr/lib/jvm/java-17/lib/server/libjvm.so", Some(Runtime::Java)),
            ("/usr/bin/python3.12", python(Some(12))),
            ("/usr/lib/libpython3.13t.so.1.0", python(Some(13))),
            ("/usr/bin/python3", python(None)),
            ("/usr/bin/python2.7", python(None)),
            ("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1", Some(Runtime::Ruby)),
            ("/usr/bin/php8.2", Some(Runtime::Php)),
            ("/usr/sbin/php-fpm8.2", Some(Runtime::Php)),
            ("/usr/lib/libluajit-5.1.so.2", Some(Runtime::LuaJit)),
            ("/usr/share/dotnet/libcoreclr.so", Some(Runtime::DotNet)),
            ("/usr/bin/node_exporter", None),
            ("/usr/bin/node-gyp", None),
            ("/usr/bin/python3-config", None),
            ("/srv/node.js", None),
            ("/usr/lib/libc.so.6", None),
            ("", None),
        ] {
            assert_eq!(Runtime::of_path(path.as_bytes()), runtime, "{path}");
        }
        assert_eq!(Runtime::of_path(b"/\xff/\xfe"), None);
    }

    #[test]
    fn each_version_of_python_has_its_way() {
        let advice = |minor| Runtime::Python { minor }.advice();
        let walked = "whit record --engine=bpf";
        assert!(advice(Some(10)).contains("3.10 is not supported"));
        assert_eq!(advice(Some(11)), walked);
        assert_eq!(advice(Some(12)), format!("{walked}, or python3 -X perf"));
        assert_eq!(advice(Some(13)), format!("{walked}, python3 -X perf, or python3 -X perf_jit"));
        assert_eq!(advice(Some(15)), "python3 -X perf, or python3 -X perf_jit");
        assert!(advice(None).contains("3.11 to 3.14") && advice(None).contains("3.12 and later"));
        assert_eq!(Runtime::Python { minor: Some(14) }.to_string(), "Python 3.14");
        assert_eq!(Runtime::DotNet.to_string(), ".NET");
        assert!(Runtime::DotNet.advice().contains("DOTNET_PerfMapEnabled=1"));
    }
}
