//! `whit doctor`.

use crate::output;
use crate::symbol_args::process_id;
use anyhow::Result;
use std::io::Write;
use whit_doctor::{Machine, render_json, render_text};
use whit_types::Pid;

/// Arguments of `whit doctor`.
#[derive(clap::Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
    /// Also look at these running processes: whether functions of their language runtimes have names
    #[arg(short, long, value_name = "PID,..", value_delimiter = ',', value_parser = process_id)]
    pid: Vec<i32>,
}

/// Runs `whit doctor`. Fails where nothing at all can be recorded.
pub(crate) fn run(args: &DoctorArgs) -> Result<u8> {
    let mut machine = Machine::this();
    let mut report = whit_doctor::run(&mut machine);
    let pids: Vec<_> = args.pid.iter().copied().map(Pid).collect();
    report.findings.extend(whit_doctor::check_processes(&machine.roots, &pids));
    let mut out = output::stdout();
    let text = if args.json { render_json(&report)? } else { render_text(&report) };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(u8::from(!report.can_record()))
}
