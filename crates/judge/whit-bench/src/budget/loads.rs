//! Loads that step, and programs with a fixed amount of work.

use std::path::Path;

use crate::load::EXECS;

/// The workloads that are needed.
pub(crate) const WORKLOADS: [&str; 5] = ["pingpong", "spawn", "threads", "matrix", "yield"];
/// A line of the script that says when a phase begins, in seconds since the machine did.
pub(super) const MARK: &str = "phase ";

/// A load.
pub(super) struct Phase {
    pub(super) name: &'static str,
    /// For the shell: DIR is the folder of the workloads, S the length of the phase in seconds.
    line: &'static str,
}

/// All loads, in order.
pub(super) const PHASES: [Phase; 7] = [
    Phase { name: "idle", line: "sleep S" },
    Phase {
        name: "ping-pong",
        line: "timeout S DIR/pingpong --iterations 1000000000 --threads 4 >/dev/null",
    },
    Phase { name: "idle again", line: "sleep S" },
    Phase { name: "execs", line: "for n in 1 2; do timeout S sh -c 'EXECS' & done; wait" },
    Phase { name: "idle after the execs", line: "sleep S" },
    Phase {
        name: "500 threads",
        line: "timeout S DIR/threads --seconds S --busy 2 --sleeping 498 >/dev/null",
    },
    Phase { name: "idle at the end", line: "sleep S" },
];

/// A script of the shell that runs them one after the other.
pub(super) fn script(workloads: &Path, seconds: u32) -> String {
    let (folder, seconds) = (workloads.display().to_string(), seconds.to_string());
    let lines = PHASES.iter().map(|phase| {
        let words = phase.line.split(' ').map(|word| match word {
            "S" => seconds.clone(),
            word => word.replace("DIR", &folder).replace("EXECS", EXECS),
        });
        let line = words.collect::<Vec<_>>().join(" ");
        format!("read -r now rest </proc/uptime; echo \"{MARK}$now\"; {line}\n")
    });
    lines.chain(["exit 0\n".to_owned()]).collect()
}

/// A program with a fixed amount of work. Threads that hand CPUs over are pinned: the scheduler finds other neighbours for
/// them in each run, and the times of runs scatter.
pub(super) struct Work {
    pub(super) program: &'static str,
    pub(super) arguments: &'static str,
}

impl Work {
    /// Name and arguments.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.program, self.arguments)
    }

    pub(super) const ALL: [Work; 6] = [
        Work {
            program: "pingpong",
            arguments: "--iterations 300000 --threads 4 --placement pinned",
        },
        Work {
            program: "pingpong",
            arguments: "--iterations 15000 --threads 100 --placement pinned",
        },
        Work { program: "spawn", arguments: "--iterations 1500 --threads 2" },
        Work { program: "matrix", arguments: "--iterations 500" },
        Work { program: "yield", arguments: "--iterations 150000 --threads 4 --placement pinned" },
        Work { program: "yield", arguments: "--iterations 1500 --threads 500 --placement pinned" },
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_marks_each_phase() {
        let text = script(Path::new("/w"), 7);
        assert_eq!(text.matches(MARK).count(), PHASES.len());
        assert!(text.contains("timeout 7 /w/pingpong ") && text.contains("--seconds 7 "), "{text}");
        assert!(!text.contains("DIR") && !text.contains(" S "), "{text}");
    }
}
