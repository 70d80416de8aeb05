//! Why there is no answer.

use crate::history::MAX_INTERVALS;
use whit_profile::LoadError;
use whit_types::Tid;

/// A question without an answer.
#[derive(Debug, thiserror::Error)]
pub enum WhyError {
    /// The recording could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It has no context switches.
    #[error("{0} has no context switches: record with whit record --engine=bpf --wakeups")]
    NoSwitches(String),
    /// It has context switches without wake-ups.
    #[error(
        "{0} has no wake-ups, which lead from a wait to the thread that ended it: record with whit record --engine=bpf \
         --wakeups"
    )]
    NoWakeUps(String),
    /// It has no requests.
    #[error("{0} has no requests: record with whit record --request NAME=BINARY:FUNCTION")]
    NoRequests(String),
    /// It has no goroutines.
    #[error("{0} has no goroutines: record a Go program with whit record --goroutines")]
    NoGoroutines(String),
    /// Its goroutines wait too often.
    #[error("{path} has more than {max} waits of goroutines: record a shorter time")]
    TooManyGoroutineWaits {
        /// The recording.
        path: String,
        /// Waits that are taken.
        max: usize,
    },
    /// It has no requests of this name.
    #[error("{path} has no requests '{name}': it has {known}")]
    NoRequestName {
        /// The recording.
        path: String,
        /// The name that was asked for.
        name: String,
        /// Names that it has.
        known: String,
    },
    /// It has fewer requests of this name.
    #[error(
        "there is no request {name}:{rank}: {count} requests '{name}' began and ended while nothing was lost"
    )]
    NoRequestRank {
        /// The name that was asked for.
        name: String,
        /// How many there are.
        count: usize,
        /// The rank that was asked for.
        rank: usize,
    },
    /// None has such a key.
    #[error(
        "none of {recorded} requests '{name}' has '{key}' in its key: whit requests --slowest 20 shows keys"
    )]
    NoRequestKey {
        /// The name that was asked for.
        name: String,
        /// The text that was asked for.
        key: String,
        /// How many requests there are.
        recorded: usize,
    },
    /// None took so long.
    #[error("no request '{name}' took so long: the slowest took {longest}")]
    NoneSoLong {
        /// The name that was asked for.
        name: String,
        /// The longest duration.
        longest: String,
    },
    /// The paths of all requests have too many pieces.
    #[error(
        "the paths of these requests have more than {MAX_INTERVALS} pieces: explain fewer with --slowest N"
    )]
    TooManyPieces,
    /// There is no such thread.
    #[error("{path} has no context switch of thread {number}: whit report --tasks lists the threads", number = tid.0)]
    NoThread {
        /// The recording.
        path: String,
        /// The thread.
        tid: Tid,
    },
    /// There is no such goroutine.
    #[error(
        "{path} has no park and no run of goroutine {number}: whit goroutines --worst 20 shows numbers"
    )]
    NoGoroutine {
        /// The recording.
        path: String,
        /// That of Go's runtime.
        number: u64,
    },
    /// Several processes have such a goroutine.
    #[error("several processes in {path} have a goroutine {number}: name a thread with --tid")]
    SeveralGoroutines {
        /// The recording.
        path: String,
        /// That of Go's runtime.
        number: u64,
    },
    /// It has not one process alone.
    #[error(
        "{0} has not the switches of one process alone: name a thread with --tid (whit report --tasks lists them)"
    )]
    SeveralProcesses(String),
    /// The time has several parts.
    #[error("one part of the time is explained: give --time one START,STOP, or one share")]
    SeveralTimes,
    /// The thread has no run or wait in the time.
    #[error(
        "the thread has no run and no wait in this time: it is recorded from {from} s to {to} s"
    )]
    NotInTime {
        /// In seconds.
        from: String,
        /// In seconds.
        to: String,
    },
    /// There are too many intervals.
    #[error(
        "the recording has more than {MAX_INTERVALS} runs and waits: choose a part of it with --time"
    )]
    TooMany,
    /// The threads of requests have too many.
    #[error(
        "threads with requests have more than {MAX_INTERVALS} runs and waits: whit why --request NAME explains one request"
    )]
    TooManyOfRequests,
}
