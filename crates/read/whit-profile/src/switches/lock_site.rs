//! The place of a lock in a call stack: the function that wants it, and the kind of the lock.
//!
//! A stack of a wait for a lock leads through the lock's implementation. The function outside of it is the *call
//! site*. The stack of the thread that ended the wait has one too: the function that released the lock.

use super::classify::{NamedFrame, classify, is_kernel_lock};
use super::lock_site_names::{
    is_entry, is_glibc_mutex, is_kernel_lock_function, is_lock_function, is_parking, is_runtime,
    is_system_library, is_waking,
};
use super::wait_class::WaitClass;
use crate::model::{FunctionId, NodeId, Profile};
use rustc_hash::FxHashMap;

/// Where the waiters of a lock wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LockKind {
    /// The thread waits at a word of the lock: its address tells locks apart.
    Word,
    /// The thread waits at a word or a file of its own, which says nothing of the lock.
    Parked,
    /// A lock inside the kernel, as that of an address space.
    Kernel,
}

/// A wait for a lock, as its call stack tells it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LockSite {
    /// The kind of the lock.
    pub kind: LockKind,
    /// The innermost function outside of the lock's implementation; absent where the stack has none.
    pub caller: Option<FunctionId>,
    /// For a lock of the kernel, the kernel's function that wants it.
    pub kernel: Option<FunctionId>,
    /// The lock is a mutex of glibc, which holds the number of the thread that has it.
    pub names_owner: bool,
}

/// Call sites of stacks.
#[derive(Clone, Debug, Default)]
pub struct LockSites {
    waits: FxHashMap<NodeId, Option<LockSite>>,
    releases: FxHashMap<NodeId, Option<FunctionId>>,
}

struct Frame<'a> {
    function: FunctionId,
    name: &'a str,
    kernel: bool,
    library: &'a str,
}

impl LockSites {
    /// For stacks of waits, and stacks of the threads that ended them.
    pub fn of(
        profile: &Profile,
        waits: impl Iterator<Item = NodeId>,
        releases: impl Iterator<Item = NodeId>,
    ) -> LockSites {
        let mut sites = LockSites::default();
        for node in waits {
            sites.waits.entry(node).or_insert_with(|| lock_site(&frames(profile, node)));
        }
        for node in releases {
            sites.releases.entry(node).or_insert_with(|| releasing(&frames(profile, node)));
        }
        sites
    }

    /// `None` where a wait at this stack is not one for a lock.
    pub fn wait(&self, node: NodeId) -> Option<LockSite> {
        self.waits.get(&node).copied().flatten()
    }

    /// The function that released the lock.
    pub fn release(&self, node: NodeId) -> Option<FunctionId> {
        self.releases.get(&node).copied().flatten()
    }
}

/// The function of the kernel that wants one of its locks, of a stack at the beginning of the wait.
pub fn kernel_lock_caller(profile: &Profile, node: NodeId) -> Option<FunctionId> {
    kernel_caller(&frames(profile, node))
}

/// The functions of a stack from the one on that the program called to wait, innermost first: each wait ends in the
/// scheduler, and many in the C library or a runtime. A managed program has its own functions alone; a
/// stack without any function of the program has the kernel's.
pub fn wait_path(profile: &Profile, node: NodeId) -> Vec<FunctionId> {
    let frames = frames(profile, node);
    let is_managed_program = frames.iter().any(is_managed);
    let is_inside = |frame: &&&Frame<'_>| is_system_library(frame.library);
    let user = frames.iter().filter(|frame| !frame.kernel);
    let path: Vec<_> =
        user.filter(|frame| !(is_managed_program && is_runtime(frame.library))).collect();
    let inside = path.iter().take_while(is_inside).count();
    let from = match inside {
        all if all == path.len() => 0,
        inside if is_managed_program => inside,
        inside => inside.saturating_sub(1),
    };
    match path.is_empty() {
        true => frames.iter().map(|frame| frame.function).collect(),
        false => path[from..].iter().map(|frame| frame.function).collect(),
    }
}

/// The function that wants a lock, of the stack of a thread that runs inside a function which takes it: that spins, or
/// has just got it.
pub fn lock_taken_at(profile: &Profile, node: NodeId) -> Option<FunctionId> {
    let frames = frames(profile, node);
    let leaf = frames.first()?;
    let is_of_lock = match leaf.kernel {
        true => is_kernel_lock_function(leaf.name),
        false => is_lock_function(leaf.name),
    };
    let takes = leaf.name.contains("lock") && !leaf.name.contains("unlock");
    (is_of_lock && takes).then(|| user_function(&frames).or_else(|| kernel_caller(&frames)))?
}

