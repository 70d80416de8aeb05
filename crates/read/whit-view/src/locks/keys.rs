//! Names of locks, call sites, holders and waiters.

use std::sync::Arc;
use whit_profile::model::{CommId, FunctionId, Profile, ThreadId};
use whit_profile::switches::{
    Futex, LockKind, LockSite, LockWait, NamedObject, SwitchRow, Switches,
};
use whit_types::OutsideText;

/// A lock, by its address where recorded, or by the function that wants it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum LockKey {
    /// A word in the data of a binary: the path, the symbol, and the distance to its start.
    Data(Arc<str>, Option<Arc<str>>, u64),
    /// A word elsewhere: process and address.
    Address(i32, u64),
    /// A lock whose address is unknown: all those that a function waits for.
    Unaddressed(SiteKey),
    /// A lock whose waiters wait at words of their own, likewise.
    Parked(SiteKey),
    /// A lock of the kernel, by the kernel's function that wants it.
    Kernel(SiteKey),
}

/// A function outside of locks; `None` where the stack has none.
pub(super) type SiteKey = Option<FunctionId>;

/// The thread that ended a wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum HolderKey {
    /// Threads of a name, in a function that releases locks.
    Threads(CommId, SiteKey),
    /// An interrupt: the lock was not released.
    Interrupt(SiteKey),
    /// No wake-up was recorded.
    Unknown,
}

/// A waiting thread, and its command name at the time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct WaiterKey {
    /// The name.
    pub(super) comm: CommId,
    /// By its number in the profile.
    pub(super) thread: ThreadId,
}

impl LockKey {
    /// The lock of waits.
    pub(super) fn of(profile: &Profile, wait: &LockWait, site: LockSite) -> LockKey {
        LockKey::at(profile, wait.thread, wait.futex.as_ref(), site)
    }

    fn at(profile: &Profile, thread: ThreadId, futex: Option<&Futex>, site: LockSite) -> LockKey {
        match (site.kind, futex) {
            (LockKind::Kernel, _) => LockKey::Kernel(site.kernel),
            (LockKind::Parked, _) => LockKey::Parked(site.caller),
            (LockKind::Word, None) => LockKey::Unaddressed(site.caller),
            (LockKind::Word, Some(futex)) => match &futex.symbol {
                Some(symbol) => {
                    LockKey::Data(symbol.binary.clone(), symbol.name.clone(), symbol.offset)
                }
                None => {
                    let pid = profile.threads[thread.index()].pid.0;
                    LockKey::Address(pid, futex.address)
                }
            },
        }
    }

    /// Only a function tells the lock apart from others.
    pub(super) fn is_of_site(&self) -> bool {
        match self {
            LockKey::Data(..) | LockKey::Address(..) => false,
            LockKey::Unaddressed(_) | LockKey::Parked(_) | LockKey::Kernel(_) => true,
        }
    }

    /// As printed.
    pub(super) fn name(&self, profile: &Profile) -> String {
        match self {
            LockKey::Data(binary, symbol, offset) => {
                let binary = OutsideText::new(&**binary);
                let binary = binary.base_name();
                match symbol {
                    Some(name) if *offset == 0 => {
                        format!("{} ({binary})", OutsideText::new(&**name))
                    }
                    Some(name) => format!("{}+{offset:#x} ({binary})", OutsideText::new(&**name)),
                    None => format!("{offset:#x} ({binary})"),
                }
            }
            LockKey::Address(pid, address) => format!("{address:#x} (process {pid})"),
            LockKey::Unaddressed(site) => format!("[no address] in {}", site_name(profile, *site)),
            LockKey::Parked(site) => format!("[parked] in {}", site_name(profile, *site)),
            LockKey::Kernel(site) => {
                let name = site.map(|function| &profile.functions[function.index()].name);
                name.map_or_else(|| "[kernel]".to_owned(), |name| format!("[kernel] {name}"))
            }
        }
    }
}

impl HolderKey {
    /// The holder of waits.
    pub(super) fn of(profile: &Profile, wait: &LockWait, release: SiteKey) -> HolderKey {
        match wait.waker {
            None => HolderKey::Unknown,
            Some(waker) if waker.from_interrupt => HolderKey::Interrupt(release),
            Some(waker) => HolderKey::Threads(profile.threads[waker.thread.index()].comm, release),
        }
    }

    /// As printed; `threads` is the number of threads, or the one.
    pub(super) fn name(self, profile: &Profile, threads: &str) -> String {
        match self {
            HolderKey::Threads(comm, site) => {
                format!("{}{threads} in {}", profile.comms[comm.index()], site_name(profile, site))
            }
            HolderKey::Interrupt(site) => {
                let name = site.map(|function| &profile.functions[function.index()].name);
                name.map_or_else(|| "[interrupt]".to_owned(), |name| format!("[interrupt] {name}"))
            }
            HolderKey::Unknown => "[no wake-up recorded]".to_owned(),
        }
    }
}

/// The name of the lock that a row's voluntary waits are for.
pub(crate) fn lock_name(
    profile: &Profile,
    switches: &Switches,
    row: &SwitchRow,
    site: LockSite,
) -> String {
    let object = row.object.and_then(|object| switches.objects.get(object as usize));
    let futex = object.and_then(|object| match object {
        NamedObject::Futex(futex) => Some(futex),
        NamedObject::Described(_) | NamedObject::Text(..) => None,
    });
    LockKey::at(profile, row.thread, futex, site).name(profile)
}

/// `function (binary)`.
pub(crate) fn site_name(profile: &Profile, site: SiteKey) -> String {
    let Some(function) = site else { return "[no call site]".to_owned() };
    let function = &profile.functions[function.index()];
    format!("{} ({})", function.name, profile.dsos[function.dso.index()].short_name)
}
