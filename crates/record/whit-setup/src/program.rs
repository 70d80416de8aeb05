//! The program that is to get capabilities.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, StatVfsMountFlags, fstatvfs, open};
use whit_sys::Errno;
use whit_sys::file_capability::FileCapabilities;

use crate::error::SetupError;
use crate::obstacle::Obstacle;
use crate::path_check::{Access, replaceable};
use crate::system::System;

/// How much of two programs is compared at once.
const BLOCK_BYTES: usize = 64 << 10;

/// An open program, and the reasons against giving it capabilities.
#[derive(Debug)]
pub struct Program {
    pub(crate) file: File,
    pub(crate) access: Access,
    path: PathBuf,
    capabilities: Option<FileCapabilities>,
    obstacles: Vec<Obstacle>,
}

impl Program {
    /// Opens the program and looks at it; without `path`, the one that runs. A link is refused.
    pub fn inspect(path: Option<&Path>, system: &System) -> Result<Program, SetupError> {
        let given = path.unwrap_or(&system.own_program);
        let failed = |attempt| {
            let path = given.to_owned();
            move |source: io::Error| SetupError::Program { attempt, path, source }
        };
        if fs::symlink_metadata(given).map_err(failed("find"))?.is_symlink() {
            let target = fs::canonicalize(given).map_err(failed("follow the link"))?;
            return Err(SetupError::SymbolicLink { path: given.to_owned(), target });
        }
        // Links on the way are followed once, here.
        let path = fs::canonicalize(given).map_err(failed("find"))?;
        // Not blocking: it may have become a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = open(&path, flags, Mode::empty()).map_err(SetupError::program("open", &path))?;
        let file = File::from(file);
        let metadata = file.metadata().map_err(failed("look at"))?;
        if !metadata.is_file() {
            return Err(SetupError::NotAFile { path });
        }
        let access = Access::of(&metadata);
        let mut program = Program { file, access, path, capabilities: None, obstacles: Vec::new() };
        program.check_place()?;
        program.check_file(system)?;
        program.check_system(system);
        Ok(program)
    }

    /// Its path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The capabilities that the file has now.
    pub fn capabilities(&self) -> Option<FileCapabilities> {
        self.capabilities
    }

    /// Everything that speaks against giving it capabilities; nothing may be given then.
    pub fn obstacles(&self) -> &[Obstacle] {
        &self.obstacles
    }

    fn check_place(&mut self) -> Result<(), SetupError> {
        let path = self.path.clone();
        let mount = fstatvfs(&self.file)
            .map_err(SetupError::program("look at the file system of", &path))?
            .f_flag;
        if mount.contains(StatVfsMountFlags::NOSUID) {
            self.obstacles.push(Obstacle::NoSuid { path: path.clone() });
        }
        if mount.contains(StatVfsMountFlags::RDONLY) {
            self.obstacles.push(Obstacle::ReadOnly { path: path.clone() });
        }
        match FileCapabilities::of_file(&self.file) {
            Ok(capabilities) => self.capabilities = capabilities,
            Err(Errno::OPNOTSUPP) => {
                self.obstacles.push(Obstacle::NoAttributes { path: path.clone() });
            }
            // Not understood: it is replaced.
            Err(Errno::INVAL) => {}
            Err(error) => return Err(SetupError::program("read capabilities of", &path)(error)),
        }
        let directories = replaceable(&path).map_err(|source| SetupError::Program {
            attempt: "look at the directories of",
            path,
            source,
        })?;
        let replaceable = |(directory, writer)| Obstacle::Replaceable { directory, writer };
        self.obstacles.extend(directories.into_iter().map(replaceable));
        Ok(())
    }

