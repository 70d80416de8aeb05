//! Manual pages and the reference, made from the definition of whit's command line.
//!
//! Nothing here is part of `whit` itself: packages carry the pages, and `docs/reference.md` is kept in the
//! repository, where a test compares it.
#![forbid(unsafe_code)]

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes `whit.1` and `whit-COMMAND.1` into a directory; gives their paths.
///
/// # Errors
///
/// Where the directory or a page cannot be written.
pub fn write_manual(directory: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(directory)?;
    let mut pages = Vec::new();
    let mut write = |name: String, command: Command| {
        let text = page(command)?;
        let path = directory.join(format!("{name}.1"));
        fs::write(&path, text)?;
        pages.push(path);
        io::Result::Ok(())
    };
    let cli = built();
    for command in documented(&cli) {
        write(format!("whit-{}", command.get_name()), command)?;
    }
    // clap_mangen refers to the pages of subcommands as NAME-SUBCOMMAND(1).
    write("whit".to_owned(), cli)?;
    Ok(pages)
}

/// A page: as clap_mangen makes it, but for two sections. The synopsis of all options is as long as their
/// descriptions, and examples keep their lines.
fn page(mut command: Command) -> io::Result<Vec<u8>> {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let examples = command.get_after_help().map(ToString::to_string);
    let has_subcommands = command.has_subcommands();
    let man = Man::new(command).manual("whit").source(concat!("whit ", env!("CARGO_PKG_VERSION")));
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    section(&mut text, "SYNOPSIS", &usage)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if has_subcommands {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(examples) = examples {
        match examples.strip_prefix("Examples:\n") {
            Some(body) => section(&mut text, "EXAMPLES", body)?,
            None => section(&mut text, "TASKS", &examples)?,
        }
    }
    Ok(text)
}

/// A section whose lines stay as they are.
fn section(text: &mut Vec<u8>, title: &str, body: &str) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]).control("nf", []);
    for line in body.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(text)
}

/// The reference as Markdown: the help of each command.
pub fn markdown() -> String {
    let mut cli = built();
    let mut text =
        "# Reference of the command line\n\nThe help of each command, as `whit COMMAND --help` \
         prints it. `cargo run -p whit-reference markdown` writes this page.\n"
            .to_owned();
    let commands: Vec<_> = documented(&cli).collect();
    text.push_str(&format!("\n## whit\n\n```\n{}```\n", help(&mut cli)));
    for mut command in commands {
        let name = command.get_name().to_owned();
        text.push_str(&format!("\n## whit {name}\n\n```\n{}```\n", help(&mut command)));
    }
    text
}

/// With full names of subcommands, and the global settings passed on to them.
fn built() -> Command {
    let mut cli = whit_cli::command();
    cli.build();
    cli
}

/// `whit bench` is a program with a help of its own. `whit watch` is one, too, and its definition is at hand.
fn documented(cli: &Command) -> impl Iterator<Item = Command> {
    let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "bench";
    cli.get_subcommands().filter(is_shown).map(|command| match command.get_name() {
        "watch" => {
            let mut watch = whit_watch::command();
            watch.build();
            watch
        }
        _ => command.clone(),
    })
}

fn help(command: &mut Command) -> String {
    let help = command.render_help().to_string();
    let lines: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
    format!("{}\n", lines.join("\n"))
}
