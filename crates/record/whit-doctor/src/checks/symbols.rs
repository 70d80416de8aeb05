//! The sources of symbols for samples of the kernel and the vdso.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};

use whit_sys::capability::Capability;
use whit_sys::privilege;

use crate::finding::{Area, Finding, Status};
use crate::machine::{Machine, Privileges};
use crate::refusal::or_for_one;

/// How far into kallsyms an address that is not zero is looked for: the first symbols of some
/// kernels lie at per-CPU offset zero.
const LINES: usize = 4096;
/// Longest part of kallsyms that is read.
const MAX_BYTES: u64 = 1 << 20;

pub(super) fn check(machine: &Machine, privileges: &Privileges) -> Vec<Finding> {
    vec![kallsyms(machine, privileges), vdso(machine)]
}

fn kallsyms(machine: &Machine, privileges: &Privileges) -> Finding {
    let what = "kernel symbols (/proc/kallsyms)";
    let path = machine.proc("kallsyms");
    let opened = {
        // The kernel decides at the opening whether addresses are shown.
        let _in_force = privilege::raise(&[Capability::Syslog]);
        File::open(&path)
    };
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            let detail = format!("{}: {error}", path.display());
            return Finding::new(Area::Symbols, what, Status::Absent, detail);
        }
    };
    let lines = BufReader::new(file.take(MAX_BYTES)).lines().take(LINES).map_while(Result::ok);
    let shown = lines.into_iter().any(|line| {
        line.split(' ').next().is_some_and(|address| address.chars().any(|c| c != '0'))
    });
    if shown {
        return Finding::new(Area::Symbols, what, Status::Ok, "with addresses");
    }
    let restricted = machine.setting("kptr_restrict").unwrap_or(0);
    let remedy = match restricted {
        0 => or_for_one("sudo sysctl kernel.perf_event_paranoid=1".to_owned(), privileges),
        _ => "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1".to_owned(),
    };
    let detail = "addresses are hidden: kernel samples have no names";
    Finding::new(Area::Symbols, what, Status::Refused, detail).with_remedy(remedy)
}

fn vdso(machine: &Machine) -> Finding {
    let maps = fs::read_to_string(machine.proc("self/maps")).unwrap_or_default();
    match maps.lines().any(|line| line.ends_with("[vdso]")) {
        true => Finding::new(Area::Symbols, "vdso", Status::Ok, "mapped, read from memory"),
        false => {
            Finding::new(Area::Symbols, "vdso", Status::Absent, "not mapped into this process")
        }
    }
}
