//! Subcommands of perf that whit has under another name, or not at all.

use clap::error::{ContextKind, ContextValue};

/// Names of perf, with whit's way.
const WAYS: [(&str, &str); 20] = [
    ("archive", "`whit export --archive -o FILE` writes a recording that has its names in it"),
    ("c2c", "it does not follow cache lines; `perf c2c` does"),
    ("daemon", "`whit watch` records all the time"),
    ("data", "`whit export` writes recordings in other forms"),
    ("evlist", "`whit report --header-only` lists the events of a recording"),
    ("flamegraph", "`whit report --html FILE` writes a page with a flame graph"),
    ("ftrace", "it does not trace functions of the kernel; `perf ftrace` does"),
    (
        "inject",
        "it needs no step in between: reports read jitdump files, and `whit export` writes other forms",
    ),
    (
        "kmem",
        "`whit record -e kmem:kmalloc -g` records allocations of the kernel, and `whit report` shows them",
    ),
    ("kvm", "it does not look into guests; `perf kvm` does"),
    ("kwork", "it does not follow work of the kernel; `perf kwork` does"),
    ("lock", "`whit record --switch-events` records waits, and `whit locks` shows those for locks"),
    ("mem", "it has no report of memory accesses; `perf mem` has one"),
    ("probe", "it sets no probes: `perf probe` does, and `whit record -e probe:NAME` records them"),
    (
        "sched",
        "`whit record --switch-events -a` records context switches, and `whit switches` shows the waits",
    ),
    ("test", "`make test` in its repository runs its tests"),
    ("timechart", "`whit switches --html FILE` writes a page with the threads on the axis of time"),
    (
        "trace",
        "it does not follow system calls; `whit record -e 'syscalls:sys_enter_*' -a` records them",
    ),
    ("version", "`whit --version` prints it"),
    ("buildid-cache", "`whit record` keeps binaries in ~/.debug as perf does"),
];

/// The message for a subcommand that perf has and whit has not.
pub(crate) fn way(error: &clap::Error) -> Option<String> {
    let ContextValue::String(name) = error.get(ContextKind::InvalidSubcommand)? else {
        return None;
    };
    let way = WAYS.iter().find(|(of, _)| of == name).map(|(_, way)| way);
    match way {
        Some(way) => Some(format!("whit has no `{name}`: {way}")),
        None if name.contains('/') => Some(format!(
            "whit has no command `{name}`: `whit record {name}` records a program, and `whit report {name}` reports a \
             recording"
        )),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_of_perf_have_a_way_and_those_of_whit_have_none() {
        let refused =
            |name: &str| crate::command().try_get_matches_from(["whit", name]).unwrap_err();
        let names: Vec<_> = WAYS.iter().map(|(name, _)| *name).collect();
        for name in &names {
            assert!(way(&refused(name)).is_some_and(|text| text.contains(name)), "{name}");
        }
        assert_eq!(way(&refused("reprot")), None);
        assert!(
            way(&refused("./server")).is_some_and(|text| text.contains("whit record ./server"))
        );
        let command = crate::command();
        assert!(command.get_subcommands().all(|own| !names.contains(&own.get_name())));
    }
}