fn kernel_caller(frames: &[Frame<'_>]) -> Option<FunctionId> {
    let mut kernel = frames.iter().filter(|frame| frame.kernel);
    kernel.find(|frame| !is_kernel_lock_function(frame.name)).map(|frame| frame.function)
}

fn frames(profile: &Profile, leaf: NodeId) -> Vec<Frame<'_>> {
    let mut frames = Vec::new();
    let mut at = leaf;
    while let Some(node) = profile.nodes.get(at.index()) {
        let frame = &profile.frames[node.frame.index()];
        let function = &profile.functions[frame.function.index()];
        let library = profile.dsos[function.dso.index()].short_name.exact();
        let name = function.name.exact();
        frames.push(Frame { function: frame.function, name, kernel: frame.kernel, library });
        at = node.parent;
    }
    frames
}

fn lock_site(frames: &[Frame<'_>]) -> Option<LockSite> {
    let named = frames.iter().map(|frame| NamedFrame { name: frame.name, kernel: frame.kernel });
    if classify(&named.collect::<Vec<_>>()) != WaitClass::Lock {
        return None;
    }
    let mut user = frames.iter().filter(|frame| !frame.kernel);
    let kernel = kernel_function(frames);
    let kind = match kernel {
        Some(_) => LockKind::Kernel,
        None if user.any(|frame| is_parking(frame.name)) => LockKind::Parked,
        None => LockKind::Word,
    };
    let names_owner = frames.iter().any(|it| !it.kernel && is_glibc_mutex(it.library, it.name));
    Some(LockSite { kind, caller: user_function(frames).or(kernel), kernel, names_owner })
}

/// The innermost function of the user outside of locks. One without a name between functions of a lock belongs to it.
fn user_function(frames: &[Frame<'_>]) -> Option<FunctionId> {
    let is_lock =
        |frame: &Frame<'_>| is_system_library(frame.library) || is_lock_function(frame.name);
    let managed = frames.iter().position(is_managed).unwrap_or(0);
    let mut user = frames.iter().enumerate().filter(|(_, frame)| !frame.kernel).peekable();
    let mut caller = None;
    while let Some((at, frame)) = user.next() {
        if is_lock(frame) || at < managed && is_runtime(frame.library) {
            caller = None;
            continue;
        }
        caller = caller.or(Some(frame.function));
        if is_named(frame.name)
            || !user.peek().is_some_and(|(_, outer)| is_lock_function(outer.name))
        {
            break;
        }
    }
    caller
}

/// True for a function of Python, or code that a JIT compiler made.
fn is_managed(frame: &Frame<'_>) -> bool {
    let of_jit = frame.library.starts_with("perf-") || frame.library.starts_with("jitted-");
    !frame.kernel && (of_jit || frame.name.starts_with("py::"))
}

/// False for a function that only the binary's unwind tables tell.
fn is_named(name: &str) -> bool {
    !(name.starts_with("0x") || name.starts_with("fun_") && name.contains('@'))
}

/// The function that wants a lock of the kernel, in the stack of a wait for it. Where the lock is all that a system call
/// is about, that is the call's own function.
fn kernel_function(frames: &[Frame<'_>]) -> Option<FunctionId> {
    let kernel: Vec<_> = frames.iter().take_while(|frame| frame.kernel).collect();
    // The kernel's side of a user's lock.
    if kernel.iter().any(|frame| frame.name.starts_with("futex_lock_pi")) {
        return None;
    }
    let first = kernel.iter().position(|frame| is_kernel_lock(frame.name).is_some())?;
    if is_kernel_lock(kernel[first].name) == Some(false) {
        return None;
    }
    let is_of_lock = |frame: &Frame<'_>| is_kernel_lock(frame.name) == Some(true);
    let behind = kernel[first..].iter().take_while(|frame| is_of_lock(frame)).count() + first;
    let caller = kernel.get(behind).filter(|frame| !is_entry(frame.name));
    Some(caller.unwrap_or(&kernel[behind - 1]).function)
}

/// The function that released a lock; of an interrupt or a kernel thread, the kernel's function that woke.
fn releasing(frames: &[Frame<'_>]) -> Option<FunctionId> {
    let woke = || frames.iter().find(|frame| frame.kernel && !is_waking(frame.name));
    user_function(frames).or_else(|| woke().map(|frame| frame.function))
}

#[cfg(test)]
#[path = "lock_site_tests.rs"]
mod tests;
