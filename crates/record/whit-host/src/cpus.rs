//! Which CPUs there are.

use std::path::{Path, PathBuf};

use whit_types::{CpuId, parse_cpu_list};

use crate::error::HostError;
use crate::roots::Roots;

/// The CPUs that run now.
///
/// # Errors
///
/// Where sysfs does not say.
pub fn online(roots: &Roots) -> Result<Vec<CpuId>, HostError> {
    list_file(roots, "online", "the list of online CPUs")
}

/// The CPUs that this machine may have.
///
/// # Errors
///
/// Where sysfs does not say.
pub fn present(roots: &Roots) -> Result<Vec<CpuId>, HostError> {
    list_file(roots, "present", "the list of present CPUs")
}

/// The CPUs that the kernel has room for, with those that may be plugged in.
///
/// # Errors
///
/// Where sysfs does not say.
pub fn possible(roots: &Roots) -> Result<Vec<CpuId>, HostError> {
    list_file(roots, "possible", "the list of possible CPUs")
}

/// Whether a CPU is known not to run now.
pub fn is_offline(roots: &Roots, cpu: CpuId) -> bool {
    online(roots).is_ok_and(|online| !online.contains(&cpu))
}

/// The CPUs that a file of the kernel lists.
///
/// # Errors
///
/// Where it cannot be read or holds anything else.
pub fn read_list(path: &Path) -> std::io::Result<Vec<CpuId>> {
    let text = std::fs::read_to_string(path)?;
    parse_cpu_list(&text).map_err(|e| std::io::Error::new(std::io::ErrorKind::InvalidData, e))
}

fn list_file(roots: &Roots, name: &str, what: &'static str) -> Result<Vec<CpuId>, HostError> {
    let path: PathBuf = roots.sys.join("devices/system/cpu").join(name);
    read_list(&path).map_err(|source| HostError::Read { what, path, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_an_online_cpu() {
        let roots = Roots::default();
        let online = online(&roots).unwrap();
        assert!(!online.is_empty());
        assert!(online.iter().all(|cpu| present(&roots).unwrap().contains(cpu)));
        assert!(online.iter().all(|cpu| possible(&roots).unwrap().contains(cpu)));
        assert!(!is_offline(&roots, online[0]));
    }

    #[test]
    fn a_list_that_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        let error = online(&roots).unwrap_err().to_string();
        assert!(
            error.contains("the list of online CPUs") && error.ends_with("cpu/online"),
            "{error}"
        );
        assert!(!is_offline(&roots, CpuId(0)), "nobody says so");
        let directory = dir.path().join("devices/system/cpu");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("online"), "1-\n").unwrap();
        assert!(online(&roots).is_err());
        std::fs::write(directory.join("online"), "0,2-3\n").unwrap();
        assert_eq!(online(&roots).unwrap(), [0, 2, 3].map(CpuId));
        assert!(is_offline(&roots, CpuId(1)));
    }
}
