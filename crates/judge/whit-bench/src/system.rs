//! The machine of the numbers.

use std::fs;

use serde::Serialize;

use whit_types::ByteSize;

/// The machine; empty or zero where it does not say.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub(crate) struct System {
    /// `Linux 6.18.0`.
    pub(crate) kernel: String,
    /// `x86_64`.
    pub(crate) machine: String,
    pub(crate) cpu: String,
    /// CPUs that this process may use.
    pub(crate) cpus: usize,
    /// True where the CPU says that a hypervisor is present.
    pub(crate) virtual_machine: bool,
    pub(crate) memory_bytes: u64,
}

impl System {
    /// Facts of this machine.
    pub(crate) fn detect() -> System {
        let uname = rustix::system::uname();
        let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let (cpu, virtual_machine) = parse_cpuinfo(&cpuinfo);
        System {
            kernel: format!("{} {}", text(uname.sysname()), text(uname.release())),
            machine: text(uname.machine()),
            cpu,
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            virtual_machine,
            memory_bytes: parse_mem_total(&meminfo),
        }
    }

    /// One line per fact.
    pub(crate) fn lines(&self) -> Vec<String> {
        let cpu = if self.cpu.is_empty() { &self.machine } else { &self.cpu };
        let place = if self.virtual_machine { ", virtual machine" } else { "" };
        vec![
            format!("kernel: {} {}", self.kernel, self.machine),
            format!("CPU: {cpu}, {} usable{place}", self.cpus),
            format!("memory: {}", ByteSize(self.memory_bytes)),
        ]
    }
}

/// Model name and whether the `hypervisor` flag is set, from the first CPU.
fn parse_cpuinfo(text: &str) -> (String, bool) {
    let value = |key: &str| {
        text.lines().filter_map(|line| line.split_once(':')).find(|(k, _)| k.trim() == key)
    };
    let model = value("model name").or_else(|| value("Model"));
    let hypervisor = value("flags").is_some_and(|(_, v)| v.split(' ').any(|f| f == "hypervisor"));
    (model.map(|(_, v)| v.trim().to_owned()).unwrap_or_default(), hypervisor)
}

fn parse_mem_total(text: &str) -> u64 {
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kib.unwrap_or(0).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_kernels_tables() {
        let text = "processor\t: 0\nmodel name\t: Example 9000\nflags\t\t: fpu vme hypervisor\n";
        assert_eq!(parse_cpuinfo(text), ("Example 9000".to_owned(), true));
        assert_eq!(parse_cpuinfo("processor : 0\n"), (String::new(), false));
        assert_eq!(parse_mem_total("MemTotal:       24689304 kB\nMemFree: 1 kB\n"), 24689304 << 10);
        assert_eq!(parse_mem_total("nonsense"), 0);
    }

    #[test]
    fn this_machine_has_a_kernel_and_cpus() {
        let system = System::detect();
        assert!(system.kernel.starts_with("Linux ") && system.cpus > 0, "{system:?}");
    }
}
