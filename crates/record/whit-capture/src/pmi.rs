//! Which events raise interrupts of a PMU, and which of the kernel's handlers these go to.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use whit_host::roots::Roots;
use whit_perfdata::attr::{Attr, pmu_type};
use whit_sys::capability::Capability;
use whit_sys::privilege;

/// perf's handlers of non-maskable interrupts on x86: that of the CPU's PMU, of any vendor, and
/// that of AMD's instruction-based sampling (`register_nmi_handler` in `arch/x86/events`).
const HANDLERS: [&[u8]; 2] = [b"perf_event_nmi_handler", b"perf_ibs_nmi_handler"];
/// PMUs of instruction-based sampling.
const IBS_PREFIX: &str = "ibs_";
/// How much of `/proc/kallsyms` is read at once. The handlers are near its beginning.
const KALLSYMS_BUFFER_BYTES: usize = 64 * 1024;
/// Longest line of it; a symbol has up to 511 bytes.
const LINE_BYTES_MAX: u64 = 1024;

/// Whether one of these events is sampled by interrupts of a PMU. Others that are sampled have
/// timers (`cpu-clock`), or take their samples where they happen (tracepoints, page faults,
/// breakpoints); what a PMU outside the CPU counts is not sampled at all.
pub(crate) fn any_interrupts<'a>(attrs: impl Iterator<Item = &'a Attr>, roots: &Roots) -> bool {
    let sampled = |attr: &&Attr| attr.sample_period_or_freq > 0;
    let mut devices = None;
    attrs.filter(sampled).any(|attr| match attr.pmu_type {
        pmu_type::HARDWARE | pmu_type::HW_CACHE | pmu_type::RAW => true,
        pmu_type::SOFTWARE | pmu_type::TRACEPOINT | pmu_type::BREAKPOINT => false,
        other => devices.get_or_insert_with(|| interrupting_pmus(roots)).contains(&other),
    })
}

/// Types of the CPUs' own PMUs: `cpu`, those that name the CPUs that they belong to, as the parts
/// of hybrid ones and Arm's do in `cpus` (others have a `cpumask`), and those of IBS.
fn interrupting_pmus(roots: &Roots) -> Vec<u32> {
    let devices = roots.sys.join("bus/event_source/devices");
    let Ok(entries) = std::fs::read_dir(devices) else { return Vec::new() };
    let interrupts = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name == "cpu" || name.starts_with(IBS_PREFIX) || path.join("cpus").exists()
    };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|p| interrupts(p));
    paths
        .filter_map(|path| std::fs::read_to_string(path.join("type")).ok()?.trim().parse().ok())
        .collect()
}

/// Where perf's handlers are; `None` where the kernel hides addresses, or has none of these names.
pub(crate) fn perf_handlers(roots: &Roots) -> Option<Vec<u64>> {
    let file = {
        // The kernel decides at the opening whether addresses are shown.
        let _in_force = privilege::raise(&[Capability::Syslog]);
        File::open(roots.proc.join("kallsyms")).ok()?
    };
    handlers_in(BufReader::with_capacity(KALLSYMS_BUFFER_BYTES, file)).ok()?
}

/// Symbols of the kernel's text come in the order of their addresses; reading stops when all
/// handlers are found, else at its end.
fn handlers_in(mut kallsyms: impl BufRead) -> io::Result<Option<Vec<u64>>> {
    let (mut found, mut line) = (Vec::new(), Vec::new());
    while found.len() < HANDLERS.len() {
        line.clear();
        let length = io::Read::take(&mut kallsyms, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        let mut words = line.trim_ascii_end().split(|byte| *byte == b' ');
        let (address, name) = (words.next(), words.nth(1).unwrap_or_default());
        // Lines of modules come last.
        if length == 0 || name == b"_etext" || line.contains(&b'\t') {
            break;
        }
        if HANDLERS.contains(&name) {
            let digits = address.and_then(|digits| std::str::from_utf8(digits).ok());
            found.extend(digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()));
        }
    }
    Ok(Some(found).filter(|found| !found.is_empty() && !found.contains(&0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupts(roots: &Roots, pmu_type: u32, rate: u64) -> bool {
        let attr = Attr { pmu_type, sample_period_or_freq: rate, ..Attr::default() };
        any_interrupts([&Attr::default(), &attr].into_iter(), roots)
    }

    fn pmu(roots: &Roots, name: &str, files: &[(&str, &str)]) {
        let dir = roots.sys.join("bus/event_source/devices").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        files.iter().for_each(|(file, text)| std::fs::write(dir.join(file), text).unwrap());
    }

    #[test]
    fn events_of_the_cpus_pmu_interrupt_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        for kind in [pmu_type::HARDWARE, pmu_type::HW_CACHE, pmu_type::RAW] {
            assert!(interrupts(&roots, kind, 4000), "{kind}");
            assert!(!interrupts(&roots, kind, 0), "{kind} is counted only");
        }
        for kind in [pmu_type::SOFTWARE, pmu_type::TRACEPOINT, pmu_type::BREAKPOINT, 10] {
            assert!(!interrupts(&roots, kind, 4000), "{kind}");
        }
        pmu(&roots, "cpu_atom", &[("type", "10\n"), ("cpus", "16-23\n")]);
        pmu(&roots, "ibs_op", &[("type", "11\n")]);
        pmu(&roots, "uncore_imc_0", &[("type", "12\n"), ("cpumask", "0\n")]);
        pmu(&roots, "cpu", &[("type", "13\n")]);
        pmu(&roots, "armv8_broken", &[("type", "?"), ("cpus", "0")]);
        let found: Vec<u32> = (6..20).filter(|kind| interrupts(&roots, *kind, 1)).collect();
        assert_eq!(found, [10, 11, 13]);
    }

    #[test]
    fn handlers_are_found_unless_hidden() {
        let shown = b"0000000000000000 A fixed_percpu_data
ffffffff8124e110 t __pfx_perf_event_nmi_handler
ffffffff8124e120 t perf_event_nmi_handler
ffffffff812561a0 t perf_ibs_nmi_handler
ffffffff8220bb08 T _etext
" as &[u8];
        let both = vec![0xffff_ffff_8124_e120, 0xffff_ffff_8125_61a0];
        assert_eq!(handlers_in(shown).unwrap(), Some(both.clone()));
        let cut = &shown[..shown.len() - 65];
        assert_eq!(handlers_in(cut).unwrap(), Some(both[..1].to_vec()));
        let behind = b"ffffffff8220bb08 T _etext\nffffffff8220bb10 t perf_event_nmi_handler\n";
        assert_eq!(handlers_in(&behind[..]).unwrap(), None);
        let module = b"ffffffffc0000000 t perf_event_nmi_handler\t[mod]\n";
        assert_eq!(handlers_in(&module[..]).unwrap(), None);
        let hidden = b"0000000000000000 t perf_event_nmi_handler\n0000000000000000 T _etext\n";
        assert_eq!(handlers_in(&hidden[..]).unwrap(), None);
        assert_eq!(handlers_in(b"" as &[u8]).unwrap(), None);
        let long = [b'x'; 5000];
        assert_eq!(handlers_in(&long[..]).unwrap(), None);
    }
}
