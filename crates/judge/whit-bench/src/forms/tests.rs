use std::path::Path;

use serde_json::json;

use super::judge::{Frame, Sample};
use super::*;
use crate::bench::{Figures, page};

fn frame(function: &str, is_inlined: bool, line: Option<u32>) -> Frame {
    let line = line.map(|line| ("program.cpp".to_owned(), line));
    Frame { function: function.to_owned(), is_inlined, line }
}

#[test]
fn frames_of_the_innermost_address_are_read_from_text() {
    let printed = "
\t    1234 mix
  program.cpp:5 (inlined)
\t    1234 fold (/p/program)
  program.cpp:6
\t    5678 main (/p/program)
  program.cpp:9


\t    1234 mix (inlined)
\t    1234 fold (/p/program)
  program[1238]
\t    5678 main (/p/program)


\t    1240 [unknown] (/p/program)


\t    9999 memcpy (/lib/libc.so.6)
  memcpy.S:4

";
    let samples = readers::samples(printed, Path::new("/p/program"));
    let of = |address, frames: &[Frame]| Sample { address, frames: frames.to_vec() };
    let expected = [
        of(0x1234, &[frame("mix", true, Some(5)), frame("fold", false, Some(6))]),
        of(0x1234, &[frame("mix", true, None), frame("fold", false, None)]),
        of(0x1240, &[frame("[unknown]", false, None)]),
    ];
    assert_eq!(samples, expected);
}

#[test]
fn samplys_answers_are_joined_with_its_samples() {
    let profile = json!({
        "libs": [
            { "name": "libc.so.6" },
            { "name": "program", "debugName": "program", "breakpadId": "AB0" },
        ],
        "threads": [{
            "samples": { "stack": [0, 1, 0, null, 2] },
            "stackTable": { "frame": [0, 1, 2] },
            "frameTable": { "address": [16, 32, 48], "func": [0, 0, 1] },
            "funcTable": { "resource": [0, 1] },
            "resourceTable": { "lib": [1, 0] },
        }],
    });
    let (library, addresses) = samply::addresses(&profile, "program").unwrap();
    assert_eq!((library, &addresses[..]), (json!(["program", "AB0"]), &[16, 32, 16][..]));
    let whole = json!([{
        "function": "fold", "file": "program.cpp", "line": 6,
        "inlines": [{ "function": "mix", "file": "program.cpp", "line": 5 }],
    }]);
    let answer = json!({ "results": [{ "stacks": [whole, [{ "function": "fun_20" }], whole] }] });
    let samples = samply::samples(&answer, &addresses, 0x400000);
    assert_eq!(samples[0], samples[2]);
    let expected = [frame("mix", true, Some(5)), frame("fold", false, Some(6))];
    assert_eq!((samples[0].address, &samples[0].frames[..]), (0x400010, &expected[..]));
    assert_eq!(samples[1].frames, [frame("fun_20", false, None)]);
}

#[test]
fn the_address_of_samplys_server_is_in_what_it_prints() {
    let said = "https://p.example/from-url/http%3A%2F%2F127.0.0.1%3A3400%2Fabc%2Fprofile.json/?symbolServer=\
                http%3A%2F%2F127.0.0.1%3A3400%2Fabc\n";
    let served = samply::served(said).unwrap();
    assert_eq!(served, ("127.0.0.1:3400".to_owned(), "abc".to_owned()));
    assert_eq!(samply::served(said.trim_end()), None, "it may not have written all");
}

#[test]
fn rows_have_percentages_or_the_reason() {
    let named = Named {
        samples: 2000,
        functions: 2000,
        inlined: 1500,
        lines: 1999,
        wrong: 500,
        shares: [1000, 590, 410],
    };
    let failed = Reading::Failed { reason: "samply: took more than 9 s\nmore".to_owned() };
    let comparison = Comparison {
        versions: vec!["whit 1".to_owned()],
        rows: vec![Row {
            compiler: Compiler::Go,
            form: Form::Full,
            readings: vec![(Reader::Whit, Reading::Named(named)), (Reader::Samply, failed)],
        }],
        absent: vec![Absent {
            what: "g++, dwz".to_owned(),
            reason: "dwz failed\nelsewhere".to_owned(),
        }],
    };
    let text = page(None, &comparison);
    assert!(text.contains("| 100 / 75.0 / 99.9; wrong: 25.0 |"), "{text}");
    assert!(text.contains("samply: took more than 9 s |") && !text.contains("more\n"), "{text}");
    assert!(text.contains("- not here: g++, dwz: dwz failed\n"), "{text}");
    let shares = "- whit: functions take 50.0 / 29.5 / 20.5 % of 2000 samples, by construction 50 / 30 / 20 %\n";
    assert!(text.contains(shares) && !text.contains("- samply: functions"), "{text}");
    assert!(comparison.succeeded());
}

#[test]
fn a_program_that_does_not_compile_is_a_reason() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("g++-full")).unwrap();
    // Nothing can be written over a folder.
    std::fs::create_dir(place.path().join("g++-full/program")).unwrap();
    let built = build::program(Compiler::Gcc, Form::Full, place.path()).unwrap();
    assert!(built.unwrap_err().contains("g++"));
}
