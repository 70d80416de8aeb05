//! The book shows output as whit prints it, relative links of documents lead to files and headings, and library crates
//! have an example.
//!
//! A block of the book that begins with ```` ```console,tested ```` is run: each line `$ COMMAND` by `sh`, in a
//! folder that has the golden recordings. The lines that follow are its output, both streams together. Blanks at
//! line ends, and empty lines at the beginning and the end do not count. In a block marked
//! `console,tested,varies` each number stands for any number, and a row of blanks or dots for any row.
//! `WHIT_BLESS=1` writes the output into the book.
//!
//! Blocks that record are in [`recorded`].

mod recorded;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use whit_testing::run::repository;

const TESTED: &str = "```console,tested";
const VARIES: &str = "```console,tested,varies";

/// All Markdown files below a folder, through links to files.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(documents(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn book() -> PathBuf {
    repository().join("docs/book/src")
}

/// The folder in which the book's commands run.
fn playground() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(repository().join("tests/recordings/golden")).unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), directory.path().join(entry.file_name())).unwrap();
    }
    directory
}

fn run(command: &str, folder: &Path) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_whit")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.current_dir(folder).env("PATH", path).env("HOME", folder).env_remove("PAGER");
    let output = shell.args(["-c", &format!("exec 2>&1; {command}")]).output().unwrap();
    trimmed(&String::from_utf8(output.stdout).unwrap())
}

fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

/// Any number is `N`, and rows of blanks or dots are one.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let (class, repeats) = match c {
            '0'..='9' => ('N', true),
            ' ' | '.' => (c, true),
            _ => (c, false),
        };
        if !(repeats && out.ends_with(class)) {
            out.push(class);
        }
    }
    out.replace("N.N", "N")
}

/// The document with the output of its tested commands as it is now, and the commands that print other output.
fn refreshed(text: &str, folder: &Path) -> (String, usize, Vec<String>) {
    let (mut out, mut commands, mut stale) = (Vec::new(), 0, Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        if !line.starts_with(TESTED) {
            continue;
        }
        let same = |a: &str, b: &str| match line == VARIES {
            true => without_numbers(a) == without_numbers(b),
            false => a == b,
        };
        while let Some(command) = lines.next_if(|line| *line != "```") {
            let text = command.strip_prefix("$ ").expect("a block begins with a command");
            let mut shown = Vec::new();
            while let Some(line) = lines.next_if(|line| *line != "```" && !line.starts_with("$ ")) {
                shown.push(line);
            }
            commands += 1;
            let actual = run(text, folder);
            out.push(command.to_owned());
            if same(&trimmed(&shown.join("\n")), &actual) {
                out.extend(shown.into_iter().map(str::to_owned));
                continue;
            }
            stale.push(format!("{command}\n{actual}"));
            out.extend((!actual.is_empty()).then_some(actual));
            if lines.peek().is_some_and(|line| line.starts_with("$ ")) {
                out.push(String::new());
            }
        }
    }
    (out.join("\n") + "\n", commands, stale)
}

#[test]
fn the_book_shows_the_output_of_its_commands() {
    let folder = playground();
    let (mut commands, mut stale) = (0, Vec::new());
    for path in documents(&book()).iter().filter(|path| !path.is_symlink()) {
        let (text, run, wrong) = refreshed(&fs::read_to_string(path).unwrap(), folder.path());
        commands += run;
        if !wrong.is_empty() && std::env::var_os("WHIT_BLESS").is_some() {
            fs::write(path, text).unwrap();
        } else {
            stale.extend(wrong.into_iter().map(|wrong| format!("{}: {wrong}", path.display())));
        }
    }
    assert!(commands >= 10, "only {commands} commands are tested");
    assert!(stale.is_empty(), "WHIT_BLESS=1 writes the output:\n{}", stale.join("\n\n"));
}

#[test]
fn a_block_with_other_output_is_found() {
    let folder = playground();
    let text = "```console,tested\n$ echo 12 a\n12 a\n$ echo b\nc\n```\n";
    let (fresh, commands, stale) = refreshed(text, folder.path());
    assert_eq!((commands, stale.len()), (2, 1));
    assert_eq!(fresh, "```console,tested\n$ echo 12 a\n12 a\n$ echo b\nb\n```\n");
    let varies = "```console,tested,varies\n$ echo 1.5 s\n  23 s\n$ echo 7 s\n8.25 s\n```\n";
    assert_eq!(refreshed(varies, folder.path()).2.len(), 1);
}

/// Calls `each` with the lines that stand outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// Anchors of a document's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let count = seen.entry(anchor.clone()).or_default();
            *count += 1;
            if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
        })
        .collect()
}

/// Targets of links, code left out.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let plain: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
        let behind = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(behind.map(|target| target.split(' ').next().unwrap().to_owned()));
    }
    found
}

