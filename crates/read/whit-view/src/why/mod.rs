//! The critical path of an interval as text and as JSON.

mod folded;
mod json;
#[cfg(test)]
mod tests;
mod text;

pub use folded::write_stacks;
pub use json::{VERSION, write_json};
pub(crate) use json::{class, reason};
pub use text::{DEFAULT_LIMIT, TextOptions, write_text};
pub use text::{explained, what};

use std::sync::Arc;
use whit_profile::tables::WaitKind;
use whit_types::OutsideText;
use whit_why::{Activity, HandOver, Place, Places, ThreadName, Threads, Unknown, Why};

/// Behind the command name of a goroutine.
const GOROUTINE: &str = " goroutine";

/// The word for an activity in JSON.
pub(crate) fn activity_name(activity: Activity) -> &'static str {
    match activity {
        Activity::Running => "running",
        Activity::RunQueue(WaitKind::Preempt) => "preempted",
        Activity::RunQueue(_) => "run-queue",
        Activity::Throttled => "throttled",
        Activity::Runnable => "runnable",
        Activity::Waiting(_) => "waiting",
        Activity::StillWaiting(_) => "still-waiting",
        Activity::Unknown(_) => "unknown",
    }
}

/// The reason why a piece is unknown, in JSON and behind "unknown:".
fn unknown_text(unknown: Unknown) -> &'static str {
    match unknown {
        Unknown::MissingSwitches => "switches may be missing",
        Unknown::NotRecorded => "no record says what the thread did",
        Unknown::NoWakeUp => "it waits, and its wake-up is not recorded",
        Unknown::WakerNotRecorded => "it waits, and nothing is recorded of its waker",
        Unknown::WakerNotRunning => {
            "it waits, and by the records its waker was on no CPU at the wake-up"
        }
    }
}

/// The function and the object of a wait, behind its class.
fn place_text(place: &Place) -> String {
    let part = |word: &str, name: &Option<Arc<str>>| {
        name.as_ref().map_or_else(String::new, |it| format!(" {word} {}", OutsideText::from(&**it)))
    };
    part("in", &place.function) + &part("for", &place.object)
}

/// The class of a wait; else the word for the activity.
pub fn activity_word(activity: Activity) -> &'static str {
    class(activity).unwrap_or_else(|| activity_name(activity))
}

/// A wait that other threads explain, in words.
pub fn hand_over_text(why: &Why, places: &mut Places, wait: &HandOver) -> String {
    let thread = name_text(&why.thread_name(wait.thread));
    let place = place_text(&places.of(&why.source, wait.site));
    format!("while {thread} waits: {}{place}", wait.class.name())
}

/// The activity of a piece, group or stack in words.
pub fn activity_text(activity: Activity, place: &Place) -> String {
    let place = place_text(place);
    match activity {
        Activity::Running => "on CPU".to_owned(),
        Activity::RunQueue(WaitKind::Preempt) => "preempted: waits for a CPU".to_owned(),
        Activity::Throttled => "throttled: waits for the next quota of its cgroup".to_owned(),
        Activity::Runnable => "runnable: waits for a thread of Go's scheduler".to_owned(),
        Activity::RunQueue(WaitKind::New) => "new: waits for its first CPU".to_owned(),
        Activity::RunQueue(WaitKind::Sync) => "woken: waits for a CPU".to_owned(),
        Activity::Waiting(class) => format!("waits: {}{place}", class.name()),
        Activity::StillWaiting(class) => {
            format!("waits when the recording ends: {}{place}", class.name())
        }
        Activity::Unknown(why) => format!("unknown: {}{place}", unknown_text(why)),
    }
}

/// Name and process of threads, as one word.
fn threads_name(Threads { pid, name, are_goroutines }: &Threads) -> String {
    let kind = if *are_goroutines { GOROUTINE } else { "" };
    match name {
        Some(name) if pid.0 < 0 => format!("{name}{kind}"),
        None if pid.0 < 0 => format!("?{kind}"),
        Some(name) => format!("{name}{kind} ({})", pid.0),
        None => format!("{kind}({})", pid.0),
    }
}

/// Name and number of a thread or goroutine.
pub fn name_text(thread: &ThreadName) -> String {
    let kind = if thread.is_goroutine { GOROUTINE } else { "" };
    match &thread.name {
        Some(name) => format!("{}{kind} ({})", OutsideText::from(&**name), thread.number),
        None => format!("{kind}({})", thread.number),
    }
}

/// The name of threads of a process, and their number or how many there are.
fn threads_text(threads: &Threads, numbers: &[i64]) -> String {
    let Threads { pid, name, are_goroutines } = threads;
    match numbers {
        [number] => name_text(&ThreadName {
            pid: *pid,
            number: *number,
            name: name.clone(),
            is_goroutine: *are_goroutines,
        }),
        _ => {
            let name =
                name.as_ref().map_or_else(String::new, |it| OutsideText::from(&**it).to_string());
            let of = if pid.0 < 0 { String::new() } else { format!(" of {}", pid.0) };
            let kind = if *are_goroutines { "goroutines" } else { "threads" };
            format!("{name} ({} {kind}{of})", numbers.len())
        }
    }
}
