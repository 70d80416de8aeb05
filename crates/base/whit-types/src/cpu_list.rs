//! CPU lists as the kernel and `-C` write them.

use std::fmt;

use crate::CpuId;

/// CPUs that a list may name: no machine has so many (the kernel's largest `NR_CPUS` is 8192).
pub const MAX_CPUS: u32 = 1 << 16;

/// A CPU list that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuListError {
    /// The list.
    pub text: String,
    /// The defect, in words.
    pub reason: &'static str,
}

impl fmt::Display for CpuListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is no CPU list: {} (write it as 0,2-5)", self.text, self.reason)
    }
}

impl std::error::Error for CpuListError {}

/// Reads a list such as `0-3,8`: ascending, without doubles.
///
/// # Errors
///
/// If an entry is no number, a range runs backwards, or a CPU is not below [`MAX_CPUS`].
pub fn parse_cpu_list(text: &str) -> Result<Vec<CpuId>, CpuListError> {
    let error = |reason| CpuListError { text: text.trim().to_owned(), reason };
    let number = |part: &str| {
        let value: u32 = part.trim().parse().map_err(|_| error("not a number"))?;
        if value >= MAX_CPUS { Err(error("no machine has that many CPUs")) } else { Ok(value) }
    };
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.trim().is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(error("a range runs backwards"));
        }
        cpus.extend((first..=last).map(CpuId));
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Writes a list the way the kernel does.
pub fn format_cpu_list(cpus: &[CpuId]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &CpuId(cpu) in cpus {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_back() {
        let all: [(&str, &[u32]); 3] = [("0-3,8\n", &[0, 1, 2, 3, 8]), ("", &[]), ("5", &[5])];
        for (text, cpus) in all {
            let cpus: Vec<_> = cpus.iter().copied().map(CpuId).collect();
            assert_eq!(parse_cpu_list(text).unwrap(), cpus);
            assert_eq!(parse_cpu_list(&format_cpu_list(&cpus)).unwrap(), cpus);
        }
        assert_eq!(parse_cpu_list("3,1-3,2").unwrap(), [1, 2, 3].map(CpuId));
        assert_eq!(format_cpu_list(&[0, 1, 2, 7].map(CpuId)), "0-2,7");
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["a", "x", "1-", "-1", "3-1", "0-99999999", "65536", "4294967296"] {
            assert!(parse_cpu_list(text).is_err(), "{text}");
        }
        let error = parse_cpu_list("3-1\n").unwrap_err().to_string();
        assert_eq!(error, "'3-1' is no CPU list: a range runs backwards (write it as 0,2-5)");
        assert_eq!(parse_cpu_list("65535").unwrap(), [CpuId(65_535)]);
    }
}
