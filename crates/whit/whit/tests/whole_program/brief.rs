//! Questions on six recordings, answered from the output of `whit report --brief` alone. Each answer is computed in
//! another way: from JSON documents of other commands, or from single samples. Some questions suit perf: a summary need
//! not answer them.
//!
//! `cargo test -p whit --test whole_program brief::questions -- --nocapture` prints the table of `docs/brief.md`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use whit_testing::run::{output, stderr};

use crate::support::tools::{command, perf, record, repository, succeed, text, whit, workload};
use crate::support::{Skip, check, probe, script};

mod go;
mod handles;

/// A question, and the texts that one line of an answer has.
struct Question {
    asked: &'static str,
    answer: Vec<String>,
    /// The same as perf writes it; `None` where its report knows nothing of it.
    in_perf: Option<Vec<String>>,
    /// It asks for a part of a long table, and whit's summary may lack it.
    suits_perf: bool,
}

/// Makes the questions on a recording.
type Questions = fn(&Asked) -> Vec<Question>;

fn ask(asked: &'static str, answer: &[&str], in_perf: Option<&[&str]>) -> Question {
    let words = |list: &[&str]| list.iter().map(|&word| word.to_owned()).collect();
    Question { asked, answer: words(answer), in_perf: in_perf.map(words), suits_perf: false }
}

fn answers(output: &str, words: &[String]) -> bool {
    output.lines().any(|line| words.iter().all(|word| line.contains(word.as_str())))
}

/// A recording, and options with which its names are found.
struct Asked {
    name: &'static str,
    data: PathBuf,
    symbols: Vec<String>,
    _root: Option<tempfile::TempDir>,
}

impl Asked {
    fn golden(name: &'static str) -> Asked {
        let folder = repository().join("tests/recordings/golden");
        let path = |name: &str| folder.join(name).to_str().expect("a path").to_owned();
        let symbols =
            vec!["--symfs".to_owned(), path("root"), "--kallsyms".to_owned(), path("kallsyms")];
        Asked { name, data: folder.join(name).join("recording.data"), symbols, _root: None }
    }

    fn demo() -> Asked {
        let folder = repository().join("tests/recordings/demo");
        let root = tempfile::tempdir().expect("make a directory");
        succeed(command(folder.join("unpack.sh")).arg(root.path()));
        let symbols = ["--symfs", root.path().to_str().expect("a path")].map(str::to_owned);
        let (data, symbols) = (folder.join("demo.data"), symbols.to_vec());
        Asked { name: "demo", data, symbols, _root: Some(root) }
    }

    /// Waits for locks, with stacks and wakers.
    fn mutexes() -> Result<Asked, Skip> {
        probe::bpf_stacks()?;
        let root = tempfile::tempdir().expect("make a directory");
        let data = root.path().join("mutexes.data");
        let mut recorder = whit();
        recorder.args(["record", "--engine=bpf", "--wakeups", "-q", "-o"]).arg(&data);
        recorder.arg("--").arg(workload("mutexes")?);
        record(&mut recorder)?;
        Ok(Asked { name: "mutexes", data, symbols: Vec::new(), _root: Some(root) })
    }

    fn whit(&self, arguments: &[&str]) -> Command {
        let mut tool = whit();
        tool.args(arguments).arg("-i").arg(&self.data).args(&self.symbols);
        tool
    }

    fn text(&self, arguments: &[&str]) -> String {
        text(&mut self.whit(arguments))
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).expect("JSON")
    }

    /// Rows of the first event.
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let report = self.json(&[&["report", "--json"], arguments].concat());
        report["events"][0]["rows"].as_array().expect("rows").clone()
    }

    fn perf(&self) -> Result<String, Skip> {
        let mut tool = perf()?;
        tool.args(["report", "--stdio", "-i"]).arg(&self.data);
        // A recording of whit has records that perf does not know.
        let converted = tempfile::tempdir().expect("make a directory");
        if self.name == "mutexes" {
            let path = converted.path().join("perf.data");
            succeed(whit().args(["export", "--perf", "-o"]).arg(&path).arg("-i").arg(&self.data));
            tool = perf()?;
            tool.args(["report", "--stdio", "-i"]).arg(path);
        }
        tool.args(&self.symbols);
        Ok(text(&mut tool))
    }
}

