//! The formats of releases: recordings, datasets, JSON and configurations of each release stay readable
//! (`docs/compatibility.md`).
//!
//! `tests/kept` has a folder for each version. `WHIT_BLESS=1` writes that of the present version, as long as no tag has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use whit_testing::golden::Golden;
use whit_testing::published;

use crate::query::STATEMENTS;
use crate::support::tools::{command, repository, text, whit};

/// Recordings of the dataset: waits and requests, and losses.
const IN_DATASET: [&str; 2] =
    ["tests/recordings/requests/requests.data", "tests/recordings/golden/losses/recording.data"];

/// Rows of an answer that are kept.
const ROWS_KEPT: usize = 24;

fn kept() -> PathBuf {
    repository().join("tests/kept")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folders of all versions. That of the present one is written first where `WHIT_BLESS=1` asks for it.
fn versions(write: impl Fn(&Path)) -> Vec<PathBuf> {
    let present = env!("CARGO_PKG_VERSION");
    if std::env::var_os("WHIT_BLESS").is_some_and(|it| it == "1") {
        let tag = format!("v{present}");
        let tags = text(command("git").args(["tag", "-l", &tag]).current_dir(repository()));
        assert!(tags.is_empty(), "{tag} is released: its folder in tests/kept stays as it is");
        let folder = kept().join(present);
        fs::create_dir_all(&folder).unwrap();
        write(&folder);
    }
    let entries = fs::read_dir(kept()).unwrap().map(|entry| entry.unwrap().path());
    let found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    assert!(found.iter().any(|path| path.ends_with(present)), "tests/kept has no {present}");
    found
}

/// Files of recordings below a folder, also those of directories, from the root of the repository.
fn recordings(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(repository().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if repository().join(&path).is_dir() {
            recordings(&path, found);
        } else if path.iter().any(|part| Path::new(part).extension().is_some_and(|it| it == "data"))
        {
            found.push(path.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn recordings_of_releases_are_kept() {
    let sums = |paths: &[String]| {
        text(command("sha256sum").arg("--").args(paths).current_dir(repository()))
    };
    let write = |folder: &Path| {
        let mut paths = Vec::new();
        recordings(Path::new("tests/recordings"), &mut paths);
        paths.sort();
        fs::write(folder.join("recordings.sha256"), sums(&paths)).unwrap();
    };
    for version in versions(write) {
        let list = read(&version.join("recordings.sha256"));
        let paths: Vec<String> =
            list.lines().map(|line| line.split_once("  ").unwrap().1.to_owned()).collect();
        assert!(paths.len() > 40, "{list}");
        let present = sums(&paths);
        let changed: Vec<_> =
            list.lines().zip(present.lines()).filter(|(kept, now)| kept != now).collect();
        assert!(changed.is_empty(), "a release keeps its recordings, add others: {changed:?}");
    }
}

/// Writes a dataset with the paths of the repository.
fn export(dataset: &Path) {
    let _ = fs::remove_dir_all(dataset);
    let golden = Golden::folder();
    let mut export = whit();
    export.args(["export", "--parquet"]).arg(dataset).current_dir(repository());
    export.arg("--symfs").arg(golden.join("root")).arg("--kallsyms").arg(golden.join("kallsyms"));
    for path in IN_DATASET {
        export.args(["-i", path]);
    }
    text(&mut export);
}

/// By statement, the number of rows and some of them, in an order that no engine decides.
fn answers<'a>(
    dataset: &Path,
    statements: impl IntoIterator<Item = &'a str>,
) -> BTreeMap<String, Vec<String>> {
    let answer = |sql: &str| {
        let mut query = whit();
        query.args(["query", "--dataset"]).arg(dataset).args(["--json", "-c", sql]);
        let rows: Value = serde_json::from_str(&text(&mut query)).unwrap();
        let rows = rows.as_array().unwrap().iter();
        let mut rows: Vec<String> = rows.map(Value::to_string).collect();
        rows.sort_unstable();
        let step = rows.len().div_ceil(ROWS_KEPT).max(1);
        let count = format!("{} rows", rows.len());
        Some(count).into_iter().chain(rows.into_iter().step_by(step)).collect()
    };
    statements.into_iter().map(|sql| (sql.to_owned(), answer(sql))).collect()
}

#[test]
fn datasets_of_releases_are_read() {
    let write = |folder: &Path| {
        let dataset = folder.join("dataset");
        export(&dataset);
        let json = serde_json::to_string_pretty(&answers(&dataset, STATEMENTS)).unwrap();
        fs::write(folder.join("answers.json"), json + "\n").unwrap();
    };
    for version in versions(write) {
        let kept: BTreeMap<String, Vec<String>> =
            serde_json::from_str(&read(&version.join("answers.json"))).unwrap();
        let rows: usize = kept.values().map(Vec::len).sum();
        assert!(kept.len() >= 10 && rows > 100, "{} answers, {rows} rows", kept.len());
        let now = answers(&version.join("dataset"), kept.keys().map(String::as_str));
        for (sql, rows) in &kept {
            assert_eq!(rows, &now[sql], "{}: {sql}", version.display());
        }
    }
}

/// A schema as lines `document member.member[].member: types`. Members of a type that contains itself are listed once.
fn members(document: &str, schema: &Value) -> BTreeSet<String> {
    fn types(node: &Value, root: &Value) -> BTreeSet<String> {
        let node = resolved(node, root);
        let mut found = BTreeSet::new();
        for choice in ["anyOf", "oneOf"] {
            for branch in node[choice].as_array().into_iter().flatten() {
                found.extend(types(branch, root));
            }
        }
        let own = &node["type"];
        let several = own.as_array().into_iter().flatten();
        found.extend(several.chain(Some(own)).filter_map(Value::as_str).map(str::to_owned));
        if found.is_empty() && node.get("const").is_some() {
            found.insert("string".to_owned());
        }
        found
    }
    fn resolved<'a>(node: &'a Value, root: &'a Value) -> &'a Value {
        match node["$ref"].as_str() {
            Some(path) => root.pointer(path.trim_start_matches('#')).expect("a definition"),
            None => node,
        }
    }
    fn walk<'a>(
        node: &'a Value,
        path: &str,
        root: &'a Value,
        inside: &mut Vec<&'a Value>,
        out: &mut BTreeSet<String>,
    ) {
        let node = resolved(node, root);
        if inside.iter().any(|outer| std::ptr::eq(*outer, node)) {
            return;
        }
        inside.push(node);
        for choice in ["anyOf", "oneOf", "allOf", "prefixItems"] {
            for branch in node[choice].as_array().into_iter().flatten() {
                walk(branch, path, root, inside, out);
            }
        }
        for (name, member) in node["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let types: Vec<String> = types(member, root).into_iter().collect();
            out.insert(format!("{}: {}", path.trim_start_matches('.'), types.join(" or ")));
            walk(member, &path, root, inside, out);
        }
        if node["items"].is_object() {
            walk(&node["items"], &format!("{path}[]"), root, inside, out);
        }
        if node["additionalProperties"].is_object() {
            walk(&node["additionalProperties"], &format!("{path}.*"), root, inside, out);
        }
        inside.pop();
    }
    let mut out = BTreeSet::new();
    walk(schema, "", schema, &mut Vec::new(), &mut out);
    out.into_iter().map(|line| format!("{document} {line}")).collect()
}

/// The members of all published documents.
fn documents() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(repository().join("docs/schemas")).unwrap() {
        let path = entry.unwrap().path();
        let schema: Value = serde_json::from_str(&read(&path)).unwrap();
        found.extend(members(path.file_stem().unwrap().to_str().unwrap(), &schema));
    }
    found
}

#[test]
fn json_documents_keep_the_members_of_releases() {
    let now = documents();
    let write = |folder: &Path| {
        let mut lines = String::new();
        now.iter().for_each(|line| writeln!(lines, "{line}").unwrap());
        fs::write(folder.join("json.txt"), lines).unwrap();
    };
    for version in versions(write) {
        let list = read(&version.join("json.txt"));
        assert!(list.lines().count() > 300, "{list}");
        let gone: Vec<&str> = list.lines().filter(|line| !now.contains(*line)).collect();
        assert!(
            gone.is_empty(),
            "members of {} that went away or have another type:\n{}\nKeep them. A break on purpose raises `version` of \
             the document, has a line in CHANGELOG.md, and takes the line out of json.txt.",
            version.display(),
            gone.join("\n")
        );
    }
}

#[test]
fn members_of_a_schema_are_found_with_their_types() {
    let schema = serde_json::json!({
        "properties": {
            "a": { "type": ["string", "null"] },
            "list": { "type": "array", "items": { "$ref": "#/$defs/Node" } },
            "either": { "anyOf": [{ "$ref": "#/$defs/Node" }, { "type": "null" }] },
        },
        "$defs": { "Node": { "type": "object", "properties": {
            "n": { "type": "integer" },
            "inner": { "$ref": "#/$defs/Node" },
        } } },
    });
    let lines: Vec<String> = members("d", &schema).into_iter().collect();
    assert_eq!(
        lines,
        [
            "d a: null or string",
            "d either.inner: object",
            "d either.n: integer",
            "d either: null or object",
            "d list: array",
            "d list[].inner: object",
            "d list[].n: integer",
        ]
    );
}

/// The keys of a configuration, as the page lists them.
fn keys() -> Vec<String> {
    let page = published("docs/watch.md");
    let table = page.split("<!-- keys -->").nth(1).unwrap().split("<!-- end").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

#[test]
fn configurations_of_releases_are_taken() {
    for version in versions(|_| ()) {
        let path = version.join("watch.toml");
        text(whit().args(["watch", "check", "--config"]).arg(&path));
    }
    let present = read(&kept().join(env!("CARGO_PKG_VERSION")).join("watch.toml"));
    let keys = keys();
    assert!(keys.len() > 15, "{keys:?}");
    let set = |key: &&String| present.lines().any(|line| line.starts_with(&format!("{key} = ")));
    let missing: Vec<&String> = keys.iter().filter(|key| !set(key)).collect();
    assert!(missing.is_empty(), "the kept configuration does not set {missing:?}");
}
