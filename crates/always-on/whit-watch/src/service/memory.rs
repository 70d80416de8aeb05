//! Memory that a cgroup limits: the kernel may end the recorder for it.

use super::Service;
use crate::recorder::Ended;
use crate::settings::Settings;
use whit_host::memory_limit::MemoryLimit;
use whit_host::roots::Roots;
use whit_types::ByteSize;

/// So many recorders may end for want of memory before the next ones need less.
const KILLS_MAX: u32 = 2;
/// More than one part in so many of a limit is much for records in memory.
const LARGE_PART: u64 = 4;
/// The signal that the kernel ends processes with.
const KILL: i32 = 9;

/// The limit of memory, and the recorders that it ended.
#[derive(Debug)]
pub(super) struct Memory {
    limit: Option<MemoryLimit>,
    /// Processes that the kernel had ended when the recorder began.
    kills_before: u64,
    recorders_ended: u32,
}

impl Memory {
    pub(super) fn of_self() -> Memory {
        let limit = MemoryLimit::of_self(&Roots::default());
        Memory { limit, kills_before: 0, recorders_ended: 0 }
    }

    /// A recorder begins.
    pub(super) fn begin(&mut self) {
        self.kills_before = self.kills();
    }

    fn kills(&self) -> u64 {
        self.limit.as_ref().map_or(0, MemoryLimit::kills)
    }

    /// Whether the next recorder has to need less.
    fn is_lean(&self) -> bool {
        self.recorders_ended >= KILLS_MAX
    }

    /// The command line of the next recorder.
    pub(super) fn arguments(&self, settings: &Settings) -> Vec<String> {
        match self.is_lean() {
            true => settings.lean_recorder_arguments(),
            false => settings.recorder_arguments(),
        }
    }

    /// True where the kernel ended this recorder for want of memory.
    fn learn(&mut self, ended: &Ended) -> bool {
        let is_short = ended.signal == Some(KILL) && self.kills() > self.kills_before;
        self.recorders_ended += u32::from(is_short);
        is_short
    }
}

impl Service<'_> {
    /// Says which sizes a limit of memory leaves, and whether they are too large for it.
    pub(super) fn say_sizes(&self) {
        let Some(MemoryLimit { bytes, cgroup }) = &self.memory.limit else { return };
        if let Some(text) = sizes_within(&self.settings, *bytes) {
            let (size, cgroup) = (ByteSize(*bytes), cgroup.display());
            self.log.say_always(format_args!("memory has a limit of {size} ({cgroup}): {text}"));
        }
    }

    /// Says once for which want a recorder ended, with the way out. True where it was memory.
    pub(super) fn learn_of_memory(&mut self, ended: &Ended) -> bool {
        let is_short = self.memory.learn(ended);
        if is_short {
            self.counters().recorder_out_of_memory.one();
            self.say_memory_limit();
        }
        is_short
    }

    fn say_memory_limit(&self) {
        let Some(MemoryLimit { bytes, cgroup }) = &self.memory.limit else { return };
        let (size, cgroup) = (ByteSize(*bytes), cgroup.display());
        let has_tables = self.settings.engine != "ring";
        let keys = "Raise the limit, or lower window-bytes, queue-bytes or flight-bytes";
        match self.memory.recorders_ended {
            KILLS_MAX if has_tables => self.log.say_always(format_args!(
                "the recorder needs more memory than the limit of {cgroup} ({size}) leaves: from now on, call chains are \
                 those of frame pointers (engine = \"ring\"), which need no unwind tables. {keys}"
            )),
            1 => self.log.say_always(format_args!(
                "the kernel ended the recorder: memory has a limit of {size} ({cgroup}). {keys}"
            )),
            _ => {}
        }
    }
}

/// The sizes in words, where they are not those that the documents name, or where they take much of a limit.
fn sizes_within(settings: &Settings, limit_bytes: u64) -> Option<String> {
    let usual = Settings::default();
    let mut sizes = vec![
        ("window-bytes", settings.window_bytes, usual.window_bytes),
        ("queue-bytes", settings.queue_bytes, usual.queue_bytes),
    ];
    if settings.keeps_seconds() {
        sizes.push(("flight-bytes", settings.flight_bytes, usual.flight_bytes));
    }
    let sum: u64 = sizes.iter().map(|(_, size, _)| size.0.0).sum();
    let is_large = sum > limit_bytes / LARGE_PART;
    if !is_large && sizes.iter().all(|(_, size, usual)| size >= usual) {
        return None;
    }
    let words: Vec<_> = sizes.iter().map(|(key, size, _)| format!("{key} is {size}")).collect();
    let advice = "; that is too much beside the recorder, which the kernel may end: lower them, or raise the limit";
    Some(words.join(", ") + if is_large { advice } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::described::Length;

    #[test]
    fn sizes_are_said_where_a_limit_changes_them_or_is_too_small() {
        let mut settings = Settings::default();
        assert_eq!(sizes_within(&settings, 1 << 30), None);
        let text = sizes_within(&settings, 128 << 20).unwrap();
        assert!(
            text.starts_with("window-bytes is 16M, queue-bytes is 32M; that is too much"),
            "{text}"
        );
        settings.fit_into(128 << 20, |_| false);
        let text = sizes_within(&settings, 128 << 20).unwrap();
        assert_eq!(text, "window-bytes is 4M, queue-bytes is 8M");
        settings.flight = Length::seconds(10);
        let text = sizes_within(&settings, 128 << 20).unwrap();
        assert_eq!(text, "window-bytes is 4M, queue-bytes is 8M, flight-bytes is 16M");
    }

    fn ended(signal: Option<i32>) -> Ended {
        Ended { signal, ..Ended::default() }
    }

    #[test]
    fn recorders_need_less_after_two_that_the_kernel_ended() {
        let cgroup = tempfile::tempdir().unwrap();
        let kills = |count: u64| {
            let text = format!("low 0\noom_kill {count}\n");
            std::fs::write(cgroup.path().join("memory.events"), text).unwrap();
        };
        let limit = Some(MemoryLimit { bytes: 128 << 20, cgroup: cgroup.path().to_owned() });
        let mut memory = Memory { limit, kills_before: 0, recorders_ended: 0 };
        let settings = Settings::default();
        kills(4);
        memory.begin();
        // Somebody else killed it.
        assert!(!memory.learn(&ended(Some(KILL))));
        kills(5);
        assert!(!memory.learn(&ended(Some(15))) && !memory.learn(&ended(None)));
        assert!(memory.learn(&ended(Some(KILL))));
        assert!(memory.arguments(&settings).contains(&"--engine=auto".to_owned()));
        memory.begin();
        assert!(!memory.learn(&ended(Some(KILL))));
        kills(6);
        assert!(memory.learn(&ended(Some(KILL))));
        assert!(memory.arguments(&settings).contains(&"--engine=ring".to_owned()));
        memory.limit = None;
        assert!(!memory.learn(&ended(Some(KILL))));
    }
}
