//! Handles of functions and threads stand for their names in other commands.

use super::{Asked, heaviest, words};
use crate::support::check;
use whit_testing::run::{output, stderr};

/// Name and handle of the heaviest function.
fn hottest(asked: &Asked) -> (String, String) {
    let symbol = heaviest(&asked.rows(&["-s", "dso,sym", "-g", "none"]), "self")["symbol"].clone();
    (words(&symbol["name"]).to_owned(), words(&symbol["handle"]).to_owned())
}

#[test]
fn a_handle_chooses_the_samples_that_the_name_chooses() {
    let asked = Asked::demo();
    let (name, handle) = hottest(&asked);
    let report =
        |function: &str| asked.text(&["report", "--stdio", "-q", "-g", "none", "-S", function]);
    assert_eq!(report(&handle), report(&name));
    assert!(report(&handle).contains('%'));
    for side in ["--callers", "--callees"] {
        let of = |function: &str| asked.text(&["report", side, function]);
        assert_eq!(of(&handle), of(&name));
        assert!(of(&handle).contains(&handle));
    }
    let block = asked.rows(&["-s", "dso,sym", "-g", "none"]);
    let block = block.iter().find(|row| row["symbol"]["name"] == "kernels::hash_block");
    let block = words(&block.expect("it has samples")["symbol"]["handle"]).to_owned();
    let annotate = |function: &str| asked.text(&["annotate", "--no-source", function]);
    assert_eq!(annotate(&block), annotate("kernels::hash_block"));
}

#[test]
fn a_handle_depends_on_no_option() {
    let asked = Asked::demo();
    let (name, handle) = hottest(&asked);
    for options in [&["-s", "sym"][..], &["--threads", "1"], &["--time", "0%-50%"], &["-S", &name]]
    {
        let rows = asked.rows(options);
        let row = rows.iter().find(|row| row["symbol"]["name"] == name.as_str());
        assert_eq!(row.expect("the function")["symbol"]["handle"], handle, "{options:?}");
    }
}

#[test]
fn the_handle_of_a_thread_chooses_its_samples() {
    let asked = Asked::golden("perf-family");
    let thread = heaviest(&asked.rows(&["-s", "tid", "-g", "none"]), "self")["tid"].to_string();
    let report = |tid: &str| asked.text(&["report", "--stdio", "--tid", tid]);
    assert_eq!(report(&format!("t-{thread}")), report(&thread));
    let refused = output(&mut asked.whit(&["report", "--tid", "t-x"]));
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn an_unknown_handle_is_refused_with_the_way_out() {
    let asked = Asked::demo();
    for arguments in [
        &["report", "-S", "f-zzzzzz"][..],
        &["report", "--callers", "f-zzzzzz"],
        &["report", "--callees", "f-zzzzzz"],
        &["annotate", "f-zzzzzz"],
    ] {
        let refused = output(&mut asked.whit(arguments));
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("no function of the recording has the handle f-zzzzzz"), "{said}");
        assert!(said.contains("whit report --brief"), "{said}");
    }
    let refused = output(&mut asked.whit(&["report", "--callers", "kernels::hash_blok"]));
    assert!(stderr(&refused).contains("did you mean 'kernels::hash_block'?"));
}

#[test]
fn a_wait_is_shown_whole_by_its_handle() {
    check("a_wait_is_shown_whole_by_its_handle", || {
        let asked = Asked::mutexes()?;
        let switches = asked.json(&["switches", "--json"]);
        let brief = asked.json(&["report", "--brief=20000", "--json"]);
        let handles = |list: &serde_json::Value| -> Vec<String> {
            let waits = list.as_array().expect("waits").iter();
            waits.map(|wait| words(&wait["handle"]).to_owned()).collect()
        };
        let known = handles(&switches["worst"]);
        let longest = handles(&brief["waits"]["longest"]["first"]);
        assert!(
            !longest.is_empty() && longest.iter().any(|handle| known.contains(handle)),
            "{longest:?}"
        );
        let text = asked.text(&["report", "--brief"]);
        assert!(text.contains(&format!("  {} ", longest[0])), "{text}");
        assert!(text.contains(&format!("--wait {}", longest[0])), "{text}");
        let woken = switches["worst"].as_array().expect("waits");
        let woken = woken.iter().find(|wait| !wait["woken"]["stack"][0].is_null());
        let woken = woken.expect("a wait with the stack of its waker");
        let handle = words(&woken["handle"]);
        let alone = asked.json(&["switches", "--json", "--wait", handle]);
        let all = alone["worst"].as_array().expect("waits");
        assert_eq!(all.len(), 1);
        for member in ["handle", "start_ns", "duration_ns", "comm", "wait_class", "cpu"] {
            assert_eq!(all[0][member], woken[member], "{member}");
        }
        let names = |document: &serde_json::Value, stack: &serde_json::Value| -> Vec<String> {
            let stack = stack.as_array().expect("a stack").iter();
            let name =
                |at: &serde_json::Value| &document["functions"][at.as_u64().unwrap() as usize];
            stack.map(|at| words(&name(at)["name"]).to_owned()).collect()
        };
        let stacks = |document: &serde_json::Value, wait: &serde_json::Value| {
            (names(document, &wait["stack"]), names(document, &wait["woken"]["stack"]))
        };
        assert_eq!(stacks(&alone, &all[0]), stacks(&switches, woken));
        let text = asked.text(&["switches", "--wait", handle]);
        let (waiter, waker) = stacks(&switches, woken);
        assert!(waiter.iter().chain(&waker).all(|name| text.contains(name.as_str())), "{text}");
        assert!(text.contains("woken after"), "{text}");
        Ok(())
    });
}

#[test]
fn a_handle_of_no_wait_is_refused_with_the_way_out() {
    check("a_handle_of_no_wait_is_refused_with_the_way_out", || {
        let asked = Asked::mutexes()?;
        for (handle, why) in [
            ("w-1-1", "no wait of the recording has the handle w-1-1"),
            ("t-1", "t-1 is no handle of a wait"),
        ] {
            let refused = output(&mut asked.whit(&["switches", "--wait", handle]));
            let said = stderr(&refused);
            assert_eq!(refused.status.code(), Some(2), "{said}");
            assert!(said.contains(why) && said.contains("whit report --brief"), "{said}");
        }
        Ok(())
    });
}

#[test]
fn waits_are_chosen_by_the_handle_of_a_function() {
    check("waits_are_chosen_by_the_handle_of_a_function", || {
        let asked = Asked::mutexes()?;
        let switches = asked.json(&["switches", "--json"]);
        let functions = switches["functions"].as_array().expect("functions");
        let take = functions.iter().find(|function| function["name"] == "take_slow");
        let handle = words(&take.expect("a function")["handle"]);
        for command in ["switches", "locks"] {
            let of = |function: &str| asked.text(&[command, "-S", function]);
            assert_eq!(of(handle), of("take_slow"));
            assert!(of(handle).contains("take_slow"), "{command}");
            let refused = output(&mut asked.whit(&[command, "-S", "f-zzzzzz"]));
            assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        }
        Ok(())
    });
}
