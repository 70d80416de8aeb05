//! Processes whose mappings the recorder did not read to the end.

use crate::warning::Warning;
use whit_perfdata::record::{RecordHeader, misc, record_type};
use whit_types::Pid;

/// Their number, and the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct CutMaps {
    processes: u64,
    first: Option<Pid>,
}

impl CutMaps {
    /// Takes note of a mapping: the last that was read of such a process says so.
    pub(crate) fn see(&mut self, header: RecordHeader, pid: Pid) {
        if header.kind == record_type::MMAP2 && header.misc & misc::PROC_MAP_TIMEOUT != 0 {
            self.processes += 1;
            self.first.get_or_insert(pid);
        }
    }

    /// Takes over those of another stream.
    pub(crate) fn add(&mut self, other: CutMaps) {
        self.processes += other.processes;
        self.first = self.first.or(other.first);
    }

    pub(crate) fn warning(self) -> Option<Warning> {
        let CutMaps { processes, first } = self;
        first.map(|first| Warning::MapsCut { first, processes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_counted_by_their_last_mapping() {
        let header = |kind, misc| RecordHeader { kind, misc, size_bytes: 8 };
        let mut cut = CutMaps::default();
        cut.see(header(record_type::MMAP2, misc::USER), Pid(1));
        cut.see(header(record_type::MMAP, misc::PROC_MAP_TIMEOUT), Pid(1));
        assert!(cut.warning().is_none());
        let mut other = CutMaps::default();
        other.see(header(record_type::MMAP2, misc::USER | misc::PROC_MAP_TIMEOUT), Pid(7));
        cut.add(other);
        let one = cut.warning();
        assert!(matches!(one, Some(Warning::MapsCut { first: Pid(7), processes: 1 })), "{one:?}");
        cut.see(header(record_type::MMAP2, misc::PROC_MAP_TIMEOUT), Pid(9));
        let two = cut.warning();
        assert!(matches!(two, Some(Warning::MapsCut { first: Pid(7), processes: 2 })), "{two:?}");
    }
}
