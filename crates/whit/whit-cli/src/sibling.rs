//! The other programs of whit, in the folder of this one.

use anyhow::{Context, Result, anyhow};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The way to a program that is missing.
pub(crate) const INSTALL: &str = "it is a program in the folder of whit: `make install` in whit's repository installs all of them";

/// Where the program is looked for.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    std::env::current_exe().ok().map(|own| own.with_file_name(name))
}

/// True where the program is there.
pub(crate) fn exists(name: &str) -> bool {
    path(name).is_some_and(|path| path.is_file())
}

/// Where the program should be.
fn place(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(own.with_file_name(name))
}

/// The program's file.
///
/// # Errors
/// It is not there.
pub fn find(name: &str) -> Result<PathBuf> {
    let program = place(name)?;
    match program.is_file() {
        true => Ok(program),
        false => Err(anyhow!("there is no {}: install both in one folder", program.display())),
    }
}

/// Becomes the program; comes back only where that fails. `advice` says how to get it.
pub(crate) fn run(name: &str, arguments: &[OsString], advice: &str) -> Result<u8> {
    become_program(name, arguments, None, advice)
}

/// The same with a variable of the environment.
pub(crate) fn become_program(
    name: &str,
    arguments: &[OsString],
    variable: Option<(&str, String)>,
    advice: &str,
) -> Result<u8> {
    let program = place(name)?;
    let error = Command::new(&program).args(arguments).envs(variable).exec();
    if error.kind() == std::io::ErrorKind::NotFound {
        return Err(anyhow!("there is no {}: {advice}", program.display()));
    }
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}
