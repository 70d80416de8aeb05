//! Doing it.

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};
use whit_sys::file_capability::FileCapabilities;

use crate::error::SetupError;
use crate::group::Group;
use crate::path_check::Access;
use crate::plan::{MODE, MODE_UNDONE};
use crate::program::Program;
use crate::system::System;

/// Permission bits, with those that change the user or group of the process.
const MODE_BITS: u32 = 0o7777;

/// A grant that was made, as it was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The group's number.
    pub group_id: u32,
    /// Whether the group was created.
    pub group_created: bool,
    /// The capabilities that the file now has.
    pub capabilities: FileCapabilities,
}

/// A grant that was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The capabilities that the file had before.
    pub capabilities: Option<FileCapabilities>,
}

/// Lets the members of `group` profile with `program`. The caller has seen to it that there are
/// no obstacles, and that this is root.
pub fn grant(program: &Program, group: &Group, system: &System) -> Result<Done, SetupError> {
    let (group_id, group_created) = group.ensure()?;
    let capabilities = FileCapabilities::effective(system.capabilities());
    let access = Access { uid: 0, gid: group_id, mode: MODE };
    change(program, &State { access, capabilities: Some(capabilities) })?;
    Ok(Done { group_id, group_created, capabilities })
}

/// Makes `program` one that everybody may run, and that lends nothing. The group stays: whit does
/// not know what else it is used for.
pub fn undo(program: &Program) -> Result<Undone, SetupError> {
    let access = Access { uid: 0, gid: 0, mode: MODE_UNDONE };
    change(program, &State { access, capabilities: None })?;
    Ok(Undone { capabilities: program.capabilities() })
}

/// How a file is to be.
struct State {
    access: Access,
    capabilities: Option<FileCapabilities>,
}

/// Brings the file into a state and reads it back. On failure it has its old owner and mode, and
/// no capabilities.
fn change(program: &Program, wanted: &State) -> Result<(), SetupError> {
    let changed = write(program, wanted).and_then(|()| read_back(program, wanted));
    if changed.is_err() {
        // A second failure is ignored: the first one is reported.
        let _ = write(program, &State { access: program.access, capabilities: None });
    }
    changed
}

/// The order keeps the file safe at each moment: with capabilities, only users can run it who may
/// run it with the new owner and mode. (The kernel itself takes capabilities away when the owner
/// changes.)
fn write(program: &Program, wanted: &State) -> Result<(), SetupError> {
    let file = &program.file;
    let failed = |attempt| SetupError::program(attempt, program.path());
    let Access { uid, gid, mode } = wanted.access;
    if program.capabilities().is_some() {
        FileCapabilities::remove(file).map_err(failed("take capabilities from"))?;
    }
    fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
        .map_err(failed("change the owner of"))?;
    fchmod(file, Mode::from_raw_mode(mode & MODE_BITS)).map_err(failed("change the mode of"))?;
    match &wanted.capabilities {
        Some(capabilities) => capabilities.give(file).map_err(failed("give capabilities to")),
        None => Ok(()),
    }
}

fn read_back(program: &Program, wanted: &State) -> Result<(), SetupError> {
    let path = program.path();
    let metadata = program.file.metadata().map_err(|source| SetupError::Program {
        attempt: "look at",
        path: path.to_owned(),
        source,
    })?;
    let found = Access::of(&metadata);
    let found = Access { mode: found.mode & MODE_BITS, ..found };
    let capabilities = FileCapabilities::of_file(&program.file)
        .map_err(SetupError::program("read capabilities of", path))?;
    if (found, capabilities) == (wanted.access, wanted.capabilities) {
        return Ok(());
    }
    Err(SetupError::NotAsWritten {
        path: path.to_owned(),
        found: describe(found, capabilities),
        wanted: describe(wanted.access, wanted.capabilities),
    })
}

fn describe(access: Access, capabilities: Option<FileCapabilities>) -> String {
    let Access { uid, gid, mode } = access;
    let lent = capabilities.map_or("none".to_owned(), |c| c.permitted.to_string());
    format!("owner {uid}:{gid}, mode {mode:04o}, capabilities {lent}")
}
