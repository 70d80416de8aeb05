//! The Firefox Profiler's own command line reads whit's sums.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::consumers;
use super::recordings::{self, Example};
use super::sums::{column, of_report};
use crate::support::tools::text;
use crate::support::{Skip, check};

const LOAD_ATTEMPTS: usize = 20;

const PACKAGE: &str = "@firefox-devtools/profiler-cli";

/// `profiler-cli`, whose sessions live in `home`.
fn cli(home: &Path) -> Result<Command, Skip> {
    let mut cli = consumers::node(PACKAGE, "dist/profiler-cli.js")?;
    cli.env("HOME", home).env("TMPDIR", home).env("XDG_RUNTIME_DIR", home);
    Ok(cli)
}

/// Loads a file. The tool gives its own daemon half a second to start; on a busy machine it then advises to try again
/// and to end that daemon.
fn load(home: &Path, file: &Path) -> Result<(), Skip> {
    for _ in 0..LOAD_ATTEMPTS {
        let output = cli(home)?.arg("load").arg(file).output().expect("run profiler-cli");
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("did not become ready"), "{said}");
        if let Some((pid, _)) = said.split_once("\"kill ").and_then(|(_, pid)| pid.split_once('"'))
        {
            text(Command::new("kill").arg(pid));
        }
    }
    panic!("profiler-cli did not start its daemon in {LOAD_ATTEMPTS} attempts")
}

/// A loaded profile; the session ends with it.
struct Session<'h>(&'h Path);

impl Session<'_> {
    fn json(&self, arguments: &[&str]) -> Result<Value, Skip> {
        let printed = text(cli(self.0)?.args(arguments).arg("--json"));
        Ok(serde_json::from_str(&printed).expect("JSON"))
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let stopped = cli(self.0).map(|mut cli| cli.args(["stop", "--all"]).output());
        assert!(stopped.is_ok_and(|output| output.is_ok()) || std::thread::panicking());
    }
}

/// Own samples of each function, over all threads.
fn own_samples(session: &Session<'_>) -> Result<BTreeMap<String, u64>, Skip> {
    let listed = session.json(&["thread", "list"])?;
    let mut sums = BTreeMap::new();
    for thread in listed["threads"].as_array().expect("threads") {
        let handle = thread["threadHandle"].as_str().expect("a handle");
        let functions =
            session.json(&["thread", "functions", "--thread", handle, "--limit", "0"])?;
        for function in functions["functions"].as_array().unwrap() {
            let name = function["name"].as_str().unwrap().to_owned();
            *sums.entry(name).or_insert(0) += function["selfSamples"].as_u64().unwrap();
        }
    }
    sums.retain(|_, sum| *sum > 0);
    Ok(sums)
}

fn assert_example(example: &Example, folder: &Path) -> Result<(), Skip> {
    let file = example.export("firefox", folder);
    let home = tempfile::tempdir().expect("make a directory");
    // The extension tells the profiler's command line what the file is.
    let json = folder.join(format!("{}.json", example.name));
    std::fs::rename(&file, &json).expect("rename");
    load(home.path(), &json)?;
    let session = Session(home.path());
    let (event, sums) = of_report(example);
    assert_eq!(own_samples(&session)?, column(&sums, |sum| sum.0), "{} {event}", example.name);
    let content: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).expect("JSON");
    let markers = content["threads"][0]["markers"]["data"].as_array().unwrap();
    let note =
        |marker: &&Value| marker["text"].as_str().is_some_and(|text| text.contains("Lost: "));
    let losses = markers.iter().find(note).expect("a marker with the losses");
    let lost_nothing = losses["text"].as_str().unwrap().contains("Lost: nothing");
    assert_eq!(lost_nothing, example.name != "losses", "{losses}");
    if example.name == "waits" {
        let all = content["threads"].as_array().unwrap().iter();
        let waits = all.flat_map(|thread| thread["markers"]["data"].as_array().unwrap());
        assert!(waits.filter(|marker| marker["type"] == "wait").count() > 100);
    }
    Ok(())
}

#[test]
fn the_firefox_profiler_reads_the_sums_of_the_report() {
    check("exports_firefox", || {
        consumers::package(PACKAGE)?;
        let folder = tempfile::tempdir().expect("make a directory");
        for example in recordings::all(&folder) {
            assert_example(&example, folder.path())?;
        }
        Ok(())
    });
}

/// A server of the recording, which ends with this.
struct Server(Child);

impl Server {
    /// The server, and its address without the slash at its end.
    fn start(example: &Example) -> (Server, String) {
        let mut serve = example.whit("serve");
        let child = serve.arg("--quiet").stdout(Stdio::piped()).spawn().expect("start the server");
        let mut server = Server(child);
        let mut url = String::new();
        let out = server.0.stdout.as_mut().expect("its output");
        BufReader::new(out).read_line(&mut url).expect("an address");
        (server, url.trim_end().trim_end_matches('/').to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program is not position-independent: addresses of the profile and of the server agree only where both count from
/// the lowest loaded address.
#[test]
fn the_firefox_profiler_gets_instructions_with_samples_from_the_server() {
    check("exports_firefox_instructions", || {
        consumers::package(PACKAGE)?;
        let folder = tempfile::tempdir().expect("make a directory");
        let example = recordings::golden("perf-fp");
        let file = example.export("firefox", folder.path());
        let json = folder.path().join("profile.json");
        std::fs::rename(&file, &json).expect("rename");
        let (_server, url) = Server::start(&example);
        let home = tempfile::tempdir().expect("make a directory");
        load(home.path(), &json)?;
        let session = Session(home.path());
        let functions = session.json(&["thread", "functions", "--limit", "0"])?;
        let functions = functions["functions"].as_array().expect("functions").iter();
        let burn = functions.clone().find(|it| it["name"].as_str().unwrap().ends_with("burn"));
        let handle = burn.expect("burn")["functionHandle"].as_str().expect("a handle");
        let options = ["function", "annotate", handle, "--mode", "asm", "--symbol-server", &url];
        let annotated = session.json(&options)?;
        let code = &annotated["asmAnnotations"][0];
        let instructions = code["instructions"].as_array().unwrap_or_else(|| panic!("{annotated}"));
        let own: u64 = instructions.iter().map(|it| it["selfSamples"].as_u64().unwrap()).sum();
        assert_eq!(
            (code["symbolName"].as_str(), code["symbolAddress"].as_u64()),
            (Some("burn"), Some(0xe8))
        );
        assert!(own > 0 && Some(own) == annotated["totalSelfSamples"].as_u64(), "{annotated}");
        Ok(())
    });
}
