//! Blocks of the book that record are run on this machine, or in a clean root.
//!
//! A block that begins with ```` ```console,recorded ```` has commands `$ COMMAND`, each with the lines that follow as
//! its output. Commands of all pages of a part of the book run in order, in one folder; each has to succeed. Any number
//! stands for any other. `…` in a line stands for any text, and a line `…` for any lines. A command that ends with `&`
//! goes on beside the next ones.
//!
//! Blocks that begin with ```` ```console,install ```` run in the clean root alone, which `WHIT_TUTORIAL_ROOT` names
//! (`scripts/tutorial.sh`).

use super::{book, links, trimmed, without_numbers};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use whit_testing::probe;
use whit_testing::run::{self, repository};
use whit_testing::wait::{Load, wait_until};
use whit_testing::{Skip, check};

const RECORDED: &str = "```console,recorded";
const INSTALL: &str = "```console,install";

/// A command of the book, with the output that its page shows.
struct Step {
    command: String,
    shown: String,
    is_installation: bool,
}

/// The commands of a page that are run, in order.
fn steps(page: &str) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut block = None;
    for line in page.lines() {
        match (block, line) {
            (None, RECORDED) => block = Some(false),
            (None, INSTALL) => block = Some(true),
            (Some(_), "```") => block = None,
            (Some(is_installation), line) => match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => {
                    let (command, shown) = (command.to_owned(), String::new());
                    found.push(Step { command, shown, is_installation });
                }
                (None, Some(step)) => step.shown += &format!("{line}\n"),
                (None, None) => panic!("a block begins without a command: {line}"),
            },
            (None, _) => {}
        }
    }
    found
}

/// Whether a line of output is the shown one, numbers aside.
fn is_line(shown: &str, actual: &str) -> bool {
    let (shown, actual) = (without_numbers(shown.trim()), without_numbers(actual.trim()));
    let mut pieces = shown.split('…').map(str::trim);
    let Some(mut rest) = actual.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// The first shown line that the output does not have in its place, or the first line of output that is not shown.
fn difference(shown: &str, actual: &str) -> Option<String> {
    // A busy machine may lose records, and each report says so.
    let mut actual = actual.lines().filter(|line| !line.starts_with("# Lost")).peekable();
    let mut has_gap = false;
    for line in trimmed(shown).lines() {
        if line == "…" {
            has_gap = true;
            continue;
        }
        while has_gap && actual.next_if(|actual| !is_line(line, actual)).is_some() {}
        if !actual.next().is_some_and(|actual| is_line(line, actual)) {
            return Some(format!("the book shows: {line}"));
        }
        has_gap = false;
    }
    let more = actual.next().filter(|_| !has_gap);
    more.map(|line| format!("the book does not show: {line}"))
}

/// The system whose commands run.
enum System {
    /// This machine with the tested whit, in a folder.
    This(PathBuf),
    /// A root with an installed whit.
    CleanRoot(PathBuf),
}

/// A mount namespace of `scripts/inside.sh`, in which all commands run. The kernel may take many seconds to end such a
/// namespace next to busy threads: a command with a namespace of its own ended after the programs that it ran with.
struct Place {
    system: System,
    namespace: Load,
}

impl Place {
    fn new(system: System) -> Place {
        let mut inside = Command::new(repository().join("scripts/inside.sh"));
        inside.arg(match &system {
            System::This(_) => Path::new("/"),
            System::CleanRoot(root) => root,
        });
        let namespace = Load::start(inside.args(["sleep", "infinity"]));
        let comm = format!("/proc/{}/comm", namespace.id());
        let is_made = || fs::read_to_string(&comm).is_ok_and(|comm| comm == "sleep\n");
        wait_until("the namespace is made", is_made);
        Place { system, namespace }
    }

    fn shell(&self, command: &str) -> Command {
        let mut inside = Command::new("nsenter");
        inside.env_remove("PAGER");
        inside.args(["--mount", "--root", "--target", &self.namespace.id().to_string(), "--"]);
        match &self.system {
            System::This(folder) => {
                let programs = Path::new(env!("CARGO_BIN_EXE_whit")).parent().unwrap();
                let path = std::env::var("PATH").unwrap();
                let path = format!("{}:{}:{path}", programs.display(), folder.display());
                let folder = folder.display();
                inside.env("PATH", path).args(["sh", "-c"]);
                inside.arg(format!("cd '{folder}' && exec 2>&1 && {command}"));
            }
            System::CleanRoot(_) => {
                inside.args(["env", "-i", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"]);
                inside.arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
                inside.args(["sh", "-c", &format!("cd && exec 2>&1 && {command}")]);
            }
        }
        inside
    }

    fn installs(&self) -> bool {
        matches!(self.system, System::CleanRoot(_))
    }
}

/// Commands that go on beside others; they end by themselves.
#[derive(Default)]
struct Background(Vec<Child>);

impl Drop for Background {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| drop(child.wait()));
    }
}

/// Runs the commands of a page, and adds those that fail or print other output.
fn follow(page: &Path, place: &Place, wrong: &mut Vec<String>) -> usize {
    let text = fs::read_to_string(page).unwrap();
    println!("\n=== {}\n", page.strip_prefix(book()).unwrap().display());
    let (mut background, mut count) = (Background::default(), 0);
    for step in steps(&text).iter().filter(|step| place.installs() || !step.is_installation) {
        count += 1;
        println!("$ {}", step.command);
        let mut shell = place.shell(step.command.strip_suffix('&').unwrap_or(&step.command));
        if step.command.ends_with('&') {
            background.0.push(shell.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap());
            continue;
        }
        let output = shell.stdin(Stdio::null()).output().unwrap();
        let printed = trimmed(&String::from_utf8_lossy(&output.stdout));
        println!("{printed}{}", String::from_utf8_lossy(&output.stderr));
        let differs = match output.status.success() {
            true => difference(&step.shown, &printed),
            false => Some(format!("{}", output.status)),
        };
        let name = page.file_name().unwrap().display();
        wrong.extend(differs.map(|it| format!("{name}: $ {}\n{it}\n{printed}", step.command)));
    }
    count
}

/// The pages of a part of the book, in the order of the summary.
fn pages(part: &str) -> Vec<PathBuf> {
    let summary = fs::read_to_string(book().join("SUMMARY.md")).unwrap();
    let links = links(&summary);
    links.iter().filter(|link| link.starts_with(part)).map(|link| book().join(link)).collect()
}

/// Builds the server of the examples in a folder, under both of its names.
fn build_server(folder: &Path) {
    let source = book().join("tutorial/shop.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"]);
    assert!(compiler.arg(folder.join("shop")).arg(source).status().unwrap().success());
    run::copy_program(folder.join("shop"), folder.join("server"));
    run::copy_program(book().join("how-to/compare-builds.sh"), folder.join("compare-builds.sh"));
}

