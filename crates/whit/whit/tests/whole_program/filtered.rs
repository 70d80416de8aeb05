//! A seccomp filter that refuses `perf_event_open`: every command names it, and no command of root's that cannot help.

use std::path::{Path, PathBuf};

use whit_testing::run::stderr;

use crate::support::tools::{command, text, whit};
use crate::support::{Skip, check, probe};

/// Runs a program behind a filter that answers `perf_event_open` with this errno.
const FILTER: &str = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | atoi(argv[1])),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 99;
    execvp(argv[2], argv + 2);
    return 98;
}
"#;

/// `EPERM` and `ENOSYS`, as filters of containers say.
const REFUSALS: [&str; 2] = ["1", "38"];
/// Ways to open events.
const COMMANDS: [&[&str]; 5] = [
    &["record", "-o", "none.data", "--", "true"],
    &["record", "-a", "--engine=bpf", "-o", "none.data", "--", "true"],
    &["stat", "-e", "task-clock", "--", "true"],
    &["stat", "-a", "-e", "cpu-clock", "--", "true"],
    &["top", "--stdio"],
];

fn compile(directory: &Path) -> Result<PathBuf, Skip> {
    probe::program("cc")?;
    let (source, program) = (directory.join("filter.c"), directory.join("filter"));
    std::fs::write(&source, FILTER).expect("write a source");
    text(command("cc").args(["-O1", "-w", "-o"]).arg(&program).arg(&source));
    Ok(program)
}

#[test]
fn every_command_names_the_filter_that_refuses_events() {
    check("filtered::every_command", || {
        let directory = tempfile::tempdir().expect("make a directory");
        let filter = compile(directory.path())?;
        for errno in REFUSALS {
            for words in COMMANDS {
                let mut run = command(&filter);
                run.current_dir(directory.path()).arg(errno).arg(whit().get_program()).args(words);
                let output = run.output().expect("run whit behind a filter");
                let message = stderr(&output);
                assert!(!output.status.success(), "{words:?}: {message}");
                assert!(
                    message.contains("a seccomp filter of this process refuses"),
                    "{words:?}: {message}"
                );
                assert!(!message.contains("sudo"), "{words:?}: {message}");
            }
        }
        Ok(())
    });
}
