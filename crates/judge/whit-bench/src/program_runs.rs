//! The kernel's statistics of BPF programs, by the process that holds them.

use std::collections::HashMap;
use std::fs;

/// `BPF_PROG_TYPE_TRACING`: of a process's programs, those that look at tracepoints with their types.
const TRACING: &str = "26";

/// Runs and their time in nanoseconds, of programs by their ids.
pub(crate) type Runs = HashMap<u64, (u64, u64)>;

/// Those of a process's programs that look at tracepoints. Values that are unreadable are left out.
pub(crate) fn of_process(pid: u32) -> Runs {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten();
    let texts = files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
    texts.filter_map(|text| program(&text)).collect()
}

/// The number of a program that looks at tracepoints, its runs and their time, from the kernel's
/// description of its descriptor.
fn program(text: &str) -> Option<(u64, (u64, u64))> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim)
    };
    let number = |name: &str| field(name)?.parse().ok();
    (field("prog_type")? == TRACING).then_some(())?;
    Some((number("prog_id")?, (number("run_cnt")?, number("run_time_ns")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nprog_type:\t26\nprog_jited:\t1\n\
                        prog_tag:\t8f\nmemlock:\t4096\nprog_id:\t77\nrun_time_ns:\t900\nrun_cnt:\t9\n";

    #[test]
    fn the_kernels_statistics_of_a_program_are_read() {
        assert_eq!(program(TEXT), Some((77, (9, 900))));
        // Links and maps have no such lines, and other programs are not meant.
        assert_eq!(program(&TEXT.replace("prog_type", "link_type")), None);
        assert_eq!(program(&TEXT.replace("26", "17")), None);
        assert_eq!(program(&TEXT.replace("run_cnt", "recursion_misses")), None);
    }
}