fn can_record() -> Result<(), Skip> {
    probe::root()?;
    probe::program("unshare")?;
    probe::program("nsenter")?;
    probe::program("cc")?;
    probe::whole_cpus()?;
    probe::bpf_stacks()?;
    probe::cgroups_v2()?;
    probe::cgroup_events()?;
    probe::tracefs().map(drop)
}

fn follow_all(part: &str, system: System, least: usize) {
    let place = Place::new(system);
    let (mut count, mut wrong) = (0, Vec::new());
    for page in pages(part) {
        count += follow(&page, &place, &mut wrong);
    }
    assert!(count >= least, "only {count} commands of {part} are run");
    assert!(wrong.is_empty(), "{} of {count} commands:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// One test: its pages have servers that run for ten seconds, and loads for all CPUs. It waits most of the time.
#[test]
fn tutorials_and_how_tos_run() {
    check("book::tutorials_and_how_tos_run", || {
        can_record()?;
        if let Some(root) = std::env::var_os("WHIT_TUTORIAL_ROOT") {
            follow_all("tutorial/", System::CleanRoot(root.into()), 20);
            return Ok(());
        }
        for (part, least) in [("tutorial/", 20), ("how-to/", 10)] {
            let folder = tempfile::tempdir().unwrap();
            build_server(folder.path());
            follow_all(part, System::This(folder.path().to_owned()), least);
        }
        Ok(())
    });
}

#[test]
fn a_line_of_other_shape_is_found() {
    let text = "# Overhead  Symbol\n# ......  ...\n 9.5 %  find\n 7 %  other\n";
    assert_eq!(difference("# Overhead  Symbol\n# ..  ..\n 11 %  find\n 8 %  other\n", text), None);
    assert_eq!(difference("# Overhead…\n…\n 11 %  find\n…\n", text), None);
    assert_eq!(difference("…\n 1 %  …er\n", text), None);
    let found = |shown: &str| difference(shown, text).unwrap();
    assert_eq!(found("# Overhead  Symbol\n 11 %  find\n…\n"), "the book shows:  11 %  find");
    assert_eq!(found("…\n 11 %  find\n"), "the book does not show:  7 %  other");
    assert_eq!(found("…\n 11 %  search\n…\n"), "the book shows:  11 %  search");
    assert_eq!(found("…\n 11 %  …x\n…\n"), "the book shows:  11 %  …x");
}

#[test]
fn commands_that_run_are_found_in_pages() {
    let page = "```\n$ a\n```\n```console,install\n$ b\nx\n```\n```console,recorded\n$ c\ny\nz\n$ d\n```\n";
    let found = steps(page);
    let texts: Vec<_> =
        found.iter().map(|it| (&*it.command, &*it.shown, it.is_installation)).collect();
    assert_eq!(texts, [("b", "x\n", true), ("c", "y\nz\n", false), ("d", "", false)]);
}
