//! `whit setup`.

use anyhow::{Result, bail};
use std::io::Write;
use std::path::PathBuf;
use whit_setup::{
    Done, Group, Obstacle, Plan, Program, System, grant, join_command, shell_word, undo,
};
use whit_sys::capability::CapabilitySet;

use crate::message;
use crate::output;

/// Exit code where nothing was done because this is not root.
const EXIT_NOT_DONE: u8 = 1;
/// Where a copy of whit is out of reach of all but root.
const INSTALLED: &str = "/usr/local/bin/whit";

/// Arguments of `whit setup`.
#[derive(clap::Args, Debug)]
pub(crate) struct SetupArgs {
    /// Group whose members may record; created if it does not exist
    #[arg(long, value_name = "NAME", required_unless_present = "undo")]
    group: Option<String>,
    /// The whit program [default: this one]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Remove the capabilities, and let all users run the program
    #[arg(long)]
    undo: bool,
    /// Print the equivalent commands, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `whit setup`.
pub(crate) fn run(args: &SetupArgs) -> Result<u8> {
    let system = System::this()?;
    let group = args.group.as_deref().map(Group::parse).transpose()?;
    let program = Program::inspect(args.binary.as_deref(), &system)?;
    match group {
        Some(group) if !args.undo => set_up(args, &group, &program, &system),
        _ => take_back(args, &program, &system),
    }
}

fn set_up(args: &SetupArgs, group: &Group, program: &Program, system: &System) -> Result<u8> {
    let path = program.path();
    if !program.obstacles().is_empty() {
        bail!(refusal(group, program.obstacles(), system));
    }
    if args.dry_run || !system.is_root() {
        let plan = Plan::to_grant(group, group.state()?, path, system.capabilities());
        let mut commands = plan_for(system, plan).commands;
        commands.push(format!("# and for each who is to record: {}", join_command(group)));
        return print_plan(args, &commands, system);
    }
    let done = grant(program, group, system)?;
    let mut out = output::stdout();
    write_done(&mut out, group, program, &done)?;
    out.flush()?;
    Ok(0)
}

fn write_done(out: &mut impl Write, group: &Group, program: &Program, done: &Done) -> Result<()> {
    let Done { group_id, group_created, capabilities } = done;
    let created = if *group_created { "created" } else { "was there" };
    writeln!(out, "{}", program.path().display())?;
    writeln!(out, "  group         {group} (number {group_id}, {created})")?;
    writeln!(out, "  owner, mode   root:{group}, 0750: members of {group} run it, nobody else")?;
    writeln!(out, "  capabilities  {}+ep, read back", capabilities.permitted)?;
    writeln!(out)?;
    writeln!(out, "Members of {group} can now record the whole machine, and so see what every")?;
    writeln!(out, "process on it does. To let somebody in (from the next login on):")?;
    writeln!(out, "  {}", join_command(group))?;
    writeln!(out, "An update that replaces the program takes this away: run whit setup again.")?;
    Ok(())
}

fn take_back(args: &SetupArgs, program: &Program, system: &System) -> Result<u8> {
    let path = program.path();
    if args.dry_run || !system.is_root() {
        let plan = Plan::to_undo(path, program.capabilities().is_some());
        return print_plan(args, &plan_for(system, plan).commands, system);
    }
    let undone = undo(program)?;
    let lent = undone.capabilities.map_or(CapabilitySet::EMPTY, |c| c.permitted);
    let mut out = output::stdout();
    writeln!(out, "{}", path.display())?;
    writeln!(out, "  owner, mode   root:root, 0755: everybody runs it")?;
    match lent.is_empty() {
        true => writeln!(out, "  capabilities  there were none")?,
        false => writeln!(out, "  capabilities  {lent} taken away")?,
    }
    if let Some(Group::Name(group)) = args.group.as_deref().map(Group::parse).transpose()? {
        writeln!(out, "The group stays; where nothing else uses it: sudo groupdel {group}")?;
    }
    out.flush()?;
    Ok(0)
}

fn plan_for(system: &System, plan: Plan) -> Plan {
    if system.is_root() { plan } else { plan.with_sudo() }
}

/// The commands alone go to standard output, so that they can be run from there.
fn print_plan(args: &SetupArgs, commands: &[String], system: &System) -> Result<u8> {
    let mut out = output::stdout();
    for command in commands {
        writeln!(out, "{command}")?;
    }
    out.flush()?;
    if args.dry_run {
        return Ok(0);
    }
    let uid = system.effective_uid;
    message::error(format_args!("nothing was done: it takes root, and this is user {uid}"));
    Ok(EXIT_NOT_DONE)
}

fn refusal(group: &Group, obstacles: &[Obstacle], system: &System) -> String {
    let mut text = "refused:".to_owned();
    for obstacle in obstacles {
        text.push_str(&format!("\n  {obstacle}"));
    }
    if obstacles.iter().all(Obstacle::is_about_the_place) {
        let own = shell_word(&system.own_program);
        text.push_str(&format!(
            "\nset up a copy that only root can change:\n  sudo install -o root -g root -m 0755 \
             {own} {INSTALLED}\n  sudo {INSTALLED} setup --group {group}"
        ));
    }
    text
}
