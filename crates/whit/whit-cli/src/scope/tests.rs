use super::*;

/// Options of all subcommands that say how to read and to print, and where names come from.
const EVERYWHERE: [&str; 17] = [
    // Recordings of two sides.
    "before",
    "after",
    "input",
    "file",
    "help",
    "threads",
    "color",
    "no_pager",
    "quiet",
    "demangle",
    "no_demangle",
    "symfs",
    "vmlinux",
    "kallsyms",
    "debuginfod",
    "no_debuginfod",
    "debuginfod_limit",
];

fn refusal(arguments: &str) -> Option<String> {
    let command = crate::command();
    let words = std::iter::once("whit").chain(arguments.split_whitespace());
    let matches = command.clone().try_get_matches_from(words).unwrap();
    check(&command, &matches).err().map(|error| error.to_string())
}

/// Options that a subcommand takes to name their replacement are refused by their own table.
fn is_replaced(subcommand: &str, option: &str) -> bool {
    use crate::unsupported_options::{OfAnnotate, OfReport, OfScript, OfSwitches, Unsupported};
    let options = match subcommand {
        "annotate" => OfAnnotate::OPTIONS,
        "report" => OfReport::OPTIONS,
        "script" => OfScript::OPTIONS,
        "switches" => OfSwitches::OPTIONS,
        _ => &[],
    };
    options.iter().any(|(name, ..)| *name == option)
}

#[test]
fn each_option_is_in_the_table_of_its_subcommand_once() {
    let command = crate::command();
    for scope in SCOPES {
        let subcommand = command.find_subcommand(scope.subcommand).unwrap();
        let chooses = |id: &str| scope.answers.iter().any(|answer| answer.options.contains(&id));
        let rows =
            |id: &str| scope.options.iter().copied().flatten().filter(|it| it.0 == id).count();
        for argument in subcommand.get_arguments() {
            let id = argument.get_id().as_str();
            if !is_replaced(scope.subcommand, id) && !EVERYWHERE.contains(&id) {
                let is_once = rows(id) == 1 || rows(id) == 0 && chooses(id);
                assert!(is_once, "{} {id}: {} rows", scope.subcommand, rows(id));
            }
        }
        let has = |id: &str| subcommand.get_arguments().any(|argument| argument.get_id() == id);
        let named = scope.options.iter().copied().flatten().map(|acts| acts.0);
        let answers = scope.answers.iter().flat_map(|answer| answer.options.iter().copied());
        for id in named.chain(answers).chain(scope.hints.iter().map(|hint| hint.0)) {
            assert!(has(id), "whit {} has no option {id}", scope.subcommand);
        }
    }
}

#[test]
fn a_refusal_names_the_answer_the_output_or_the_missing_option() {
    for (arguments, words) in [
        (
            "report --tasks --latency",
            "--latency has no effect with --tasks: leave out one of the two",
        ),
        ("report --mmaps -d nothere", "--dsos has no effect with --mmaps"),
        ("report --json -t ,", "--field-separator has no effect with --json"),
        (
            "report --html page.html -c a",
            "--comms has no effect with --html: leave out one of the two (the page has",
        ),
        ("report --min-wait 1ms", "--min-wait has an effect with --wall alone"),
        ("report --no-source", "--no-source has an effect with --html alone"),
        ("report --wall --tasks", "--wall and --tasks are two answers"),
        ("report --stats --json", "--json has no effect with --stats"),
        ("report --wall -C 0", "waits belong to threads"),
        ("switches --json -g caller", "--call-graph has no effect with --json"),
        (
            "switches -C 0",
            "--cpu has no effect on whit switches (context switches belong to threads",
        ),
        ("switches --per-thread --no-children", "--no-children has no effect with --per-thread"),
        ("locks --json -g", "--json has every call chain"),
        ("annotate --json -n", "--json has samples and periods"),
        ("annotate main --limit 3", "--limit has no effect with FUNCTION: leave out one"),
        ("annotate --max-stack 3", "--max-stack has no effect on whit annotate (call chains"),
        ("diff --json --percent-limit 2", "--percent-limit has no effect with --json"),
        ("script --folded --ns", "--ns has no effect with --folded"),
        ("script --header-only --pid 1", "--pid has no effect with --header-only"),
    ] {
        let refusal = refusal(arguments).unwrap_or_default();
        assert!(refusal.contains(words), "{arguments}: {refusal}");
    }
}

#[test]
fn options_that_act_are_accepted() {
    for arguments in [
        "report --stdio -t , -c a -g caller --percent-limit 1 --threads 2 --color=never -q",
        "report --json -s comm --no-intervals",
        "report --stats --ledger --header-only --stdio",
        "report --html page.html --stdio -n --no-source",
        "report --wall --only-class lock -g callee",
        "switches --tree --sort comm --no-children --html page.html",
        "switches --json --worst 5 -c a",
        "script --header --ns -F comm",
        "annotate main -n -l --asm-raw",
        "annotate --json --limit 3 -M intel --no-source",
        "diff a b --json --html page.html -c a --per 2",
    ] {
        assert_eq!(refusal(arguments), None, "{arguments}");
    }
}
