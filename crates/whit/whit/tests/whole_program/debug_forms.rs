//! Names from all forms of debug information, beside those that programs have by construction (`whit bench forms`).

use std::path::Path;

use serde_json::Value;

use crate::support::tools::{sibling, text, whit};
use crate::support::{Skip, check, probe};

/// Standard errors that no share is off by chance: once in a million runs.
const STANDARD_ERRORS_MAX: f64 = 5.0;
/// The shares of functions by construction.
const SHARES: [f64; 3] = [50.0, 30.0, 20.0];

fn compare(compiler: &str, place: &Path) -> Value {
    let json = place.join("result.json");
    let mut bench = whit();
    bench.args(["bench", "forms", "--readers", "whit", "--seconds", "0.2", "--compilers"]);
    bench.arg(compiler).arg("--dir").arg(place).arg("--json").arg(&json);
    let printed = text(&mut bench);
    assert!(printed.contains("Percentages of samples"), "{printed}");
    serde_json::from_slice(&std::fs::read(json).expect("read the JSON")).expect("parse the JSON")
}

/// Every sample has its function, its inlined function and its line, in each form that has them.
fn all_are_named(compiler: &str) -> Result<(), Skip> {
    for program in [compiler, "nm", "objcopy", "objdump"] {
        probe::program(program)?;
    }
    sibling("whit-bench");
    let place = tempfile::tempdir().expect("make a directory");
    let result = compare(compiler, place.path());
    // Programs that pack debug information may be missing.
    for absent in result["absent"].as_array().expect("a list") {
        whit_testing::skip(
            &format!("debug_forms of {}", absent["what"]),
            &absent["reason"].to_string(),
        );
    }
    let rows = result["rows"].as_array().expect("rows");
    let mut shares = [0.0; 3];
    for row in rows {
        let named = &row["readings"][0][1];
        let number = |field: &str| named[field].as_f64().expect("a number");
        let samples = number("samples");
        let wanted = if row["form"] == "none" { 0.0 } else { samples };
        let levels = ["functions", "inlined", "lines"].map(number);
        assert!(samples > 20.0 && levels == [wanted; 3] && number("wrong") == 0.0, "{row}");
        for (sum, share) in shares.iter_mut().zip(named["shares"].as_array().expect("a list")) {
            *sum += share.as_f64().expect("a number");
        }
    }
    assert!(rows.iter().any(|row| row["form"] == "full"), "{result}");
    let all: f64 = shares.iter().sum();
    for (share, wanted) in shares.iter().zip(SHARES) {
        // A busy machine takes fewer samples.
        let standard_error = (wanted * (100.0 - wanted) / all).sqrt();
        let off = (share * 100.0 / all - wanted).abs();
        assert!(off < STANDARD_ERRORS_MAX * standard_error, "{shares:?}");
    }
    Ok(())
}

#[test]
fn samples_of_gcc_s_programs_are_named_from_all_forms() {
    check("debug_forms_gcc", || all_are_named("g++"));
}

#[test]
fn samples_of_rust_programs_are_named_from_all_forms() {
    check("debug_forms_rust", || all_are_named("rustc"));
}
