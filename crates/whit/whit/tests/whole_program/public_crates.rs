//! Crates that other programs may depend on are complete: their manifests, their dependencies, their README.
//!
//! A crate is public unless its manifest says `publish = false`. Its `README.md` is the documentation of its root, as
//! pages outside of rustdoc show it, so that its example is tried. `WHIT_BLESS=1` writes it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use whit_testing::run;
use whit_testing::{assert_published, published};

/// Bounds of crates.io.
const KEYWORDS_MAX: usize = 5;
const KEYWORD_BYTES_MAX: usize = 20;
/// Shorter ones say little in a list of results.
const DESCRIPTION_BYTES_MIN: usize = 40;

/// The packages of the workspace by name.
fn packages() -> BTreeMap<String, Value> {
    let mut cargo = run::command(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--format-version=1", "--locked", "--offline"]);
    let metadata = run::text(cargo.current_dir(run::repository()));
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.map(|it| (text(it, "name").to_owned(), it.clone())).collect()
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

fn list<'a>(package: &'a Value, field: &str) -> Vec<&'a str> {
    package[field].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect()
}

/// `publish = false` is an empty list of registries.
fn is_public(package: &Value) -> bool {
    package["publish"].is_null()
}

fn folder(package: &Value) -> &Path {
    Path::new(text(package, "manifest_path")).parent().unwrap()
}

/// The defects of a public crate.
fn defects(package: &Value, all: &BTreeMap<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    let mut demand = |holds: bool, defect: &str| {
        if !holds {
            found.push(defect.to_owned());
        }
    };
    let [whit, description] = [text(&all["whit"], "description"), text(package, "description")];
    demand(description.len() >= DESCRIPTION_BYTES_MIN, "a description that says what it does");
    demand(description != whit, "a description of its own");
    let keywords = list(package, "keywords");
    demand((1..=KEYWORDS_MAX).contains(&keywords.len()), "one to five keywords");
    let is_short = |word: &&str| word.len() <= KEYWORD_BYTES_MAX;
    demand(keywords.iter().all(is_short), "keywords of at most 20 bytes");
    demand(!list(package, "categories").is_empty(), "a category");
    demand(!text(package, "license").is_empty(), "a licence");
    demand(!text(package, "rust_version").is_empty(), "the oldest Rust");
    demand(text(package, "version") == text(&all["whit"], "version"), "whit's version");
    demand(text(package, "readme") == "README.md", "a README.md");
    demand(package["metadata"]["docs"]["rs"].is_object(), "settings for docs.rs");
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let same = fs::read(folder(package).join(licence)).ok()
            == fs::read(run::repository().join(licence)).ok();
        demand(same, &format!("a link to {licence}"));
    }
    for dependency in package["dependencies"].as_array().unwrap() {
        let Some(ours) = all.get(text(dependency, "name")) else { continue };
        let of_tests = text(dependency, "kind") == "dev";
        let version = format!("^{}", text(ours, "version"));
        let can_be_had = is_public(ours) && text(dependency, "req") == version;
        // cargo leaves out a dev-dependency without a version.
        let left_out = of_tests && text(dependency, "req") == "*";
        let name = text(ours, "name");
        demand(can_be_had || left_out, &format!("a public `{name}` with the version {version}"));
    }
    found
}

#[test]
fn public_crates_have_complete_manifests() {
    let all = packages();
    let public: Vec<&Value> = all.values().filter(|it| is_public(it)).collect();
    assert!(public.len() >= 10, "{public:?}");
    let found: Vec<String> = public
        .iter()
        .flat_map(|it| defects(it, &all).into_iter().map(|lacks| (text(it, "name"), lacks)))
        .map(|(name, lacks)| format!("{name} has to have {lacks}"))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_crate_that_is_not_for_others_lacks_much() {
    let all = packages();
    let found = defects(&all["whit-profile"], &all);
    for lack in ["a description of its own", "one to five keywords", "a README.md"] {
        assert!(found.iter().any(|it| it == lack), "{lack}: {found:?}");
    }
    let private = "a public `whit-symbolize` with the version ^";
    assert!(found.iter().any(|it| it.starts_with(private)), "{found:?}");
}

/// The page that names the public crates names all of them, and no other.
#[test]
fn the_promise_names_the_public_crates() {
    let page = published("docs/compatibility.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `whit-"));
    let named: Vec<String> =
        rows.map(|row| format!("whit-{}", row.split('`').next().unwrap())).collect();
    let all = packages();
    let mut public: Vec<&String> =
        all.iter().filter(|(_, it)| is_public(it)).map(|it| it.0).collect();
    let mut sorted: Vec<&String> = named.iter().collect();
    sorted.sort();
    public.sort();
    assert_eq!(sorted, public);
}

/// A link to an item, which rustdoc alone resolves, as the item's name: "[`X`]", "[`X`](path)" and "[X](mod@path)".
fn without_item_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('[') {
        out.push_str(before);
        let Some((label, behind)) = behind.split_once(']') else {
            out.push('[');
            rest = behind;
            continue;
        };
        let target = behind.strip_prefix('(').and_then(|it| it.split_once(')'));
        match target {
            Some((target, after)) if target.contains("://") => {
                out.push_str(&format!("[{label}]({target})"));
                rest = after;
            }
            Some((_, after)) => {
                out.push_str(label);
                rest = after;
            }
            None if label.starts_with('`') => {
                out.push_str(label);
                rest = behind;
            }
            None => {
                out.push_str(&format!("[{label}]"));
                rest = behind;
            }
        }
    }
    out + rest
}

/// The README of a crate, by the documentation of its root.
fn readme(package: &Value) -> String {
    let root = fs::read_to_string(folder(package).join("src/lib.rs")).unwrap();
    let lines = root.lines().map_while(|line| line.strip_prefix("//!"));
    let mut out = format!("# {}\n\n", text(package, "name"));
    let mut is_code = false;
    for line in lines.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        let fence = line.starts_with("```");
        if fence {
            is_code = !is_code;
        }
        let shown = match line {
            // rustdoc takes code for Rust, and hides these lines.
            "```" if is_code => "```rust".to_owned(),
            "#" if is_code => continue,
            _ if is_code && line.starts_with("# ") => continue,
            _ if is_code => line.to_owned(),
            _ if line.starts_with("# ") => format!("#{}", without_item_links(line)),
            _ => without_item_links(line),
        };
        out.push_str(shown.trim_end());
        out.push('\n');
    }
    let version = text(package, "rust_version");
    out + &format!(
        "\n## Licence\n\nApache License 2.0 or MIT, at your option. Needs Rust {version}.\n"
    )
}

#[test]
fn readmes_of_public_crates_are_their_documentation() {
    for package in packages().values().filter(|it| is_public(it)) {
        let path = folder(package).join("README.md");
        let file = path.strip_prefix(run::repository().canonicalize().unwrap());
        assert_published(file.unwrap().to_str().unwrap(), &readme(package));
    }
}

#[test]
fn links_to_items_become_names() {
    for (line, shown) in [
        (
            "A [`Driver`] of [a PMU](https://x.test/y), [`read`](Driver::read).",
            "A `Driver` of [a PMU](https://x.test/y), `read`.",
        ),
        ("- [`assign`](mod@assign): `a[0]` and [b]", "- `assign`: `a[0]` and [b]"),
        ("no link", "no link"),
        ("open [", "open ["),
    ] {
        assert_eq!(without_item_links(line), shown);
    }
}
