//! Capabilities that the program's file lends: taken out of force at the start, put in force around single calls,
//! given up for good.
//!
//! This is mechanism. A [`BorrowPolicy`] says which capabilities may be kept, and which environment variables stay
//! meanwhile; it comes from above.
//!
//! 1. [`begin`], the first call of `main`, empties the effective, inheritable and ambient sets, and removes the
//!    capabilities that the policy does not name from the permitted set.
//! 2. [`raise`] puts capabilities in force in one thread, around the one call that needs them.
//! 3. [`Privileges::keep`] keeps some of them, and gives up the others for good. Without any, the process is an
//!    ordinary one of its user.
//! 4. The user's command has none: all four sets are emptied in the child before its exec, and
//!    looked at again ([`crate::Workload`]). `no_new_privs` is not set: a command that is set-uid
//!    gains the same rights as without whit. The command gets the environment that the user gave, with the
//!    variables that the dynamic linker had taken out.
//! 5. While capabilities are held, the process is not dumpable: its user can neither trace it nor read its memory,
//!    and it leaves no core.
//!
//! Capabilities that the user has anyway (root's, and ambient ones, as of containers and services)
//! are not borrowed: nothing of this applies to them, and the command inherits them as without
//! whit. A set-user-id or set-group-id program is refused: it would open files with rights that are
//! not the user's.
//!
//! Sources: `capabilities(7)`, `getauxval(3)`, `ld.so(8)` under "Secure-execution mode",
//! `cap_bprm_creds_from_file` in `security/commoncap.c`.

use std::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{self, CapabilitySets};

use crate::Errno;
use crate::capability::{Capability, CapabilitySet};
use crate::environment::{self, EnvironmentError, GivenEnvironment};

/// Limits of the use of borrowed capabilities.
#[derive(Debug)]
pub struct BorrowPolicy {
    /// Capabilities that may be kept. All others that the file lends are given up at once.
    pub borrowable: CapabilitySet,
    /// Pairs of capabilities: the former is given up where the latter is there, which does as much.
    pub replaced: &'static [(Capability, Capability)],
    /// Environment variables that stay while capabilities are held.
    pub variables: &'static [&'static str],
    /// Way out for the user of a set-user-id or set-group-id program.
    pub set_id_remedy: &'static str,
}

impl BorrowPolicy {
    /// Capabilities of `permitted` that may be kept.
    pub fn keepable(&self, permitted: CapabilitySet) -> CapabilitySet {
        let kept = permitted.intersection(self.borrowable);
        let replaced = self.replaced.iter().filter(|(_, by)| kept.has(*by));
        replaced.fold(kept, |kept, (old, _)| kept.without(CapabilitySet::of(&[*old])))
    }
}

/// The permitted set while it is borrowed, else empty.
static BORROWED: AtomicU64 = AtomicU64::new(0);
/// The environment for the user's command while capabilities are held.
static FOR_COMMAND: OnceLock<GivenEnvironment> = OnceLock::new();

/// Why the policy cannot be kept. Nothing may be done then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// The file has the set-user-id or set-group-id bit.
    #[error(
        "whit runs with rights of user {effective_uid} and group {effective_gid} that its user \
         {real_uid} (group {real_gid}) has not: it would open files with them. {remedy}"
    )]
    SetId {
        /// The user who runs it.
        real_uid: u32,
        /// With whose rights.
        effective_uid: u32,
        /// The group of that user.
        real_gid: u32,
        /// The group with whose rights.
        effective_gid: u32,
        /// The way out.
        remedy: &'static str,
    },
    /// A thread ran already, which would keep its capabilities.
    #[error("whit has {threads} threads before it gave up capabilities: this is a bug")]
    Threads {
        /// Number of threads of this process.
        threads: u64,
    },
    /// The kernel refused.
    #[error("cannot {attempt} before anything else is done")]
    Kernel {
        /// The attempted action.
        attempt: &'static str,
        /// Error of the kernel.
        source: Errno,
    },
    /// The environment for the user's command is not known.
    #[error("cannot read the environment that whit was given, for the command to record")]
    Environment(#[from] EnvironmentError),
}

