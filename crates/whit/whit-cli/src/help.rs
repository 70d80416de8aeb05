//! `whit help`: the help of a command, or a page on a task.

use crate::failure::{bail_usage, usage};
use crate::output;
use anyhow::Result;
use std::io::Write;

/// The tasks that most people come with. Shown below the list of commands.
pub(crate) const TASKS: &str = "\
Tasks (`whit help TASK` explains each):
  hot      Where does the time go?
  wait     Why does it wait?
  count    How often does it happen?
  cgroup   Which container does it?
  refused  Why may I not record?

Example:
  whit record -g -- ./server
  whit report";

/// A page on a task.
struct Topic {
    name: &'static str,
    text: &'static str,
}

const TOPICS: [Topic; 5] = [
    Topic { name: "hot", text: include_str!("help/hot.txt") },
    Topic { name: "wait", text: include_str!("help/wait.txt") },
    Topic { name: "count", text: include_str!("help/count.txt") },
    Topic { name: "cgroup", text: include_str!("help/cgroup.txt") },
    Topic { name: "refused", text: include_str!("help/refused.txt") },
];

/// Arguments of `whit help`.
#[derive(clap::Args, Debug)]
pub(crate) struct HelpArgs {
    /// Command, or task: hot, wait, count, cgroup, refused
    #[arg(value_name = "COMMAND|TASK")]
    topic: Option<String>,
}

/// Prints the page of a task, or the help of a command.
pub(crate) fn run(args: &HelpArgs) -> Result<u8> {
    let mut out = output::stdout();
    out.write_all(page(args.topic.as_deref())?.as_bytes())?;
    out.flush()?;
    Ok(0)
}

fn page(topic: Option<&str>) -> Result<String> {
    let mut cli = crate::command();
    // Subcommands learn their full name and the width of their help from it.
    cli.build();
    let Some(topic) = topic else { return Ok(cli.render_help().to_string()) };
    if let Some(topic) = TOPICS.iter().find(|known| known.name == topic) {
        return Ok(topic.text.to_owned());
    }
    if topic == "bench" {
        bail_usage!("whit-bench has its own help: whit bench --help");
    }
    if let Some(command) = cli.find_subcommand_mut(topic) {
        return Ok(command.render_help().to_string());
    }
    let commands = cli.get_subcommands().map(clap::Command::get_name);
    let known = commands.chain(TOPICS.iter().map(|topic| topic.name));
    let advice = match whit_events::nearest(topic, known) {
        Some(name) => format!("did you mean '{name}'?"),
        None => "`whit help` lists the commands and tasks".to_owned(),
    };
    Err(usage(anyhow::anyhow!("there is no command or task '{topic}': {advice}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_testing::prose::assert_prose;

    #[test]
    fn each_task_has_a_page_of_80_columns_with_a_command() {
        for Topic { name, text } in TOPICS {
            assert!(TASKS.contains(&format!("\n  {name} ")), "{name}");
            assert!(text.contains("\n    whit "), "{name}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{name}");
            assert_eq!(page(Some(name)).unwrap(), text);
        }
    }

    #[test]
    fn help_of_every_command_fits_80_columns() {
        let mut cli = crate::command();
        cli.build();
        let names: Vec<_> = cli.get_subcommands().map(|it| it.get_name().to_owned()).collect();
        for name in names.iter().filter(|name| *name != "bench") {
            let text = page(Some(name)).unwrap();
            assert!(text.contains(&format!("Usage: whit {name}")), "{text}");
            let long = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(long, None, "{name}");
        }
        let long = page(None).unwrap().lines().find(|line| line.chars().count() > 80).map(str::len);
        assert_eq!(long, None);
    }

    #[test]
    fn help_is_plain_language() {
        let mut cli = crate::command();
        cli.build();
        let commands = cli.get_subcommands().map(clap::Command::get_name);
        let topics = TOPICS.iter().map(|topic| topic.name);
        assert_prose("whit", &page(None).unwrap());
        for name in commands.chain(topics).filter(|name| *name != "bench") {
            assert_prose(name, &page(Some(name)).unwrap());
        }
    }

    #[test]
    fn an_unknown_topic_names_the_nearest() {
        let error = page(Some("recrod")).unwrap_err();
        assert!(error.to_string().contains("did you mean 'record'?"), "{error}");
        let error = page(Some("zebrafish")).unwrap_err();
        assert!(error.to_string().contains("`whit help` lists"), "{error}");
    }
}
