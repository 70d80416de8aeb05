//! Rings, each with the events that write into it.

use whit_sys::{BackwardRing, Errno, PerfEventFd, Ring};
use whit_types::CpuId;

use crate::open_event::InstanceIndex;

/// A ring of either kind.
#[derive(Debug)]
pub enum AnyRing {
    /// Drained all the time; records that do not fit are lost.
    Forward(Ring),
    /// Overwritten; read when it is asked for.
    Backward(BackwardRing),
}

impl AnyRing {
    /// Maps the ring of an open event.
    pub fn map(owner: &PerfEventFd, pages: usize, is_backward: bool) -> Result<AnyRing, Errno> {
        Ok(match is_backward {
            true => AnyRing::Backward(BackwardRing::map(owner, pages)?),
            false => AnyRing::Forward(Ring::map(owner, pages)?),
        })
    }

    /// Size of the data area.
    pub fn data_size_bytes(&self) -> usize {
        match self {
            AnyRing::Forward(ring) => ring.data_size_bytes(),
            AnyRing::Backward(ring) => ring.data_size_bytes(),
        }
    }

    /// Whether the kernel overwrites unread records.
    pub fn is_backward(&self) -> bool {
        matches!(self, AnyRing::Backward(_))
    }
}

/// A ring with the events that write into it.
#[derive(Debug)]
pub struct MappedRing {
    /// Forward or backward, by the mode of the session.
    pub ring: AnyRing,
    /// The CPU; `None` is any.
    pub cpu: Option<CpuId>,
    /// Whether the CPU is not recorded: there is only its sideband in it.
    pub is_sideband: bool,
    /// Which instances write into it. The first one owns the ring.
    pub members: Vec<InstanceIndex>,
}