fn percent(weight: &Value) -> String {
    format!("{:.2}%", weight["percent"].as_f64().expect("a share"))
}

fn words(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn nanoseconds(value: &Value) -> String {
    let ns = value.as_u64().expect("nanoseconds");
    match ns {
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// The row with the largest weight; `key` is `self` or `children`.
fn heaviest(rows: &[Value], key: &str) -> Value {
    let by_period = |row: &&Value| row[key]["period"].as_u64();
    rows.iter().rev().max_by_key(by_period).expect("a row").clone()
}

/// The innermost two functions of the path that most samples follow, and its share, from single samples.
fn hottest_path(asked: &Asked) -> (String, String, String) {
    let samples = script::parse(&asked.text(&["script", "-F", "comm,ip,sym"]));
    let mut chains: Vec<Vec<String>> = samples
        .iter()
        .map(|sample| sample.frames.iter().rev().map(|frame| frame.symbol.clone()).collect())
        .collect();
    let all = chains.len();
    let (mut path, mut depth, mut ends_here) = (Vec::new(), 0, 0);
    loop {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for chain in chains.iter().filter(|chain| chain.len() > depth) {
            *counts.entry(chain[depth].clone()).or_default() += 1;
        }
        let Some((name, count)) = counts.into_iter().max_by_key(|it| it.1) else { break };
        if count <= ends_here {
            break;
        }
        chains.retain(|chain| chain.get(depth) == Some(&name));
        ends_here = chains.iter().filter(|chain| chain.len() == depth + 1).count();
        path.push((name, count));
        depth += 1;
    }
    let (inner, count) = path.pop().expect("a path");
    let (caller, _) = path.pop().expect("a caller");
    (inner, caller, format!("{:.2}%", 100.0 * count as f64 / all as f64))
}

fn on_demo(asked: &Asked) -> Vec<Question> {
    let report = asked.json(&["report", "--json", "-s", "dso,sym", "-g", "none"]);
    let rows = report["events"][0]["rows"].as_array().expect("rows").clone();
    let hot = heaviest(&rows, "self");
    let (name, share) = (words(&hot["symbol"]["name"]), percent(&hot["self"]));
    let outer = asked.rows(&["-s", "dso,sym", "-g", "none", "--self-time", "outer"]);
    let outer = heaviest(&outer, "self");
    let width = hot["self"]["high_percent"].as_f64().zip(hot["self"]["low_percent"].as_f64());
    let width =
        width.map(|(high, low)| format!("±{:.2}", (high - low) / 2.0)).expect("an interval");
    let main = rows.iter().find(|row| row["symbol"]["name"] == "main").expect("main");
    let total = percent(&main["children"]);
    let recording = &report["recording"];
    let [first, last] = ["first_sample_ns", "last_sample_ns"].map(|key| &recording[key]);
    let sampled = last.as_u64().expect("a time") - first.as_u64().expect("a time");
    let sampled = nanoseconds(&sampled.into());
    let cmdline = recording["cmdline"].as_array().expect("words");
    let program = words(&cmdline[cmdline.len() - 3]);
    let samples = report["events"][0]["samples"].to_string();
    let (inner, caller, path) = hottest_path(asked);
    let inner_name = inner.trim_end_matches(" (inlined)");
    vec![
        ask(
            "Which function takes most time itself?",
            &["self ", &share, name],
            Some(&[&percent(&outer["self"]), words(&outer["symbol"]["name"])]),
        ),
        ask("How exact is that share?", &[&format!("{share} {width}"), name], None),
        ask(
            "Which share has main with all that it calls?",
            &[&total, " main "],
            Some(&[&total, "main"]),
        ),
        ask(
            "How many samples of which event are there?",
            &[&format!("samples: {samples} of cpu-clock:u")],
            Some(&[&format!("Samples: {samples} "), "cpu-clock:u"]),
        ),
        ask("For how long was sampled?", &["samples:", &sampled], Some(&[&sampled])),
        ask(
            "Which program was recorded?",
            &["command:", program],
            Some(&[program, "--iterations"]),
        ),
        ask("Which share follows the hottest path?", &["hottest path", &path], None),
        ask(
            "Which function calls the innermost one of the path?",
            &[&path, caller.trim_end_matches(" (inlined)")],
            Some(&["--", inner_name, caller.trim_end_matches(" (inlined)")]),
        ),
    ]
}

fn on_losses(asked: &Asked) -> Vec<Question> {
    let losses = &asked.json(&["report", "--json"])["losses"];
    let records = format!("{} records", losses["lost_records"]);
    let samples = losses["lost_samples"].to_string();
    let samples =
        if samples == "0" { "7 samples".to_owned() } else { format!("{samples} samples") };
    let share = format!("data loss {:.2}%", 100.0 * losses["data_loss"].as_f64().expect("a share"));
    vec![
        ask("How many records were lost?", &["lost:", &records], Some(&["Lost", "123"])),
        ask("How many samples were lost?", &["lost:", &samples], Some(&["Lost Samples", "7"])),
        ask("For which part of the time were rings full?", &["lost:", &share], None),
    ]
}

fn on_containers(asked: &Asked) -> Vec<Question> {
    let rows = asked.rows(&["-s", "cgroup", "-g", "none"]);
    let top = heaviest(&rows, "self");
    let (path, share) = (words(&top["cgroup"]), percent(&top["self"]));
    let count = rows.len();
    vec![
        ask("Which cgroup takes most time?", &[path, &share], Some(&[path, &share])),
        ask("In how many cgroups are samples?", &[&format!("cgroups ({count} of {count})")], None),
    ]
}

fn on_family(asked: &Asked) -> Vec<Question> {
    let rows = asked.rows(&["-s", "tid", "-g", "none"]);
    let top = heaviest(&rows, "self");
    let (tid, share) = (top["tid"].to_string(), percent(&top["self"]));
    let function = heaviest(&asked.rows(&["-s", "dso,sym", "-g", "none"]), "self");
    let name = words(&function["symbol"]["name"]);
    vec![
        ask("Which thread takes most time?", &[&format!("t-{tid} {share}")], Some(&[&tid, &share])),
        ask(
            "Which function do all processes share?",
            &[&percent(&function["self"]), name],
            Some(&[&percent(&function["self"]), name]),
        ),
    ]
}

fn on_mutexes(asked: &Asked) -> Vec<Question> {
    let switches = asked.json(&["switches", "--json"]);
    let whole = |wait: &&Value| {
        [&wait["open"], &wait["begun_before"], &wait["lossy"]].iter().all(|it| **it == false)
    };
    let waits = switches["worst"].as_array().expect("waits");
    let worst = waits.iter().find(whole).expect("a wait");
    let thread = |index: &Value| {
        format!("t-{}", switches["threads"][index.as_u64().expect("a thread") as usize]["tid"])
    };
    let (duration, waiter) = (nanoseconds(&worst["duration_ns"]), thread(&worst["thread"]));
    let class = words(&worst["wait_class"]);
    let woken = match &worst["woken"] {
        Value::Null => class.to_owned(),
        woken if woken["from_interrupt"] == true => "woken by an interrupt".to_owned(),
        woken => format!("woken by {}", thread(&woken["thread"])),
    };
    let locks = asked.json(&["locks", "--json"]);
    let row = &locks["rows"][0];
    let lock = words(&locks["locks"][row["lock"].as_u64().expect("a lock") as usize]["symbol"]);
    let sums = &row["sums"];
    let sum = format!("{} in {} waits", nanoseconds(&sums["total_ns"]), sums["contended"]);
    let site = |wait: &Value| {
        let wait = &locks["waits"][wait.as_u64().expect("a wait") as usize];
        words(&locks["functions"][wait["call_site"].as_u64().expect("a site") as usize]["name"])
    };
    let site = site(&row["waits"][0]);
    let cpu = nanoseconds(&switches["total"]["cpu_ns"]);
    vec![
        ask(
            "How long is the longest wait, and of which thread?",
            &[&duration, &waiter, class],
            None,
        ),
        ask("Who ended it?", &[&duration, &waiter, &woken], None),
        ask("Which lock do threads wait for longest?", &[lock, &sum], None),
        ask("Which function wants it?", &[lock, "wanted by", site], None),
        ask("How long were threads on CPUs?", &["on CPUs for", &cpu], None),
    ]
}

/// A line of the table of the document.
struct Score {
    name: &'static str,
    questions: usize,
    whit: (usize, usize),
    perf: Option<(usize, usize)>,
}

fn score(asked: &Asked, questions: &[Question]) -> Score {
    let brief = asked.text(&["report", "--brief"]);
    assert!(brief.len() <= 4096, "{}", brief.len());
    let answered = |question: &&Question| {
        let Question { asked: text, answer, suits_perf, .. } = question;
        let is_there = answers(&brief, answer);
        assert!(is_there || *suits_perf, "{}: {text} {answer:?} is not in:\n{brief}", asked.name);
        is_there
    };
    let whit = (brief.len(), questions.iter().filter(answered).count());
    let of_perf = asked.perf().ok().map(|report| {
        let found = questions.iter().filter_map(|question| question.in_perf.as_ref());
        (report.len(), found.filter(|words| answers(&report, words)).count())
    });
    Score { name: asked.name, questions: questions.len(), whit, perf: of_perf }
}

#[test]
fn questions_are_answered_from_the_output_alone() {
    let all: [(Asked, Questions); 4] = [
        (Asked::demo(), on_demo),
        (Asked::golden("losses"), on_losses),
        (Asked::golden("perf-containers"), on_containers),
        (Asked::golden("perf-family"), on_family),
    ];
    let mut scores: Vec<_> = all.iter().map(|(asked, of)| score(asked, &of(asked))).collect();
    check("questions_are_answered_from_the_output_alone: waits", || {
        let asked = Asked::mutexes()?;
        scores.push(score(&asked, &on_mutexes(&asked)));
        assert_eq!(scores.iter().map(|score| score.questions).sum::<usize>(), 20);
        Ok(())
    });
    check("questions_are_answered_from_the_output_alone: Go", || {
        let asked = go::asked()?;
        let of_go = score(&asked, &go::questions(&asked));
        let perf = of_go.perf.map_or(0, |(_, answered)| answered);
        assert_eq!(perf, 5, "perf answers all but the question on threads");
        scores.push(of_go);
        Ok(())
    });
    println!("| recording | questions | whit: bytes | answered | perf: bytes | answered |");
    println!("|---|---:|---:|---:|---:|---:|");
    for Score { name, questions, whit: (bytes, answered), perf } in &scores {
        let perf = perf.map_or("| |".to_owned(), |(bytes, count)| format!("{bytes} | {count}"));
        println!("| {name} | {questions} | {bytes} | {answered} | {perf} |");
    }
}

#[test]
fn the_json_has_the_same_facts() {
    let asked = Asked::demo();
    let brief = asked.json(&["report", "--brief=20000", "--json"]);
    let rows = asked.rows(&["-s", "dso,sym", "-g", "none"]);
    let hot = heaviest(&rows, "self");
    let first = &brief["functions"]["first"][0];
    assert_eq!(first["name"], hot["symbol"]["name"]);
    assert_eq!(first["handle"], hot["symbol"]["handle"]);
    assert_eq!(first["self"]["samples"], hot["self"]["samples"]);
    assert_eq!(first["self"]["low_percent"], hot["self"]["low_percent"]);
    assert_eq!(brief["event"]["samples"], 333);
    assert!(asked.text(&["report", "--brief", "--json"]).len() <= 4096);
}

#[test]
fn the_answer_does_not_depend_on_the_number_of_threads() {
    let asked = Asked::demo();
    let of = |threads: &str| asked.text(&["report", "--brief=20000", "--threads", threads]);
    assert_eq!(of("1"), of("4"));
}

#[test]
fn a_budget_that_is_too_small_is_refused_with_the_least() {
    let asked = Asked::golden("losses");
    for (arguments, least) in [
        (&["report", "--brief=10"][..], "10 bytes are too few: the least form takes 160"),
        (&["report", "--brief=10", "--json"], "10 bytes are too few: the least form takes"),
    ] {
        let refused = output(&mut asked.whit(arguments));
        assert_eq!(refused.status.code(), Some(2));
        assert!(
            refused.stdout.is_empty() && stderr(&refused).contains(least),
            "{}",
            stderr(&refused)
        );
    }
}
