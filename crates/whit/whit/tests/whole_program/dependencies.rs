//! The rules of `ARCHITECTURE.md` about dependencies, held against `cargo tree`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use whit_testing::run;

/// A rule.
const ONLY_OF_TESTS: &str = "be anything but a dev-dependency";

/// The crates that each crate of the workspace names in its own manifest.
struct Tree {
    direct: BTreeMap<String, BTreeSet<String>>,
}

/// Lines of `cargo tree`: names of packages, behind their depth where `prefix` is `depth`. Dependencies of tests do not
/// count.
fn cargo_tree(arguments: &[&str]) -> Vec<String> {
    let mut tree = run::command(env!("CARGO"));
    tree.args(["tree", "--quiet", "--locked", "--edges", "normal,build", "--no-dedupe"]);
    tree.args(["--format", " {p}"]).args(arguments).current_dir(run::repository());
    run::text(&mut tree).lines().map(str::to_owned).collect()
}

/// The name of a package in `NAME vVERSION (PATH)`.
fn name(package: &str) -> &str {
    package.trim_start().split(' ').next().unwrap_or_default()
}

impl Tree {
    fn of_workspace() -> Tree {
        let mut direct = BTreeMap::<String, BTreeSet<String>>::new();
        let mut member = String::new();
        for line in cargo_tree(&["--workspace", "--depth", "1", "--prefix", "depth"]) {
            match line.split_once(' ') {
                Some(("0", package)) => {
                    member = name(package).to_owned();
                    direct.entry(member.clone()).or_default();
                }
                Some(("1", package)) => {
                    direct.entry(member.clone()).or_default().insert(name(package).to_owned());
                }
                _ => {}
            }
        }
        assert!(direct.len() > 40, "{direct:?}");
        Tree { direct }
    }

    fn direct(&self, member: &str) -> &BTreeSet<String> {
        self.direct.get(member).unwrap_or_else(|| panic!("there is no crate {member}"))
    }

    fn users<'a>(&'a self, of: &'a str) -> impl Iterator<Item = &'a str> {
        self.direct.iter().filter(move |(_, on)| on.contains(of)).map(|(member, _)| member.as_str())
    }
}

/// Everything that a crate is built of.
fn closure(package: &str) -> BTreeSet<String> {
    cargo_tree(&["-p", package, "--prefix", "none"])
        .iter()
        .map(|line| name(line).to_owned())
        .collect()
}

/// The names in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The crate and the last cell of each row of the table of crates.
fn rules() -> Vec<(String, String)> {
    let page = std::fs::read_to_string(run::repository().join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `whit"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [package, _, must_not] = cells[..] else { panic!("{row}") };
        (package.trim_matches(['`', ' ']).to_owned(), must_not.to_owned())
    })
    .collect()
}

/// The programs that packages and `make install` have.
fn released() -> impl Iterator<Item = String> {
    let script = std::fs::read_to_string(run::repository().join("scripts/share.sh")).unwrap();
    let list = script
        .split_once("PROGRAMS=(")
        .and_then(|(_, list)| list.split_once(')'))
        .expect("a list")
        .0;
    let programs: Vec<String> = list.split(' ').map(str::to_owned).collect();
    assert!(programs.iter().any(|it| it == "whit"), "{programs:?}");
    programs.into_iter()
}

/// Whether a crate is a part of tests alone.
fn is_only_of_tests(package: &str) -> bool {
    rules().iter().any(|(of, rule)| of == package && rule.starts_with(ONLY_OF_TESTS))
}

