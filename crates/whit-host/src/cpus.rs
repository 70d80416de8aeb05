//! CPU lists as the kernel and `-C` write them.

use std::io;

use crate::roots::Roots;

/// Highest CPU number that is taken from a list (the kernel's largest `NR_CPUS` is 8192).
pub const CPU_MAX: u32 = 65_535;

/// A CPU list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no CPU list: {reason} (write it as 0,2-5)")]
pub struct CpuListError {
    /// The list.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

/// Reads a list such as `0-3,8`: ascending, without doubles.
pub fn parse_list(text: &str) -> Result<Vec<u32>, CpuListError> {
    let error = |reason| CpuListError { text: text.trim().to_owned(), reason };
    let number = |part: &str| {
        let value: u32 = part.trim().parse().map_err(|_| error("not a number"))?;
        if value > CPU_MAX { Err(error("no machine has that many CPUs")) } else { Ok(value) }
    };
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.trim().is_empty()) {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(error("a range runs backwards"));
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Writes a list the way the kernel does.
pub fn format_list(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// The CPUs that run now.
pub fn online(roots: &Roots) -> io::Result<Vec<u32>> {
    list_file(roots, "online")
}

/// The CPUs that this machine may have.
pub fn present(roots: &Roots) -> io::Result<Vec<u32>> {
    list_file(roots, "present")
}

/// The CPUs that the kernel has room for, with those that may be plugged in.
pub fn possible(roots: &Roots) -> io::Result<Vec<u32>> {
    list_file(roots, "possible")
}

fn list_file(roots: &Roots, name: &str) -> io::Result<Vec<u32>> {
    let text = std::fs::read_to_string(roots.sys.join("devices/system/cpu").join(name))?;
    parse_list(&text).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_back() {
        for (text, cpus) in [("0-3,8\n", vec![0, 1, 2, 3, 8]), ("", vec![]), ("5", vec![5])] {
            assert_eq!(parse_list(text).unwrap(), cpus);
            assert_eq!(parse_list(&format_list(&cpus)).unwrap(), cpus);
        }
        assert_eq!(parse_list("3,1-3,2").unwrap(), [1, 2, 3]);
        assert_eq!(format_list(&[0, 1, 2, 7]), "0-2,7");
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["a", "1-", "-1", "3-1", "0-99999999", "4294967296"] {
            assert!(parse_list(text).is_err(), "{text}");
        }
    }

    #[test]
    fn this_machine_has_an_online_cpu() {
        let roots = Roots::default();
        let online = online(&roots).unwrap();
        assert!(!online.is_empty());
        assert!(online.iter().all(|cpu| present(&roots).unwrap().contains(cpu)));
        assert!(online.iter().all(|cpu| possible(&roots).unwrap().contains(cpu)));
    }
}
