//! No format of the programs has a width or a precision that is counted at run time: the standard library panics where
//! one is above 65,535, and names of others are longer. `whit_types::pad` writes any width.

use std::path::{Path, PathBuf};

/// Tools of developers, which format numbers and names of their own.
const OWN_TEXT: [&str; 3] = ["whit-bench", "whit-testing", "whit-torture"];

#[test]
fn all_widths_of_formats_are_constants() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let folders = |path: &Path| path.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut files = Vec::new();
    for folder in folders(crates).flat_map(|group| folders(&group)) {
        if !OWN_TEXT.iter().any(|name| folder.ends_with(name)) {
            sources(&folder.join("src"), &mut files);
        }
    }
    assert!(files.len() > 500, "{} files are not all sources", files.len());
    let mut found = Vec::new();
    let pads = crates.join("base/whit-types/src/pad.rs");
    for file in files.iter().filter(|file| !is_test(file) && **file != pads) {
        let text = std::fs::read_to_string(file).unwrap();
        // Tests at the end of a file may use widths of their own.
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (number, line) in (1..).zip(code.lines()) {
            if has_variable_width(line) {
                found.push(format!("{}:{number}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "widths that input may decide:\n{}", found.join("\n"));
}

#[test]
fn variable_widths_are_recognized() {
    for line in [
        r#"format!("{text:>width$}")"#,
        r#"write!(out, "{:indent$}{name}", "", indent = depth)"#,
        r#"format!("{value:17.digits$}")"#,
        r#"format!("{:>1$}", text, width)"#,
        r#"format!("{value:.*}", digits, value)"#,
        r#""{a:>share$}  {b:-^cycles$}""#,
        r#"format!("{number:#0width$x}")"#,
    ] {
        assert!(has_variable_width(line), "{line}");
    }
    for line in [
        r#"format!("{text:>WIDTH$} {other:>8.2} {hex:#x}")"#,
        r#"// the variable $HOME: {a}$"#,
        r#"format!("{name}: {value}$")"#,
        r#"macro_rules! m { ($a:ident) => { $a } }"#,
    ] {
        assert!(!has_variable_width(line), "{line}");
    }
}

fn sources(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = directory.read_dir() else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn is_test(file: &Path) -> bool {
    let is_named = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
    file.components().any(|part| is_named(part.as_os_str()))
}

/// A placeholder `{name:spec}` whose spec counts with `lower_case$`, `1$` or `*`.
fn has_variable_width(line: &str) -> bool {
    line.split('{').skip(1).any(|rest| {
        let Some((name, spec)) = rest.split_once('}').and_then(|(inner, _)| inner.split_once(':'))
        else {
            return false;
        };
        let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        let counted = |(at, _): (usize, &str)| {
            let count = spec[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
            count.is_some_and(|count| {
                !count.is_empty() && !count.chars().any(|c| c.is_ascii_uppercase())
            })
        };
        is_name && (spec.contains(".*") || spec.match_indices('$').any(counted))
    })
}
