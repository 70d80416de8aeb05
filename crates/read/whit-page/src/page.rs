//! Puts template, style, script and data together.

use std::io::{self, Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use sha2::{Digest, Sha256};

use super::HtmlError;
use super::escape::html_text;

const TEMPLATE: &str = include_str!("../../../../web/index.html");
const STYLE: &str = include_str!("../../../../web/style.css");

/// A module of `web/src`, as the build script leaves it.
macro_rules! module {
    ($name:literal) => {
        ($name, include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".z")).as_slice())
    };
}

/// The page's modules, compressed, each after those that it imports from.
const MODULES: &[(&str, &[u8])] = &[
    module!("format.js"),
    module!("names.js"),
    module!("decode.js"),
    module!("moments.js"),
    module!("source.js"),
    module!("colors.js"),
    module!("switches.js"),
    module!("code.js"),
    module!("requests.js"),
    module!("tree.js"),
    module!("roles.js"),
    module!("waittree.js"),
    module!("waitsites.js"),
    module!("transforms.js"),
    module!("timeorder.js"),
    module!("grouping.js"),
    module!("estimate.js"),
    module!("intervals.js"),
    module!("invert.js"),
    module!("functions.js"),
    module!("compare.js"),
    module!("layout.js"),
    module!("search.js"),
    module!("state.js"),
    module!("stripdata.js"),
    module!("spans.js"),
    module!("stackchart.js"),
    module!("lanes.js"),
    module!("model.js"),
    module!("dom.js"),
    module!("pixelrows.js"),
    module!("flame.js"),
    module!("theme.js"),
    module!("folding.js"),
    module!("popups.js"),
    module!("rowlist.js"),
    module!("table.js"),
    module!("calltree.js"),
    module!("codeview.js"),
    module!("switchtable.js"),
    module!("longest.js"),
    module!("sitetable.js"),
    module!("timeline.js"),
    module!("strip.js"),
    module!("transformbar.js"),
    module!("facts.js"),
    module!("headline.js"),
    module!("controls.js"),
    module!("rangedrag.js"),
    module!("chartaxis.js"),
    module!("charttip.js"),
    module!("frametip.js"),
    module!("actions.js"),
    module!("colouring.js"),
    module!("frames.js"),
    module!("stripbar.js"),
    module!("searchbox.js"),
    module!("choices.js"),
    module!("recordingview.js"),
    module!("sourceview.js"),
    module!("sandwichview.js"),
    module!("functionsview.js"),
    module!("treeview.js"),
    module!("graphview.js"),
    module!("waitsview.js"),
    module!("pathlanes.js"),
    module!("requestsview.js"),
    module!("trackcanvas.js"),
    module!("tracks.js"),
    module!("tracksview.js"),
    module!("chartview.js"),
    module!("compareview.js"),
    module!("measuresview.js"),
    module!("views.js"),
    module!("app.js"),
    module!("main.js"),
];

fn unpacked_modules() -> io::Result<Vec<(&'static str, String)>> {
    let unpacked = |(name, packed): &(&'static str, &[u8])| {
        let mut module = String::new();
        ZlibDecoder::new(*packed).read_to_string(&mut module)?;
        Ok((*name, module))
    };
    MODULES.iter().map(unpacked).collect()
}

/// Joins ES modules into one: `import` statements go, `export` before a declaration goes.
///
/// A page that opens from `file://` cannot import other files. The modules share one scope then, so
/// their top-level names must differ; a name that is declared twice is a syntax error that the
/// browser test sees. Imports stand at the head of a module, each with its `;`.
fn join_modules(modules: &[(&str, String)]) -> String {
    let mut script = String::from("\n\"use strict\";\n");
    for (name, source) in modules {
        script.push_str(&format!("// {name}\n"));
        let mut in_import = false;
        for line in source.lines() {
            in_import |= line.starts_with("import ");
            if in_import {
                in_import = !line.ends_with(';');
                continue;
            }
            script.push_str(line.strip_prefix("export ").unwrap_or(line));
            script.push('\n');
        }
    }
    script
}

fn csp_hash(content: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(content.as_bytes())))
}

/// No network (a served page reaches its server alone), no plugins, no frames, no inline handlers; style and script by
/// hash alone.
fn content_security_policy(style: &str, script: &str, is_served: bool) -> String {
    let connections = if is_served { "connect-src 'self'; " } else { "" };
    format!(
        "{connections}default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        csp_hash(script),
        csp_hash(style)
    )
}