fn kernel(attempt: &'static str) -> impl FnOnce(Errno) -> PrivilegeError {
    move |source| PrivilegeError::Kernel { attempt, source }
}

/// User and capabilities of this process.
#[derive(Clone, Copy, Debug)]
struct Facts {
    real_uid: u32,
    effective_uid: u32,
    real_gid: u32,
    effective_gid: u32,
    permitted: CapabilitySet,
    ambient: CapabilitySet,
}

impl Facts {
    fn of_process() -> Result<Facts, PrivilegeError> {
        let sets = thread::capabilities(None).map_err(kernel("read own capabilities"))?;
        let permitted = CapabilitySet(sets.permitted.bits());
        let is_ambient = |bit: &u32| {
            let one = thread::CapabilitySet::from_bits_retain(1 << bit);
            // Kernels before 4.3 know no ambient set.
            thread::capability_is_in_ambient_set(one).unwrap_or(false)
        };
        let ambient = (0..u64::BITS).filter(|bit| permitted.0 >> bit & 1 == 1).filter(is_ambient);
        Ok(Facts {
            real_uid: rustix::process::getuid().as_raw(),
            effective_uid: rustix::process::geteuid().as_raw(),
            real_gid: rustix::process::getgid().as_raw(),
            effective_gid: rustix::process::getegid().as_raw(),
            permitted,
            ambient: CapabilitySet(ambient.fold(0, |set, bit| set | 1 << bit)),
        })
    }

    /// Capabilities that the file lends; empty where all are the user's own.
    ///
    /// Root's capabilities are root's. An exec leaves other users only ambient ones, so that all
    /// further permitted ones came with the file.
    fn lent(&self, policy: &BorrowPolicy) -> Result<CapabilitySet, PrivilegeError> {
        let Facts { real_uid, effective_uid, real_gid, effective_gid, .. } = *self;
        if (real_uid, real_gid) != (effective_uid, effective_gid) {
            return Err(PrivilegeError::SetId {
                real_uid,
                effective_uid,
                real_gid,
                effective_gid,
                remedy: policy.set_id_remedy,
            });
        }
        let is_root = real_uid == 0;
        Ok(if is_root { CapabilitySet::EMPTY } else { self.permitted.without(self.ambient) })
    }
}

/// The process's rights, between their discovery and the decision what to keep.
#[derive(Debug)]
#[must_use = "capabilities stay borrowed until it is decided which to keep"]
pub struct Privileges {
    given: Option<GivenEnvironment>,
    policy: &'static BorrowPolicy,
}

