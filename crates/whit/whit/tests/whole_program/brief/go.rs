//! Questions on a recording of perf's own, of a Go program: some of them suit perf's long table.

use super::{Asked, Question, ask, heaviest, percent, words};
use crate::support::Skip;
use crate::support::tools::{perf, record, workload};
use serde_json::Value;

/// A program whose collector works.
pub(super) fn asked() -> Result<Asked, Skip> {
    let root = tempfile::tempdir().expect("make a directory");
    let data = root.path().join("go.data");
    let mut recorder = perf()?;
    recorder.args(["record", "-q", "--no-buildid-cache", "-e", "cpu-clock:u", "-F", "1999", "-g"]);
    recorder.arg("-o").arg(&data).arg("--").arg(workload("collect-go")?);
    record(recorder.args(["--seconds", "1.5"]))?;
    Ok(Asked { name: "go", data, symbols: Vec::new(), _root: Some(root) })
}

/// The function of a rank by its own time. Where others have the same time, it is one of them.
fn of_rank(rows: &[Value], rank: usize) -> [String; 2] {
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row["self"]["period"].as_u64()));
    let row = rows.get(rank - 1).expect("so many functions");
    [percent(&row["self"]), words(&row["symbol"]["name"]).to_owned()]
}

/// perf adds the time of inlined functions to that of the function around them; whit shows them alone. So each has its
/// own answer where a function's own time is asked for.
pub(super) fn questions(asked: &Asked) -> Vec<Question> {
    let of_whit = asked.rows(&["-s", "dso,sym", "-g", "none"]);
    let outer = ["-s", "dso,sym", "-g", "none", "--self-time", "outer", "--no-inline"];
    let of_perf = asked.rows(&outer);
    let by_rank = |asked, rank, suits_perf| {
        let [share, name] = of_rank(&of_whit, rank);
        let answer = vec![format!("self {share}"), name];
        Question { asked, answer, in_perf: Some(of_rank(&of_perf, rank).to_vec()), suits_perf }
    };
    let caller = "main.main.func1";
    let row = of_perf.iter().find(|row| row["symbol"]["name"] == caller).expect("a caller");
    let total = percent(&row["children"]);
    let thread = heaviest(&asked.rows(&["-s", "tid", "-g", "none"]), "self");
    let thread = format!("t-{} {}", thread["tid"], percent(&thread["self"]));
    vec![
        by_rank("Which function takes most time itself?", 1, false),
        ask(
            "Which share have the goroutines of main.main, with all that they call?",
            &[&total, caller],
            Some(&[&total, caller]),
        ),
        ask("Which thread takes most time?", &[&thread], None),
        by_rank("Which own time has a named function, the twelfth by that?", 12, true),
        by_rank("Which own time has a named function, the thirtieth by that?", 30, true),
        by_rank("Which own time has a named function, the fortieth by that?", 40, true),
    ]
}
