//! Short names of functions, threads and waits for programs: `f-3k9x2a`, `t-1234`, `w-1234-7v2hk0m`.
//!
//! A function's handle is a hash of its name and of its binary's file name. So it depends on no option that chooses
//! samples or rows, and is the same in another recording of the same program. Two functions may share one: that is
//! found ([`Handles::is_shared`], [`BadHandle::Shared`]), never passed over. A thread's handle is its id. That of a wait
//! has the thread's id and the time of the switch: a thread begins one wait at a time.

use crate::model::{FunctionId, FunctionInfo, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use whit_types::{OutsideText, Tid, TimestampNs};

/// Digits of a hash: letters and digits without those that look alike.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters of a hash; each has five bits.
const LENGTH: usize = 6;
/// Functions that a message about a shared handle names.
const MAX_NAMED: usize = 4;

/// The handle of a function.
pub fn of_function(profile: &Profile, function: FunctionId) -> String {
    of_info(profile, &profile.functions[function.index()])
}

fn of_info(profile: &Profile, function: &FunctionInfo) -> String {
    of_name(function.name.exact(), profile.dsos[function.dso.index()].short_name.exact())
}

/// The handle of a function of this name, in a binary of this file name.
pub fn of_name(name: &str, binary: &str) -> String {
    let bytes = name.bytes().chain([0xff]).chain(binary.bytes());
    // FNV-1a: the same on each machine and in each version.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut rest = hash ^ (hash >> 32);
    let mut text = "f-".to_owned();
    for _ in 0..LENGTH {
        text.push(char::from(DIGITS[(rest % 32) as usize]));
        rest /= 32;
    }
    text
}

/// The handle of a thread.
pub fn of_thread(thread: Tid) -> String {
    format!("t-{}", thread.0)
}

/// A wait of a recording: the thread, and the time at which it left its CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitId {
    /// The thread that waits.
    pub tid: Tid,
    /// The switch.
    pub start: TimestampNs,
}

/// The handle of a wait.
pub fn of_wait(wait: WaitId) -> String {
    let mut digits = Vec::new();
    let mut rest = wait.start.0;
    while rest > 0 || digits.is_empty() {
        digits.push(DIGITS[(rest % 32) as usize]);
        rest /= 32;
    }
    let time: String = digits.iter().rev().map(|digit| char::from(*digit)).collect();
    format!("w-{}-{time}", wait.tid.0)
}

/// The wait that a handle stands for.
///
/// # Errors
/// The text is no handle of a wait.
pub fn wait(text: &str) -> Result<WaitId, BadHandle> {
    let parsed = || {
        let (tid, time) = text.strip_prefix("w-")?.rsplit_once('-')?;
        let value = |digit: u8| DIGITS.iter().position(|known| *known == digit);
        let add = |sum: u64, digit: u8| sum.checked_mul(32)?.checked_add(value(digit)? as u64);
        let start = time.bytes().try_fold(0u64, add).filter(|_| !time.is_empty())?;
        Some(WaitId { tid: Tid(tid.parse().ok()?), start: TimestampNs(start) })
    };
    parsed().ok_or_else(|| BadHandle::NoWait(text.to_owned()))
}

/// True for a text in the form of a function's handle.
pub fn is_of_function(text: &str) -> bool {
    let hash = text.strip_prefix("f-");
    hash.is_some_and(|hash| hash.len() == LENGTH && hash.bytes().all(|it| DIGITS.contains(&it)))
}

/// True where a list of names has the handle of this function.
pub fn lists<S: AsRef<str>>(list: &[S], profile: &Profile, function: &FunctionInfo) -> bool {
    let mut handles = list.iter().map(AsRef::as_ref).filter(|text| is_of_function(text)).peekable();
    // Most lists have none, and a hash costs more than a comparison.
    handles.peek().is_some() && {
        let own = of_info(profile, function);
        handles.any(|handle| handle == own)
    }
}

/// A handle that stands for no function, or for several.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadHandle {
    /// No function of the recording has it.
    #[error(
        "no function of the recording has the handle {0}: list the handles with `whit report --brief` or `whit \
         report --json`, or give the function's name"
    )]
    Unknown(String),
    /// The text has not the form of a wait's handle.
    #[error(
        "{0} is no handle of a wait: they look like w-1234-7v2hk0m, and `whit report --brief` lists those of the longest \
         waits"
    )]
    NoWait(String),
    /// No wait of the recording has it.
    #[error(
        "no wait of the recording has the handle {0}: `whit report --brief` lists the handles of the longest waits. Give \
         the same --time there and here"
    )]
    UnknownWait(String),
    /// Several functions have it.
    #[error(
        "the handle {handle} stands for several functions: give the name of one of them: {names}"
    )]
    Shared {
        /// As the user gave it.
        handle: String,
        /// The functions.
        names: String,
    },
}

