//! Resource limits of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Errno;

/// A limit that recording runs into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Open files (`RLIMIT_NOFILE`).
    OpenFiles,
    /// Locked memory in bytes (`RLIMIT_MEMLOCK`).
    LockedMemory,
}

/// A limit's two values; `None` stands for "unlimited".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitValue {
    /// The soft limit, which the kernel enforces.
    pub soft: Option<u64>,
    /// The hard limit: the highest value of the soft limit.
    pub hard: Option<u64>,
}

impl Limit {
    /// The limit as it is now.
    pub fn get(self) -> LimitValue {
        let Rlimit { current, maximum } = getrlimit(self.resource());
        LimitValue { soft: current, hard: maximum }
    }

    /// Raises the soft limit to the hard one; gives the new soft limit.
    pub fn raise(self) -> Result<Option<u64>, Errno> {
        let LimitValue { soft, hard } = self.get();
        if soft != hard {
            setrlimit(self.resource(), Rlimit { current: hard, maximum: hard })?;
        }
        Ok(hard)
    }

    fn resource(self) -> Resource {
        match self {
            Limit::OpenFiles => Resource::Nofile,
            Limit::LockedMemory => Resource::Memlock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raising_brings_the_soft_limit_to_the_hard_one() {
        let hard = Limit::OpenFiles.get().hard;
        assert_eq!(Limit::OpenFiles.raise().unwrap(), hard);
        assert_eq!(Limit::OpenFiles.get().soft, hard);
        assert!(Limit::LockedMemory.get().soft.is_none_or(|bytes| bytes > 0));
    }
}
