//! .NET: the hint of recorder and report, followed, gives names. The runtime comes with a package of Python
//! (`pip install dotnetcore2 pythonnet`); the environment variable `DOTNET_PYTHON` names the Python that has it.

use std::path::{Path, PathBuf};

use crate::support::report::parse;
use crate::support::tools::{text, whit};
use crate::support::{Skip, check, probe};

/// Matches regular expressions in compiled code.
const PROGRAM: &str = r#"
import os, time
import dotnetcore2
config = os.path.join(os.getcwd(), "runtimeconfig.json")
with open(config, "w") as file:
    file.write('{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},'
               '"configProperties": {"System.Globalization.Invariant": true}}}')
from clr_loader import get_coreclr
from pythonnet import set_runtime
root = os.path.join(os.path.dirname(dotnetcore2.__file__), "bin")
set_runtime(get_coreclr(runtime_config=config, dotnet_root=root))
import clr
clr.AddReference("System.Text.RegularExpressions")
from System.Text.RegularExpressions import Regex, RegexOptions
regex = Regex("(a|b)*c(d|e)+[f-h]{2,5}x", RegexOptions.Compiled)
words, end = "abab" * 60 + "cdedeffghy", time.monotonic() + 1.5
while time.monotonic() < end:
    regex.Matches(words).Count
"#;
const HINT: &str = "functions of .NET have no names";
/// The share of the samples that regular expressions have; they had 45 to 60 %.
const LEAST_PERCENT: f64 = 20.0;

fn python() -> Result<PathBuf, Skip> {
    let python = std::env::var_os("DOTNET_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    probe::need_program(&python, &["-c", "import dotnetcore2, pythonnet, clr_loader"])?;
    Ok(python)
}

/// Records the program; gives the recorder's messages, and the report.
fn recorded(place: &Path, engine: &str, variables: &[&str]) -> Result<[String; 2], Skip> {
    std::fs::write(place.join("busy.py"), PROGRAM).expect("write a program");
    let mut recorder = whit();
    recorder.current_dir(place).env("HOME", place);
    recorder.env("COMPlus_ReadyToRun", "0").envs(variables.iter().map(|name| (name, "1")));
    recorder.args(["record", "-N", "-g", engine, "-e", "cpu-clock:u", "-F", "499", "-o"]);
    recorder.arg("perf.data").arg("--").arg(python()?).arg("busy.py");
    let output = whit_testing::run::record(&mut recorder)?;
    let mut report = whit();
    report.current_dir(place).env("DEBUGINFOD_URLS", "");
    report.args(["report", "--stdio", "--no-children", "-g", "none", "--sort", "dso,symbol"]);
    let printed = text(report.args(["-i", "perf.data"]));
    Ok([String::from_utf8_lossy(&output.stderr).into_owned(), printed])
}

/// Percentage of compiled code with the name of a class, and the map that has it.
fn named(printed: &str) -> (f64, Option<String>) {
    let rows: Vec<_> = parse(printed).into_values().flatten().collect();
    let of_class = |symbol: &str| symbol.contains("System.Text.RegularExpressions");
    let of_map = rows.iter().filter(|row| row.dso.ends_with(".map") && of_class(&row.symbol));
    let map = of_map.clone().next().map(|row| row.dso.clone());
    (of_map.map(|row| row.percent).sum(), map)
}

#[test]
fn dot_net_gets_names_by_the_way_that_recorder_and_report_say() {
    check("dotnet", || {
        probe::own_events()?;
        python()?;
        let place = tempfile::tempdir().expect("make a directory");
        for printed in recorded(place.path(), "--engine=ring", &[])? {
            assert!(
                printed.contains(HINT) && printed.contains("DOTNET_PerfMapEnabled=1"),
                "{printed}"
            );
            assert_eq!(named(&printed), (0.0, None), "{printed}");
        }
        let bpf = probe::bpf_stacks().map(|()| "--engine=bpf");
        if let Err(Skip(reason)) = &bpf {
            whit_testing::skip("dotnet in the BPF engine", reason);
        }
        for engine in ["--engine=ring"].into_iter().chain(bpf.ok()) {
            // .NET Core 3.1 knows the older name of the variable.
            let variables = ["DOTNET_PerfMapEnabled", "COMPlus_PerfMapEnabled"];
            let [said, printed] = recorded(place.path(), engine, &variables)?;
            assert!(!said.contains(HINT) && !printed.contains(HINT), "{engine}: {said}{printed}");
            let (percent, map) = named(&printed);
            assert!(percent > LEAST_PERCENT, "{engine}: {percent}: {printed}");
            // The runtime leaves its files behind.
            let map = map.unwrap_or_default();
            for file in [map.replace("perf-", "perfinfo-"), map] {
                let _ = std::fs::remove_file(Path::new("/tmp").join(file));
            }
        }
        Ok(())
    });
}
