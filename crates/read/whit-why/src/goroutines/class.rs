//! Classes of waits of goroutines, by the reasons of Go's runtime.

use std::sync::Arc;
use whit_profile::switches::WaitClass;

/// Functions that wait by a primitive whose reason says less.
const FUNCTIONS: [(&str, WaitClass); 3] = [
    ("sync.(*WaitGroup).Wait", WaitClass::Join),
    ("net.(*", WaitClass::Network),
    ("os.(*File)", WaitClass::Pipe),
];

/// The class of a reason (`runtime.waitReasonStrings`), at a call chain with its innermost function first.
pub(super) fn class_of(reason: &str, chain: &[Arc<str>]) -> WaitClass {
    let by_function = || {
        let class = |(name, class): &(&str, WaitClass)| {
            chain.iter().any(|function| function.starts_with(name)).then_some(*class)
        };
        FUNCTIONS.iter().find_map(class)
    };
    match reason {
        "IO wait" => by_function().unwrap_or(WaitClass::Poll),
        "semacquire" => by_function().unwrap_or(WaitClass::Lock),
        "sync.Mutex.Lock" | "sync.RWMutex.Lock" | "sync.RWMutex.RLock" => WaitClass::Lock,
        "sync.WaitGroup.Wait" => WaitClass::Join,
        "sleep" => WaitClass::Sleep,
        "sync.Cond.Wait" | "finalizer wait" | "cleanup wait" => WaitClass::Queue,
        _ if reason.starts_with("chan ") || reason.starts_with("select") => WaitClass::Queue,
        "" => WaitClass::Unknown,
        _ => WaitClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_chain_says_what_a_reason_leaves_open() {
        let chain = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect::<Vec<_>>();
        let wait_group = chain(&["runtime.gopark", "sync.(*WaitGroup).Wait", "main.main"]);
        let socket = chain(&["runtime.gopark", "internal/poll.(*FD).Read", "net.(*netFD).Read"]);
        for (reason, chain, wanted) in [
            ("semacquire", &wait_group[..], WaitClass::Join),
            ("semacquire", &[], WaitClass::Lock),
            ("IO wait", &socket, WaitClass::Network),
            ("IO wait", &chain(&["os.(*File).Read"]), WaitClass::Pipe),
            ("IO wait", &[], WaitClass::Poll),
            ("chan receive (nil chan)", &[], WaitClass::Queue),
            ("select (no cases)", &socket, WaitClass::Queue),
            ("sync.RWMutex.RLock", &[], WaitClass::Lock),
            ("GC assist wait", &[], WaitClass::Other),
            ("", &[], WaitClass::Unknown),
        ] {
            assert_eq!(class_of(reason, chain), wanted, "{reason}");
        }
    }
}
