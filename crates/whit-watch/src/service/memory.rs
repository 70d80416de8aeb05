//! Memory that a cgroup limits: the kernel may end the recorder for it.

use super::Service;
use crate::recorder::Ended;
use crate::settings::Settings;
use whit_host::memory_limit::MemoryLimit;
use whit_host::roots::Roots;
use whit_types::ByteSize;

/// So many recorders may end for want of memory before the next ones need less.
const KILLS_MAX: u32 = 2;
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
    /// Says once for which want a recorder ended, with the way out. True where it was memory.
    pub(super) fn learn_of_memory(&mut self, ended: &Ended) -> bool {
        let is_short = self.memory.learn(ended);
        if is_short {
            self.counters().recorder_out_of_memory.one();
            self.tell_of_memory();
        }
        is_short
    }

    fn tell_of_memory(&self) {
        let Some(MemoryLimit { bytes, cgroup }) = &self.memory.limit else { return };
        let (size, cgroup) = (ByteSize(*bytes), cgroup.display());
        let has_tables = self.settings.engine != "ring";
        let keys = "Raise the limit, or lower window-bytes, queue-bytes or flight-bytes";
        match self.memory.recorders_ended {
            KILLS_MAX if has_tables => self.log.tell(format_args!(
                "the recorder needs more memory than the limit of {cgroup} ({size}) leaves: from now on, call chains are \
                 those of frame pointers (engine = \"ring\"), which need no unwind tables. {keys}"
            )),
            1 => self.log.tell(format_args!(
                "the kernel ended the recorder: memory has a limit of {size} ({cgroup}). {keys}"
            )),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(signal: Option<i32>) -> Ended {
        Ended { how: String::new(), code: None, signal, messages: String::new() }
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
