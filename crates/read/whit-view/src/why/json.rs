//! The path as JSON.

use super::{activity_name, unknown_text};
use crate::json_strings;
use crate::warning::warning_text;
use serde::Serialize;
use std::io::{self, Write};
use whit_profile::switches::WaitClass;
use whit_why::{Activity, Explained, Group, Piece, Place, Places, Why};

/// Version of the JSON form; see [`write_json`].
pub const VERSION: u32 = 2;

/// Writes the path as JSON, without a line end after it.
///
/// # Errors
/// Writing to `out` failed.
pub fn write_json(out: &mut impl Write, why: &Why) -> io::Result<()> {
    json_strings::write(out, &Document::of(why))
}

/// `whit why --json`: one object. Members may be added; `version` grows when one changes its meaning or goes away. Times
/// are in nanoseconds by the clock of the recording.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Document {
    /// `whit-why`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    /// That of all intervals.
    duration_ns: u64,
    /// Time in pieces that are unknown.
    unknown_ns: u64,
    /// The pieces of all intervals added up, the longest first. Their lengths add up to `duration_ns`.
    groups: Vec<JsonGroup>,
    /// One, or those of several requests, the longest first.
    intervals: Vec<JsonInterval>,
    warnings: Vec<String>,
}

/// An interval with its path.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonInterval {
    thread: Thread,
    from_ns: u64,
    to_ns: u64,
    duration_ns: u64,
    /// That of a request, as text.
    key: Option<String>,
    /// The path in order of time, without a gap.
    pieces: Vec<JsonPiece>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Thread {
    /// -1 where no record tells it.
    pid: i32,
    /// For a goroutine, its number.
    tid: i64,
    /// Last command name.
    name: Option<String>,
    goroutine: bool,
}

/// A wait that another thread explains.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonWait {
    /// Process of the thread that waits.
    pid: i32,
    /// Threads that wait; numbers of goroutines.
    tids: Vec<i64>,
    /// Its last command name.
    name: Option<String>,
    goroutine: bool,
    class: &'static str,
    /// The function in which it waits.
    place: Option<String>,
    /// The file, socket, lock or the like that is waited for.
    object: Option<String>,
}

/// A thread that ran while another one waited for its CPU.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Behind {
    thread: Thread,
    duration_ns: u64,
}