/// Links of a document that lead nowhere.
fn dead_links(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let leads = |target: &String| {
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let to = if file.is_empty() { path.to_owned() } else { path.parent().unwrap().join(file) };
        let is_there = to.exists();
        is_there
            && (anchor.is_empty()
                || anchors(&fs::read_to_string(&to).unwrap()).contains(&anchor.to_owned()))
    };
    let relative = links(&text)
        .into_iter()
        .filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
    relative
        .filter(|target| !leads(target))
        .map(|link| format!("{}: {link}", path.display()))
        .collect()
}

#[test]
fn links_of_documents_lead_to_files_and_headings() {
    let mut paths: Vec<PathBuf> = documents(&repository().join("docs"));
    // Links of a page that the book borrows are those of the page where it stands.
    paths.retain(|path| !path.is_symlink());
    paths.extend(
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "RELEASE.md", "SECURITY.md"]
            .map(|name| repository().join(name)),
    );
    let dead: Vec<String> = paths.iter().flat_map(|path| dead_links(path)).collect();
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

/// Crates that only tests use, and the writer of reference pages.
const NO_LIBRARIES: [&str; 3] = ["whit-reference", "whit-schemas", "whit-testing"];

#[test]
fn roots_of_library_crates_have_an_example_that_runs() {
    let mut without = Vec::new();
    let folders = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders(repository().join("crates")).flat_map(folders) {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let Ok(root) = fs::read_to_string(folder.join("src/lib.rs")) else { continue };
        let mut fences = root.lines().filter_map(|line| line.strip_prefix("//! ```"));
        if !NO_LIBRARIES.contains(&&*name) && !fences.any(|language| language.is_empty()) {
            without.push(name);
        }
    }
    assert!(without.is_empty(), "crates without an example: {without:?}");
}

#[test]
fn dead_links_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.md");
    fs::write(&path, "# One `two`\n[a](#one-two) [b](a.md#three) `[c](none.md)` [d](none.md)\n")
        .unwrap();
    let names: Vec<String> = dead_links(&path);
    let ends: Vec<&str> = names.iter().filter_map(|name| name.rsplit(' ').next()).collect();
    assert_eq!(ends, ["a.md#three", "none.md"]);
}

/// The path without `..`, by its text alone: symbolic links count as files where they stand.
fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(out.pop(), "{} has no parent", out.display()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// Links of a page that lead nowhere in a built book: out of its source folder, or to a document without a page.
///
/// mdBook copies files other than Markdown, and writes a page for each document that the summary names.
fn links_out(source: &Path, pages: &[PathBuf], page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let files = links(&text).into_iter().filter(|link| !link.contains("://"));
    let files = files.filter(|link| !link.starts_with("mailto:") && !link.starts_with('#'));
    let out = files.filter(|link| {
        let to = lexical(&page.parent().unwrap().join(link.split('#').next().unwrap()));
        let is_document = to.extension().is_some_and(|extension| extension == "md");
        !(to.starts_with(source) && to.is_file() && (!is_document || pages.contains(&to)))
    });
    out.map(|link| format!("{}: {link}", page.display())).collect()
}

#[test]
fn links_of_the_book_stay_inside() {
    let source = lexical(&book());
    let pages = documents(&source);
    let out: Vec<String> = pages.iter().flat_map(|page| links_out(&source, &pages, page)).collect();
    assert!(
        out.is_empty(),
        "links that a built book does not have; docs/book/src has the layout of the repository, \
         with symbolic links to its documents:\n{}",
        out.join("\n")
    );
}

#[test]
fn links_out_of_the_book_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("src");
    fs::create_dir(&source).unwrap();
    for name in ["b.md", "unnamed.md", "data.json", "../c.md"] {
        fs::write(source.join(name), "# B\n").unwrap();
    }
    let page = source.join("a.md");
    let text =
        "# A\n[b](b.md#b) [d](data.json) [c](../c.md) [u](unnamed.md) [s](.) [w](https://w)\n";
    fs::write(&page, text).unwrap();
    let out = links_out(&source, &[page.clone(), source.join("b.md")], &page);
    let ends: Vec<&str> = out.iter().filter_map(|name| name.rsplit(' ').next()).collect();
    assert_eq!(ends, ["../c.md", "unnamed.md", "."]);
}

/// A symbolic link that became a file holds the path of its document and no page.
#[test]
fn pages_of_the_book_begin_with_their_title() {
    let pages = documents(&book());
    let (links, own): (Vec<&PathBuf>, Vec<&PathBuf>) = pages.iter().partition(|p| p.is_symlink());
    assert!(links.len() >= 20 && own.len() >= 20, "{} and {}", links.len(), own.len());
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        assert!(text.starts_with("# "), "{} begins without a title: {text:.60}", page.display());
    }
}

#[test]
fn the_summary_of_the_book_names_each_page_once() {
    let mut named: Vec<PathBuf> = links(&fs::read_to_string(book().join("SUMMARY.md")).unwrap())
        .iter()
        .map(|link| book().join(link))
        .collect();
    named.sort();
    let mut pages = documents(&book());
    pages.retain(|page| !page.ends_with("SUMMARY.md"));
    assert_eq!(named, pages);
}