/// Takes stock, and puts out of force what the file lends. Call it before anything else, and
/// before any thread is started.
pub fn begin(policy: &'static BorrowPolicy) -> Result<Privileges, PrivilegeError> {
    let facts = Facts::of_process()?;
    if facts.lent(policy)?.is_empty() {
        return Ok(Privileges { given: None, policy });
    }
    // Read first: the address of the environment is shown to the process itself only.
    let (given, threads) = environment::given()?;
    if threads != 1 {
        return Err(PrivilegeError::Threads { threads });
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(kernel("keep others out of this process"))?;
    clear_ambient().map_err(kernel("clear ambient capabilities"))?;
    hold(policy.keepable(facts.permitted))?;
    Ok(Privileges { given: Some(given), policy })
}

impl Privileges {
    /// Whether the file lends capabilities that the user has not.
    pub fn is_borrowing(&self) -> bool {
        self.given.is_some()
    }

    /// Keeps `needed` for [`raise`] and gives up everything else for good. Where nothing is left,
    /// the process is an ordinary one of its user from here on: with the whole environment, and
    /// open to debuggers. Call it before any thread is started.
    pub fn keep(self, needed: &[Capability]) -> Result<(), PrivilegeError> {
        let Some(given) = self.given else { return Ok(()) };
        let kept = borrowed().intersection(CapabilitySet::of(needed));
        hold(kept)?;
        if kept.is_empty() {
            environment::restore(&given);
            return set_dumpable_behavior(DumpableBehavior::Dumpable)
                .map_err(kernel("let debuggers in again"));
        }
        environment::keep_only(self.policy.variables);
        // Set once: `keep` consumes the only value that `begin` gives in a process.
        let _ = FOR_COMMAND.set(given);
        Ok(())
    }
}

/// Permitted: `set`. In force, and inheritable: nothing. Checks the result.
fn hold(set: CapabilitySet) -> Result<(), PrivilegeError> {
    put(set).map_err(kernel("give up capabilities"))?;
    BORROWED.store(set.0, Ordering::Relaxed);
    Ok(())
}

fn put(permitted: CapabilitySet) -> Result<(), Errno> {
    let none = thread::CapabilitySet::empty();
    let wanted = CapabilitySets {
        permitted: thread::CapabilitySet::from_bits_retain(permitted.0),
        effective: none,
        inheritable: none,
    };
    thread::set_capabilities(None, wanted)?;
    // A filter of system calls may pretend success.
    if thread::capabilities(None)? == wanted { Ok(()) } else { Err(Errno::PERM) }
}

fn clear_ambient() -> Result<(), Errno> {
    match thread::clear_ambient_capability_set() {
        // Kernels before 4.3 know no ambient set.
        Ok(()) | Err(Errno::INVAL) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Capabilities that [`raise`] can put in force: those that the file lends and the subcommand has
/// kept. Empty where nothing is borrowed.
pub fn borrowed() -> CapabilitySet {
    CapabilitySet(BORROWED.load(Ordering::Relaxed))
}

/// Capabilities that this process can use: those in force in the calling thread, and those that [`raise`] would put
/// in force.
///
/// # Errors
///
/// Where the kernel does not say.
pub fn usable() -> Result<CapabilitySet, Errno> {
    let effective = thread::capabilities(None)?.effective;
    Ok(CapabilitySet(effective.bits()).union(borrowed()))
}

/// Capabilities in force in this thread until this is dropped.
#[derive(Debug)]
#[must_use = "the capabilities are in force until this is dropped"]
pub struct Raised {
    before: Option<CapabilitySets>,
    /// Capabilities are the thread's.
    not_send: PhantomData<*const ()>,
}

/// Puts those of `capabilities` in force that are borrowed, in the calling thread. Keep it around
/// as little as possible, and start no thread meanwhile: it would inherit them. Where nothing is
/// borrowed (for root, and for users with capabilities of their own) this does nothing.
///
/// A refusal leaves them out of force: the call that needed them is then refused too, and says so.
pub fn raise(capabilities: &[Capability]) -> Raised {
    let wanted = CapabilitySet::of(capabilities).intersection(borrowed());
    let before = if wanted.is_empty() { None } else { put_in_force(wanted) };
    Raised { before, not_send: PhantomData }
}

/// Gives the sets from before where they were changed.
fn put_in_force(wanted: CapabilitySet) -> Option<CapabilitySets> {
    let before = thread::capabilities(None).ok()?;
    let wanted = thread::CapabilitySet::from_bits_retain(wanted.0) & before.permitted;
    let sets = CapabilitySets { effective: before.effective | wanted, ..before };
    thread::set_capabilities(None, sets).ok().map(|()| before)
}

impl Drop for Raised {
    fn drop(&mut self) {
        if let Some(before) = self.before
            && thread::set_capabilities(None, before).is_err()
        {
            // The kernel never refuses to lower a set. Where something else does, going on would
            // open the user's files with rights that are not the user's.
            std::process::abort();
        }
    }
}

/// The environment for the user's command, where it is not this process's.
pub(crate) fn command_environment() -> Option<&'static GivenEnvironment> {
    FOR_COMMAND.get()
}

/// In a forked child, before its exec: gives up borrowed capabilities, and lets the user's tools
/// look into the process again. Makes system calls only.
pub(crate) fn give_up_in_child() -> Result<(), Errno> {
    if borrowed().is_empty() {
        return Ok(());
    }
    clear_ambient()?;
    put(CapabilitySet::EMPTY)?;
    // Nothing was read with capabilities before the fork but what the user may have read too.
    set_dumpable_behavior(DumpableBehavior::Dumpable)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILING: CapabilitySet =
        CapabilitySet::of(&[Capability::PerfMon, Capability::SysPtrace]);
    const POLICY: BorrowPolicy = BorrowPolicy {
        borrowable: CapabilitySet::of(&[
            Capability::PerfMon,
            Capability::SysAdmin,
            Capability::Syslog,
        ]),
        replaced: &[(Capability::SysAdmin, Capability::PerfMon)],
        variables: &["PATH"],
        set_id_remedy: "Take the bits off",
    };
    const USER: Facts = Facts {
        real_uid: 1000,
        effective_uid: 1000,
        real_gid: 100,
        effective_gid: 100,
        permitted: PROFILING,
        ambient: CapabilitySet::EMPTY,
    };

    #[test]
    fn permitted_capabilities_beyond_the_ambient_set_are_lent() {
        assert_eq!(USER.lent(&POLICY).unwrap(), PROFILING);
        let ambient = CapabilitySet::of(&[Capability::PerfMon]);
        let lent = Facts { ambient, ..USER }.lent(&POLICY).unwrap();
        assert_eq!(lent, CapabilitySet::of(&[Capability::SysPtrace]));
    }

    #[test]
    fn the_users_own_capabilities_are_not_lent() {
        let root = Facts { real_uid: 0, effective_uid: 0, ..USER };
        assert!(root.lent(&POLICY).unwrap().is_empty());
        assert!(Facts { ambient: PROFILING, ..USER }.lent(&POLICY).unwrap().is_empty());
        assert!(
            Facts { permitted: CapabilitySet::EMPTY, ..USER }.lent(&POLICY).unwrap().is_empty()
        );
    }

    #[test]
    fn set_id_programs_are_refused_with_a_remedy() {
        for facts in [Facts { effective_uid: 0, ..USER }, Facts { effective_gid: 0, ..USER }] {
            let error = facts.lent(&POLICY).unwrap_err().to_string();
            assert!(error.ends_with("open files with them. Take the bits off"), "{error}");
        }
    }

    #[test]
    fn capabilities_that_the_policy_does_not_name_or_replaces_are_given_up() {
        let old = CapabilitySet::of(&[Capability::SysAdmin, Capability::Syslog]);
        assert_eq!(POLICY.keepable(old.union(CapabilitySet::of(&[Capability::Bpf]))), old);
        let new = CapabilitySet::of(&[Capability::PerfMon, Capability::Syslog]);
        assert_eq!(POLICY.keepable(old.union(new)), new);
    }

    #[test]
    fn this_process_has_the_set_that_its_status_shows() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let shown = CapabilitySet::from_status(&status, "CapEff").unwrap();
        assert_eq!(usable().unwrap(), shown);
    }

    #[test]
    fn nothing_changes_without_lent_capabilities() {
        // The tests' process has its capabilities from its user.
        let before = thread::capabilities(None).unwrap();
        let privileges = begin(&POLICY).unwrap();
        assert!(!privileges.is_borrowing());
        privileges.keep(&[]).unwrap();
        drop(raise(&Capability::ALL));
        give_up_in_child().unwrap();
        assert_eq!(thread::capabilities(None).unwrap(), before);
        assert!(command_environment().is_none());
    }
}