/// Checks the handles in a list of names.
///
/// # Errors
/// A handle stands for no function, or for several.
pub fn check<S: AsRef<str>>(list: &[S], profile: &Profile) -> Result<(), BadHandle> {
    for handle in list.iter().map(AsRef::as_ref).filter(|text| is_of_function(text)) {
        // A function may be called so.
        if profile.functions.iter().any(|function| function.name.exact() == handle) {
            continue;
        }
        let with_it = profile.functions.iter().filter(|it| of_info(profile, it) == handle);
        let names: FxHashSet<_> = with_it.map(|function| described(profile, function)).collect();
        match names.len() {
            0 => return Err(BadHandle::Unknown(handle.to_owned())),
            1 => {}
            _ => {
                let mut names: Vec<_> = names.into_iter().collect();
                names.sort();
                names.truncate(MAX_NAMED);
                let (handle, names) = (handle.to_owned(), names.join(", "));
                return Err(BadHandle::Shared { handle, names });
            }
        }
    }
    Ok(())
}

fn described(profile: &Profile, function: &FunctionInfo) -> String {
    let binary: &OutsideText = &profile.dsos[function.dso.index()].short_name;
    format!("{} ({binary})", function.name)
}

/// The handles of all functions of a profile.
#[derive(Clone, Debug)]
pub struct Handles {
    shared: FxHashSet<String>,
}

impl Handles {
    /// Finds the handles that several functions share.
    pub fn new(profile: &Profile) -> Handles {
        let mut first: FxHashMap<String, (&str, &str)> = FxHashMap::default();
        let mut shared = FxHashSet::default();
        for function in &profile.functions {
            let binary = profile.dsos[function.dso.index()].short_name.exact();
            let name = (function.name.exact(), binary);
            let handle = of_name(name.0, name.1);
            if *first.entry(handle.clone()).or_insert(name) != name {
                shared.insert(handle);
            }
        }
        Handles { shared }
    }

    /// True where another function has the same handle.
    pub fn is_shared(&self, handle: &str) -> bool {
        self.shared.contains(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DsoId, DsoInfo, DsoKind};

    fn profile(names: &[&str]) -> Profile {
        let mut profile = Profile::default();
        let (path, short_name) = ("/usr/bin/app".into(), "app".into());
        profile.dsos.push(DsoInfo { path, short_name, build_id: None, kind: DsoKind::Elf });
        let function =
            |name: &&str| FunctionInfo { name: (*name).into(), dso: DsoId(0), known: true };
        profile.functions = names.iter().map(function).collect();
        profile
    }

    /// Two names with one handle, found by trying.
    fn twins() -> (String, String) {
        let mut seen = FxHashMap::default();
        (0..)
            .find_map(|n| {
                let name = format!("fn{n}");
                let other = seen.insert(of_name(&name, "app"), name.clone())?;
                Some((other, name))
            })
            .unwrap()
    }

    #[test]
    fn a_handle_never_changes() {
        // Other programs keep handles: a change of this value breaks them.
        assert_eq!(of_name("main", "app"), "f-dj2pbr");
        assert_ne!(of_name("main", "app"), of_name("main", "app2"));
        assert_ne!(of_name("mainapp", ""), of_name("main", "app"));
        assert!(is_of_function(&of_name("main", "app")));
        for no in ["f-", "f-12345", "f-1234567", "f-12345u", "g-123456", "main"] {
            assert!(!is_of_function(no), "{no}");
        }
        assert_eq!(of_thread(Tid(17)), "t-17");
    }

    #[test]
    fn the_handle_of_a_wait_says_which_it_is() {
        let of = |tid, start| of_wait(WaitId { tid: Tid(tid), start: TimestampNs(start) });
        assert_eq!(of(22178, 0), "w-22178-0");
        assert_eq!(of(1, 32 * 32 + 31), "w-1-10z");
        for (tid, start) in [(0, 0), (1, 31), (-1, 32), (i32::MAX, u64::MAX)] {
            let id = WaitId { tid: Tid(tid), start: TimestampNs(start) };
            assert_eq!(wait(&of_wait(id)), Ok(id));
        }
        for no in [
            "",
            "w-",
            "w-1",
            "w-1-",
            "w--1",
            "w-x-1",
            "w-1-u",
            "w-1-1 ",
            "t-1-1",
            "w-1-gzzzzzzzzzzzz",
        ] {
            assert_eq!(wait(no), Err(BadHandle::NoWait(no.to_owned())), "{no}");
        }
    }

    #[test]
    fn a_list_names_functions_by_handle() {
        let profile = profile(&["main", "work"]);
        let list = [of_name("work", "app")];
        assert!(lists(&list, &profile, &profile.functions[1]));
        assert!(!lists(&list, &profile, &profile.functions[0]));
        assert_eq!(check(&list, &profile), Ok(()));
        let unknown = check(&["f-000000"], &profile).unwrap_err().to_string();
        assert!(unknown.contains("f-000000") && unknown.contains("--brief"), "{unknown}");
    }

    #[test]
    fn a_shared_handle_is_named_with_its_owners() {
        let (one, other) = twins();
        let both = profile(&[&one, &other]);
        let handle = of_name(&one, "app");
        assert!(Handles::new(&both).is_shared(&handle));
        let error = check(&[&handle], &both).unwrap_err().to_string();
        assert!(error.contains(&format!("{one} (app)")), "{error}");
        assert!(error.contains(&format!("{other} (app)")), "{error}");
        // The same function in two builds of one binary is one.
        let same = profile(&[&one, &one]);
        assert!(!Handles::new(&same).is_shared(&handle));
        assert_eq!(check(&[&handle], &same), Ok(()));
    }
}