/// Fails where a crate breaks a rule about dependencies. A rule that is worded in another way fails, too.
fn hold(tree: &Tree, package: &str, rule: &str, checked: &mut u32) {
    let of_workspace = |on: &&String| tree.direct.contains_key(*on);
    let broken: Option<Vec<&str>> = if let Some(by) = rule
        .strip_prefix("be linked by ")
        .or(rule.strip_prefix("be part of "))
        .or(rule.strip_prefix("be linked or built with "))
    {
        match quoted(by).next() {
            Some(program) if closure(program).contains(package) => Some(vec![package]),
            Some(_) => Some(Vec::new()),
            None if by == "anything" => Some(tree.users(package).collect()),
            None if by == "a release" => {
                Some(released().filter(|it| it == package).map(|_| package).collect())
            }
            None => None,
        }
    } else if rule.starts_with(ONLY_OF_TESTS) {
        // Those of tests alone may use each other.
        Some(tree.users(package).filter(|user| !is_only_of_tests(user)).collect())
    } else if let Some(on) = rule.strip_prefix("depend on ") {
        let direct = tree.direct(package);
        match on {
            "anything" => Some(direct.iter().map(String::as_str).collect()),
            _ if on.starts_with("other crates") => {
                let but: BTreeSet<&str> = quoted(on).collect();
                let others = direct.iter().filter(of_workspace);
                Some(others.map(String::as_str).filter(|other| !but.contains(other)).collect())
            }
            "an engine" => {
                let engines = ["whit-bpf-engine", "whit-capture"];
                let all = closure(package);
                Some(engines.into_iter().filter(|engine| all.contains(*engine)).collect())
            }
            _ => None,
        }
    } else {
        // The others are about code.
        return;
    };
    let broken = broken.unwrap_or_else(|| panic!("no test knows: `{package}` must not {rule}"));
    assert!(broken.is_empty(), "`{package}` must not {rule}: {broken:?}");
    *checked += 1;
}

/// Group and crate, as the headings and tables of the page have them.
fn crates_of_the_map() -> BTreeSet<(String, String)> {
    let page = std::fs::read_to_string(run::repository().join("ARCHITECTURE.md")).unwrap();
    let mut group = "";
    let mut crates = BTreeSet::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            group = heading.split(':').next().unwrap_or_default();
        } else if line.starts_with("| `whit") {
            crates.insert((group.to_owned(), quoted(line).next().unwrap_or_default().to_owned()));
        }
    }
    crates
}

#[test]
fn the_map_has_each_crate_in_the_group_of_its_folder() {
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect()
    };
    let crates = run::repository().join("crates");
    let mut folders = BTreeSet::new();
    for group in names(&crates) {
        folders.extend(names(&crates.join(&group)).into_iter().map(|it| (group.clone(), it)));
    }
    let on_the_map = crates_of_the_map();
    let differ: Vec<_> = folders.symmetric_difference(&on_the_map).collect();
    assert!(differ.is_empty(), "only a folder, or only on the map: {differ:?}");
}

#[test]
fn crates_keep_to_the_map() {
    let tree = Tree::of_workspace();
    let mut checked = 0;
    for (package, must_not) in rules() {
        tree.direct(&package);
        // A colon begins an explanation.
        for rule in
            must_not.split([';', ',']).map(|rule| rule.split(':').next().unwrap_or_default().trim())
        {
            hold(&tree, &package, rule, &mut checked);
        }
    }
    assert!(checked >= 20, "{checked} rules");
}

#[test]
fn the_recorder_is_built_without_the_libraries_of_other_programs() {
    let whit = closure("whit");
    assert!(whit.contains("clap") && whit.contains("libbpf-rs"), "{whit:?}");
    for library in
        ["ratatui", "crossterm", "rusqlite", "rustyline", "parquet", "rustls", "ureq", "schemars"]
    {
        assert!(!whit.contains(library), "whit links {library}");
    }
}

/// The rules are not words alone: a crate that breaks one is found.
#[test]
#[should_panic(expected = "`whit-view` must not be linked by `whit`")]
fn a_crate_that_whit_links_breaks_the_rule() {
    hold(&Tree::of_workspace(), "whit-view", "be linked by `whit`", &mut 0);
}
