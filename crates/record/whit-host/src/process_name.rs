//! Processes by the names of their main threads.

use std::collections::BTreeSet;

use whit_sys::process_files::ProcessFile;
use whit_types::{OutsideText, Pid, Tid};

use crate::error::HostError;
use crate::named::{NAME_MAX_BYTES, near};
use crate::processes::{self, Status};
use crate::roots::Roots;

/// Processes that a message lists.
const LISTED_MAX: usize = 8;

/// A process as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessName {
    /// By its number.
    Id(Pid),
    /// By the name of its main thread.
    Name(String),
}

impl ProcessName {
    /// A number is an ID, other text a name.
    ///
    /// # Errors
    ///
    /// For text that is neither.
    pub fn parse(text: &str) -> Result<ProcessName, String> {
        if let Ok(id) = text.parse() {
            return Ok(ProcessName::Id(Pid(id)));
        }
        if text.is_empty() || text.contains('/') {
            return Err("neither a process ID nor the name of a process".to_owned());
        }
        Ok(ProcessName::Name(text.to_owned()))
    }

    /// The only process with this name.
    ///
    /// # Errors
    ///
    /// Where none has it, or several have.
    pub fn resolve(&self, roots: &Roots) -> Result<Pid, HostError> {
        match self {
            ProcessName::Id(pid) => Ok(*pid),
            ProcessName::Name(name) => only_named(name, roots),
        }
    }
}

impl std::fmt::Display for ProcessName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProcessName::Id(pid) => write!(f, "{}", pid.0),
            ProcessName::Name(name) => write!(f, "{}", OutsideText::from(name.clone())),
        }
    }
}

fn only_named(name: &str, roots: &Roots) -> Result<Pid, HostError> {
    let kept = &name.as_bytes()[..name.len().min(NAME_MAX_BYTES)];
    let (mut found, mut others) = (Vec::new(), BTreeSet::new());
    for pid in processes::all(roots)? {
        let Some(status) = Status::of_thread(roots, Tid(pid.0)) else { continue };
        // whit has no samples of itself.
        if status.is_kernel_thread || pid.0 as u32 == std::process::id() {
            continue;
        }
        if status.name == kept {
            found.push(pid);
        } else {
            others.insert(String::from_utf8_lossy(&status.name).into_owned());
        }
    }
    let shown = || OutsideText::from(name.to_owned());
    match found[..] {
        [pid] => Ok(pid),
        [] => Err(HostError::NoProcessNamed {
            name: shown(),
            near: near(name, others.iter().map(String::as_str)),
        }),
        _ => {
            let listed = found.iter().take(LISTED_MAX).map(|pid| described(*pid, roots)).collect();
            Err(HostError::SeveralProcessesNamed { name: shown(), count: found.len(), listed })
        }
    }
}

/// The ID and the command line of a process.
fn described(pid: Pid, roots: &Roots) -> String {
    const SHOWN_MAX: usize = 40;
    let mut line = vec![0; 4 * SHOWN_MAX];
    let file = ProcessFile::open(&roots.process(pid, "cmdline"), pid.0);
    let size = file.and_then(|file| file.read_at(&mut line, 0));
    line.truncate(size.unwrap_or(0));
    let words = line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let words: Vec<_> = words.map(String::from_utf8_lossy).collect();
    let text: String = words.join(" ").chars().take(SHOWN_MAX).collect();
    format!("{} ({})", pid.0, OutsideText::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `/proc` with these processes: ID, name, and whether it is a thread of the kernel.
    fn roots(processes: &[(i32, &str, bool)]) -> (tempfile::TempDir, Roots) {
        let folder = tempfile::tempdir().expect("make a directory");
        for (pid, name, is_kernel) in processes {
            let at = folder.path().join(pid.to_string());
            std::fs::create_dir_all(&at).expect("make a directory");
            let memory = if *is_kernel { "" } else { "VmPeak:\t1 kB\nVmSize:\t1 kB\n" };
            let status = format!("Name:\t{name}\nTgid:\t{pid}\nPPid:\t1\n{memory}");
            std::fs::write(at.join("status"), status).expect("write a status");
            std::fs::write(at.join("cmdline"), format!("{name}\0--port\0{pid}\0")).expect("write");
        }
        let roots = Roots { proc: folder.path().to_owned(), ..Roots::default() };
        (folder, roots)
    }

    fn resolve(name: &str, roots: &Roots) -> Result<Pid, String> {
        ProcessName::parse(name)?.resolve(roots).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_is_that_of_one_process() {
        let long = "a-very-long-server-name";
        let all = [
            (7, "nginx", false),
            (8, &long[..15], false),
            (9, "nginx", true),
            (10, "redis", false),
        ];
        let (_folder, roots) = roots(&all);
        assert_eq!(resolve("nginx", &roots), Ok(Pid(7)));
        assert_eq!(resolve(long, &roots), Ok(Pid(8)));
        // A number is an ID, whether or not there is such a process.
        assert_eq!(resolve("99", &roots), Ok(Pid(99)));
        assert_eq!(
            resolve("rediss", &roots),
            Err("there is no process with the name rediss; near names: redis".to_owned())
        );
        assert!(resolve("", &roots).is_err() && resolve("bin/nginx", &roots).is_err());
    }

    #[test]
    fn several_processes_with_a_name_are_listed() {
        let (_folder, roots) = roots(&[(7, "nginx", false), (8, "nginx", false)]);
        assert_eq!(
            resolve("nginx", &roots),
            Err("2 processes have the name nginx: 7 (nginx --port 7), 8 (nginx --port 8); give an ID with -p, or record \
                 all of them with --comm nginx"
                .to_owned())
        );
    }
}