    fn check_file(&mut self, system: &System) -> Result<(), SetupError> {
        let path = self.path.clone();
        if let Some(writer) = self.access.writer() {
            self.obstacles.push(Obstacle::Changeable { path: path.clone(), writer });
        }
        let failed = |source| SetupError::Program { attempt: "read", path: path.clone(), source };
        // The running program, even where its file is gone by now.
        let own = File::open("/proc/self/exe").map_err(failed)?;
        if !is_same(&self.file, &own).map_err(failed)? {
            let own = system.own_program.clone();
            self.obstacles.push(Obstacle::OtherProgram { path, own });
        }
        Ok(())
    }

    fn check_system(&mut self, system: &System) {
        if system.user_namespace {
            self.obstacles.push(Obstacle::UserNamespace);
        }
        let capabilities = system.capabilities().without(system.bounding);
        if !capabilities.is_empty() {
            self.obstacles.push(Obstacle::OutOfReach { capabilities });
        }
    }
}

fn is_same(a: &File, b: &File) -> io::Result<bool> {
    let (left, right) = (a.metadata()?, b.metadata()?);
    if (left.dev(), left.ino()) == (right.dev(), right.ino()) {
        return Ok(true);
    }
    if left.len() != right.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (a, b);
    let mut blocks = (vec![0; BLOCK_BYTES], vec![0; BLOCK_BYTES]);
    loop {
        let size = a.read(&mut blocks.0)?;
        if size == 0 {
            return Ok(true);
        }
        if let Err(error) = b.read_exact(&mut blocks.1[..size]) {
            return if error.kind() == io::ErrorKind::UnexpectedEof {
                Ok(false)
            } else {
                Err(error)
            };
        }
        if blocks.0[..size] != blocks.1[..size] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_sys::capability::CapabilitySet;

    fn system() -> System {
        System {
            effective_uid: 0,
            bounding: CapabilitySet(u64::MAX),
            knows_perfmon: true,
            user_namespace: false,
            own_program: std::env::current_exe().unwrap(),
        }
    }

    #[test]
    fn links_and_directories_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("whit");
        std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
        let error = Program::inspect(Some(&link), &system()).unwrap_err();
        assert!(matches!(error, SetupError::SymbolicLink { .. }), "{error}");
        let error = Program::inspect(Some(dir.path()), &system()).unwrap_err();
        assert!(matches!(error, SetupError::NotAFile { .. }), "{error}");
        let error = Program::inspect(Some(Path::new("/nonexistent")), &system()).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
    }

    #[test]
    fn another_program_gets_nothing() {
        let program = Program::inspect(Some(Path::new("/bin/../bin/cat")), &system());
        let obstacles = match &program {
            Ok(program) => program.obstacles(),
            // A distribution where it is a link to a program of many names.
            Err(SetupError::SymbolicLink { .. }) => return,
            Err(error) => panic!("{error}"),
        };
        assert!(
            obstacles.iter().any(|o| matches!(o, Obstacle::OtherProgram { .. })),
            "{obstacles:?}"
        );
    }

    #[test]
    fn limits_of_the_system_are_obstacles() {
        let bounding = CapabilitySet(0x0000_0000_a804_25fb);
        let system = System { bounding, user_namespace: true, ..system() };
        let program = Program::inspect(None, &system).unwrap();
        let obstacles = program.obstacles();
        assert!(obstacles.contains(&Obstacle::UserNamespace));
        let capabilities = system.capabilities();
        assert!(obstacles.contains(&Obstacle::OutOfReach { capabilities }), "{obstacles:?}");
        assert!(!obstacles.iter().any(|o| matches!(o, Obstacle::OtherProgram { .. })));
    }

    #[test]
    fn contents_decide_whether_two_files_are_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, content).unwrap();
            move || File::open(&path).unwrap()
        };
        let long = vec![7u8; BLOCK_BYTES + 3];
        let mut other = long.clone();
        other[BLOCK_BYTES + 1] = 8;
        let (a, b, c) = (write("a", &long), write("b", &long), write("c", &other));
        assert!(is_same(&a(), &b()).unwrap());
        assert!(!is_same(&a(), &c()).unwrap());
        assert!(!is_same(&a(), &write("d", b"")()).unwrap());
    }
}
