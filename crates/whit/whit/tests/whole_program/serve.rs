//! `whit serve` over real sockets: the numbers of its ranges are those of `whit report --time`.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use whit_testing::run;

/// A server of a golden recording, which ends with it.
struct Served {
    child: Child,
    /// Host and port.
    host: String,
    token: String,
}

fn golden() -> PathBuf {
    run::repository().join("tests/recordings/golden")
}

fn recording() -> PathBuf {
    golden().join("perf-fp/recording.data")
}

fn whit(arguments: &[&str], recording: &Path) -> Command {
    let built = env!("CARGO_BIN_EXE_whit");
    run::sibling(built, "whit-serve");
    let mut command = run::whit(built);
    command.args(arguments).arg("-i").arg(recording).arg("--symfs").arg(golden().join("root"));
    command
}

impl Served {
    fn start(arguments: &[&str], recording: &Path) -> Served {
        let mut child = whit(&[&["serve", "-q"], arguments].concat(), recording)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut url).unwrap();
        let rest = url.trim_end().strip_prefix("http://").expect("an address");
        let (host, token) = rest.trim_end_matches('/').split_once('/').unwrap();
        Served { host: host.to_owned(), token: token.to_owned(), child }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let (host, token, length) = (&self.host, &self.token, body.len());
        let head = format!(
            "{method} /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        assert!(response.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&response));
        let head_end = response.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        response.split_off(head_end + 4)
    }