/// A request (`whit record --request`).
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonRequest {
    name: String,
    /// As text.
    key: Option<String>,
    /// Time that the pieces of the group were in it.
    duration_ns: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Function {
    name: String,
    /// Weight of the samples whose innermost function of the program it is.
    weight: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonGroup {
    duration_ns: u64,
    pieces: u64,
    longest_ns: u64,
    /// -1 with several intervals, for threads of any process.
    pid: i32,
    /// Last command name of the threads.
    name: Option<String>,
    /// Numbers of goroutines, where they are.
    tids: Vec<i64>,
    goroutine: bool,
    /// `running`, `preempted`, `throttled`, `run-queue`, `runnable` (a goroutine without a thread), `waiting`,
    /// `still-waiting`, `unknown`.
    activity: &'static str,
    /// Class of a wait.
    class: Option<&'static str>,
    /// Why it is unknown.
    reason: Option<&'static str>,
    /// The function in which the threads wait.
    place: Option<String>,
    /// The file, socket, lock or the like that is waited for.
    object: Option<String>,
    /// The wait that the group explains; `null` for the thread of the interval.
    explains: Option<JsonWait>,
    /// Threads that ended the waits, where the path does not lead to them.
    wakers: Vec<Thread>,
    /// Threads that ran on the CPU for which the threads waited, the longest first.
    behind: Vec<Behind>,
    /// Requests that the threads were in, the longest first.
    requests: Vec<JsonRequest>,
    /// Functions of time on a CPU, the heaviest first.
    functions: Vec<Function>,
    /// Weight of all samples on the pieces.
    sampled_weight: u64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct JsonPiece {
    from_ns: u64,
    duration_ns: u64,
    /// For a goroutine, its number.
    tid: i64,
    goroutine: bool,
    activity: &'static str,
    class: Option<&'static str>,
    reason: Option<&'static str>,
    place: Option<String>,
    /// The file, socket, lock or the like that is waited for.
    object: Option<String>,
    explains: Option<JsonWait>,
    /// The thread or goroutine that ended the wait, where the path does not lead to it.
    waker_tid: Option<i64>,
}

pub(crate) fn class(activity: Activity) -> Option<&'static str> {
    match activity {
        Activity::Waiting(class) | Activity::StillWaiting(class) => Some(WaitClass::name(class)),
        _ => None,
    }
}

pub(crate) fn reason(activity: Activity) -> Option<&'static str> {
    match activity {
        Activity::Unknown(unknown) => Some(unknown_text(unknown)),
        _ => None,
    }
}

fn text(name: Option<impl AsRef<str>>) -> Option<String> {
    name.map(|name| name.as_ref().to_owned())
}

fn thread(why: &Why, number: u32) -> Thread {
    let thread = why.thread_name(number);
    Thread {
        pid: thread.pid.0,
        tid: thread.number,
        name: text(thread.name),
        goroutine: thread.is_goroutine,
    }
}

fn group(why: &Why, group: &Group) -> JsonGroup {
    let key = &group.key;
    JsonGroup {
        duration_ns: group.duration_ns,
        pieces: group.pieces,
        longest_ns: group.longest_ns,
        pid: key.threads.pid.0,
        name: text(key.threads.name.as_ref()),
        tids: group.threads.iter().map(|number| why.thread_name(*number).number).collect(),
        goroutine: key.threads.are_goroutines,
        activity: activity_name(key.activity),
        class: class(key.activity),
        reason: reason(key.activity),
        place: text(key.place.function.as_ref()),
        object: text(key.place.object.as_ref()),
        explains: key.explains.as_ref().map(|wait| JsonWait {
            pid: wait.threads.pid.0,
            tids: group.explained.iter().map(|it| why.thread_name(*it).number).collect(),
            name: text(wait.threads.name.as_ref()),
            goroutine: wait.threads.are_goroutines,
            class: wait.class.name(),
            place: text(wait.place.function.as_ref()),
            object: text(wait.place.object.as_ref()),
        }),
        wakers: group.wakers.iter().map(|number| thread(why, *number)).collect(),
        behind: group
            .behind
            .iter()
            .map(|(number, ns)| Behind { thread: thread(why, *number), duration_ns: *ns })
            .collect(),
        requests: group
            .requests
            .iter()
            .map(|(name, key, ns)| JsonRequest {
                name: name.to_string(),
                key: key.as_ref().map(ToString::to_string),
                duration_ns: *ns,
            })
            .collect(),
        functions: group
            .functions
            .iter()
            .map(|(name, weight)| Function { name: name.to_string(), weight: *weight })
            .collect(),
        sampled_weight: group.sampled,
    }
}

fn interval(why: &Why, places: &mut Places, of: &Explained) -> JsonInterval {
    JsonInterval {
        thread: thread(why, of.thread),
        from_ns: of.from.0,
        to_ns: of.to.0,
        duration_ns: of.duration_ns(),
        key: of.key.as_ref().map(ToString::to_string),
        pieces: of.path.pieces.iter().map(|it| piece(why, places, (of, it))).collect(),
    }
}

fn piece(why: &Why, places: &mut Places, (of, piece): (&Explained, &Piece)) -> JsonPiece {
    let Place { function, object } = places.of(&why.source, piece.site);
    let thread = why.thread_name(piece.thread);
    JsonPiece {
        from_ns: piece.from.0,
        duration_ns: piece.duration_ns(),
        tid: thread.number,
        goroutine: thread.is_goroutine,
        activity: activity_name(piece.activity),
        class: class(piece.activity),
        reason: reason(piece.activity),
        place: text(function),
        object: text(object),
        explains: of.path.hand_over_of(piece).map(|wait| {
            let of = why.thread_name(wait.thread);
            let Place { function, object } = places.of(&why.source, wait.site);
            JsonWait {
                pid: of.pid.0,
                tids: vec![of.number],
                name: text(of.name),
                goroutine: of.is_goroutine,
                class: wait.class.name(),
                place: text(function),
                object: text(object),
            }
        }),
        waker_tid: piece.waker.map(|waker| why.thread_name(waker).number),
    }
}

impl Document {
    fn of(why: &Why) -> Document {
        let mut places = Places::default();
        let is_unknown = |group: &&Group| matches!(group.key.activity, Activity::Unknown(_));
        Document {
            format: "whit-why",
            version: VERSION,
            duration_ns: why.duration_ns(),
            unknown_ns: why.groups.iter().filter(is_unknown).map(|group| group.duration_ns).sum(),
            groups: why.groups.iter().map(|it| group(why, it)).collect(),
            intervals: why.intervals.iter().map(|it| interval(why, &mut places, it)).collect(),
            warnings: why.warnings().iter().map(|it| warning_text(it).into_exact()).collect(),
        }
    }
}