/// Writes the page; `block` writes the blocks of data: `data` in JSON, and `moments` in base64.
pub(crate) fn write(
    title: &str,
    is_served: bool,
    out: &mut dyn Write,
    mut block: impl FnMut(&str, &mut dyn Write) -> Result<(), HtmlError>,
) -> Result<(), HtmlError> {
    let script = join_modules(&unpacked_modules()?);
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.write_all(before.as_bytes())?;
        match name {
            "data" | "moments" => block(name, out)?,
            _ => out.write_all(fill(name, title, &script, is_served).as_bytes())?,
        }
        rest = after;
    }
    Ok(out.write_all(rest.as_bytes())?)
}

fn fill(name: &str, title: &str, script: &str, is_served: bool) -> String {
    match name {
        "title" => html_text(title),
        "csp" => content_security_policy(STYLE, script, is_served),
        "style" => STYLE.to_owned(),
        "script" => script.to_owned(),
        // The template's placeholders are fixed at build time; a test names them all.
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_one_script() {
        let modules = [
            ("a.js", "export const A = 1;\nexport function f() {}\n"),
            ("b.js", "import { A } from './a.js';\nimport {\n  f,\n} from './a.js';\nf(A);\n"),
        ];
        let script = join_modules(&modules.map(|(name, source)| (name, source.to_owned())));
        assert_eq!(
            script,
            "\n\"use strict\";\n// a.js\nconst A = 1;\nfunction f() {}\n// b.js\nf(A);\n"
        );
    }

    #[test]
    fn the_script_has_no_imports_and_cannot_end_its_element() {
        let script = join_modules(&unpacked_modules().unwrap());
        let statement = |line: &&str| line.starts_with("import") || line.starts_with("export");
        assert_eq!(script.lines().find(statement), None);
        let lower = script.to_lowercase();
        assert!(!lower.contains("</script") && !lower.contains("<!--"));
        assert!(!STYLE.to_lowercase().contains("</style"));
    }

    include!("../build/comments.rs");

    #[test]
    fn code_next_to_a_comment_stays_and_ambiguous_lines_are_refused() {
        let code = "/** @type {number} */ total = 5; /* ms */\n";
        assert_eq!(without_comments(&format!("// a\n{code}/**\n * b\n */\n")), Ok(code.to_owned()));
        assert_eq!(without_comments("/** @type {any}\n */ (load());\n"), Err(2));
        assert_eq!(without_comments("a;\nb = `x\n// shown\n`;\n"), Err(2));
        assert_eq!(without_comments("/* open\n"), Err(1));
    }

    #[test]
    fn comments_stay_out_of_the_page() {
        for (name, source) in unpacked_modules().unwrap() {
            let is_comment = |line: &&str| {
                let text = line.trim_start();
                text.starts_with("//") || text.starts_with("*  @") || text.starts_with("/** @param")
            };
            assert_eq!(source.lines().find(is_comment), None, "{name}");
            assert!(source.lines().any(|line| line.starts_with("export ") || name == "main.js"));
        }
    }

    #[test]
    fn modules_are_listed_after_their_imports() {
        for (index, (name, source)) in unpacked_modules().unwrap().iter().enumerate() {
            for from in source.lines().filter_map(|line| line.split_once(" from './")) {
                let import = from.1.trim_end_matches("';");
                let earlier = MODULES[..index].iter().any(|(earlier, _)| *earlier == import);
                assert!(earlier, "{name} imports {import}, which is not listed before it");
            }
        }
    }

    #[test]
    fn the_template_has_each_placeholder_and_no_other() {
        let placeholders = TEMPLATE.split("{{").skip(1);
        let names = placeholders.map(|rest| rest.split_once("}}").expect("closed").0);
        let names: Vec<_> = names.collect();
        assert_eq!(names, ["csp", "title", "style", "data", "moments", "script"]);
    }

    #[test]
    fn nothing_is_loaded_from_elsewhere() {
        let mut page = Vec::new();
        write("t", false, &mut page, |_, _| Ok(())).expect("a Vec takes all");
        let page = String::from_utf8(page).expect("the page is UTF-8");
        // The policy of a page in a file has no connect-src, which forbids the request of ranges.
        for reference in
            ["http://", "https://", "src=", "@import", "url(", "connect-src", "import("]
        {
            assert!(!page.contains(reference), "the page contains {reference}");
        }
        assert_eq!(page.matches("fetch(").count(), 1, "the request of ranges alone");
    }
}