    /// Ends it as Ctrl-C does.
    fn end(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The columns of a range: rows as differences, samples, periods.
fn sums(bytes: &[u8]) -> (u64, u64) {
    let mut numbers = Vec::new();
    let (mut value, mut shift) = (0u64, 0);
    for byte in bytes {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            numbers.push(value);
            (value, shift) = (0, 0);
        }
    }
    let count = numbers[0] as usize;
    assert_eq!(numbers.len(), 1 + 3 * count);
    (numbers[1 + count..][..count].iter().sum(), numbers[1 + 2 * count..].iter().sum())
}

/// Samples and periods of all events in a report.
fn reported(time: &str) -> (u64, u64) {
    let text = run::text(&mut whit(&["report", "--json", "--time", time], &recording()));
    let report: Value = serde_json::from_str(&text).unwrap();
    let sum = |name: &str| {
        let events = report["events"].as_array().expect("events").iter();
        events.map(|event| event[name].as_u64().expect(name)).sum()
    };
    (sum("samples"), sum("period"))
}

/// Time stamps of all samples.
fn times() -> Vec<u64> {
    let text = run::text(&mut whit(&["script", "-F", "time", "--ns"], &recording()));
    let ns = |line: &str| line.trim().trim_end_matches(':').replace('.', "").parse().ok();
    let mut times: Vec<u64> = text.lines().filter_map(ns).collect();
    times.sort_unstable();
    assert!(times.len() > 4, "{text}");
    times
}

#[test]
fn a_range_has_the_samples_that_a_report_of_its_time_has() {
    let served = Served::start(&[], &recording());
    let times = times();
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let begin = times[0];
    for (from, to) in
        [(0, times.len() - 1), (1, times.len() / 2), (times.len() / 3, times.len() / 3)]
    {
        let (from, to) = (times[from], times[to]);
        // The end of a range is not in it, that of --time is.
        let path = format!("range?from={}&to={}", from - begin, to - begin + 1);
        let expected = reported(&format!("{},{}", seconds(from), seconds(to)));
        assert!(expected.0 > 0);
        assert_eq!(sums(&served.ask("GET", &path, "")), expected, "{path}");
    }
    let page = String::from_utf8(served.ask("GET", "", "")).unwrap();
    assert!(page.starts_with("<!") && page.contains("\"isServed\":true"));
    served.end();
}

#[test]
fn firefox_profiler_gets_the_profile_and_its_symbols() {
    let served = Served::start(&["--firefox"], &recording());
    let profile: Value = serde_json::from_slice(&served.ask("GET", "profile.json", "")).unwrap();
    let libraries = profile["libs"].as_array().unwrap();
    let library =
        libraries.iter().find(|library| library["debugName"] == "spin").expect("the program");
    let (name, id) =
        (library["debugName"].as_str().unwrap(), library["breakpadId"].as_str().unwrap());
    // burn is at 0x4000e8, and the program is not position-independent.
    assert!(all_frames_have_their_names(&served, &profile, name, id) > 0);
    let request = serde_json::json!({ "memoryMap": [[name, id]], "stacks": [[[0, 0xe8]]] });
    let answer: Value =
        serde_json::from_slice(&served.ask("POST", "symbolicate/v5", &request.to_string()))
            .unwrap();
    let frame = &answer["results"][0]["stacks"][0][0];
    assert_eq!(
        (&frame["function"], &frame["function_offset"]),
        (&"burn".into(), &"0x0".into()),
        "{answer}"
    );
    let request = serde_json::json!({
        "debugName": name, "debugId": id, "startAddress": "0xe8", "size": frame["function_size"] });
    let answer: Value =
        serde_json::from_slice(&served.ask("POST", "asm/v1", &request.to_string())).unwrap();
    assert_eq!(
        (&answer["arch"], &answer["size"]),
        (&"x86_64".into(), &frame["function_size"]),
        "{answer}"
    );
    served.end();
}

/// Asks for the symbols of the frames in a library, as Firefox Profiler does: the answers have the names that the profile
/// has. Gives the number of frames.
fn all_frames_have_their_names(served: &Served, profile: &Value, name: &str, id: &str) -> usize {
    let mut checked = 0;
    for thread in profile["threads"].as_array().unwrap() {
        let column = |table: &str, column: &str| thread[table][column].as_array().unwrap().clone();
        let (addresses, funcs) = (column("frameTable", "address"), column("frameTable", "func"));
        let (resources, names) = (column("funcTable", "resource"), column("funcTable", "name"));
        let libraries = column("resourceTable", "lib");
        let is_here = |frame: &usize| {
            let resource = resources[funcs[*frame].as_u64().unwrap() as usize].as_i64().unwrap();
            let library = usize::try_from(resource).ok().and_then(|at| libraries[at].as_u64());
            library.is_some_and(|at| profile["libs"][at as usize]["debugName"] == name)
        };
        let frames: Vec<usize> = (0..addresses.len()).filter(is_here).collect();
        assert!(frames.iter().all(|frame| addresses[*frame].is_u64()), "{addresses:?}");
        let stacks: Vec<_> = frames.iter().map(|frame| [(0, &addresses[*frame])]).collect();
        let request = serde_json::json!({ "memoryMap": [[name, id]], "stacks": stacks });
        let answer = served.ask("POST", "symbolicate/v5", &request.to_string());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        for (frame, stack) in frames.iter().zip(answer["results"][0]["stacks"].as_array().unwrap())
        {
            let number = names[funcs[*frame].as_u64().unwrap() as usize].as_u64().unwrap();
            let expected = &thread["stringArray"][number as usize];
            let inlines = stack[0]["inlines"].as_array().into_iter().flatten();
            let found = inlines.chain([&stack[0]]).any(|it| it["function"] == *expected);
            assert!(found, "{expected} at {}: {stack}", addresses[*frame]);
            checked += 1;
        }
    }
    checked
}

#[test]
fn a_recording_that_is_cut_stays_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.data");
    std::fs::copy(recording(), &path).unwrap();
    let served = Served::start(&[], &path);
    let all = format!("range?from=0&to={}", u64::MAX);
    let (page, sum) = (served.ask("GET", "", ""), sums(&served.ask("GET", &all, "")));
    assert!(sum.0 > 0);
    std::fs::write(&path, "").unwrap();
    let request = r#"{"memoryMap":[["spin","0"]],"stacks":[[[0,232]]]}"#;
    let answer: Value =
        serde_json::from_slice(&served.ask("POST", "symbolicate/v5", request)).unwrap();
    assert_eq!(answer["results"][0]["found_modules"]["spin/0"], false, "{answer}");
    assert_eq!(served.ask("GET", "", ""), page);
    assert_eq!(sums(&served.ask("GET", &all, "")), sum);
    served.end();
}
