//! A filter that chooses nothing is named with its value and the near names of the recording.

use std::path::Path;
use std::process::Command;

fn recording() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/recordings/waits/waits.data")
}

/// Both outputs.
fn whit(arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whit"));
    command.args(arguments.split(' ')).arg("-i").arg(recording());
    let output = command.output().expect("run whit");
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

const ANSWERS: [&str; 6] =
    ["report --stdio", "report --json", "report --wall", "switches --stdio", "locks", "script"];

#[test]
fn each_answer_names_the_value_without_a_match() {
    let values = [
        ("--comms fast-wait", "--comms fast-wait chooses nothing", "fast-waiter"),
        ("--dsos mutex", "--dsos mutex chooses nothing", "mutexes"),
        ("--symbols hold_fas", "--symbols hold_fas chooses nothing", ""),
        ("--tid 99", "--tid 99 chooses nothing: the recording does not name this ID", "--tasks"),
        ("--pid 99", "--pid 99 chooses nothing: the recording does not name this ID", "--tasks"),
        ("--time 900000,", "--time chooses nothing: the recording is from", ""),
    ];
    for (value, said, more) in values {
        for answer in ANSWERS {
            let text = whit(&format!("{answer} {value}"));
            assert!(text.contains(said) && text.contains(more), "{answer} {value}: {text}");
            assert!(!text.contains("No thread was seen"), "{answer} {value}: {text}");
            assert!(!text.contains("has no samples"), "{answer} {value}: {text}");
        }
    }
}

#[test]
fn values_with_a_match_are_not_mentioned() {
    for value in
        ["--comms fast-waiter", "--dsos mutexes", "--tid 17584", "--pid 17571", "--time 10%-90%"]
    {
        for answer in ANSWERS {
            let text = whit(&format!("{answer} {value}"));
            assert!(!text.contains("chooses nothing"), "{answer} {value}: {text}");
        }
    }
}

#[test]
fn no_thread_is_called_idle_where_lengths_of_waits_are_chosen() {
    for (answer, said) in
        [("switches --stdio", "No switch passes"), ("locks", "No wait for a lock passes")]
    {
        let text = whit(&format!("{answer} --min-wait 1000s"));
        assert!(text.contains(said) && !text.contains("No thread was seen"), "{answer}: {text}");
    }
}
