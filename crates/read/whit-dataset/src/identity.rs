//! Which recording it is, and when it began.

use crate::error::DatasetError;
use crate::layout::Place;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use whit_tables::{Database, MAX_RECORDINGS, Value, Wanted, find};
use whit_types::civil;

const DAY_NS: u64 = 86_400_000_000_000;

/// A recording, told by its header.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Digits over all columns of `recording` but its number and path.
    pub(crate) digest: String,
    /// The number that it takes unless another recording has it.
    pub(crate) first_id: i64,
    pub(crate) host: Option<String>,
    pub(crate) start_ns: Option<u64>,
    /// Time of day of the last record.
    pub(crate) end: Option<SystemTime>,
    pub(crate) samples: u64,
}

impl Identity {
    /// Reads the header of the only recording.
    pub(crate) fn of(database: &Database) -> Result<Identity, DatasetError> {
        let Some(table) = find("recording") else { return Err(no_header()) };
        let mut cursor = table.open(database, &Wanted::everything());
        if !cursor.advance()? {
            return Err(no_header());
        }
        let mut hash = Sha256::new();
        let (mut host, mut numbers) = (None, Numbers::default());
        for (place, column) in table.columns().iter().enumerate() {
            let value = cursor.value(place);
            match (column.name, &value) {
                ("host", Value::Text(text)) => host = Some(text.to_string()),
                ("start_ns", Value::Int(ns)) => numbers.start = u64::try_from(*ns).ok(),
                ("first_ts", Value::Int(ns)) => numbers.first = u64::try_from(*ns).ok(),
                ("last_ts", Value::Int(ns)) => numbers.last = u64::try_from(*ns).ok(),
                ("samples", Value::Int(samples)) => numbers.samples = (*samples).unsigned_abs(),
                _ => {}
            }
            if !matches!(column.name, "id" | "path") {
                hash.update(format!("{}={value:?}\0", column.name));
            }
        }
        let bytes: [u8; 32] = hash.finalize().into();
        let digest = bytes.iter().fold(String::new(), |mut text, byte| {
            // Writing into a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        let number =
            bytes.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let first_id = (number % MAX_RECORDINGS as u64) as i64;
        let (start_ns, end, samples) = (numbers.start, numbers.end(), numbers.samples);
        Ok(Identity { digest, first_id, host, start_ns, end, samples })
    }

    /// Where its files stand. Without a time of day it is the day on which the recording was last written.
    pub(crate) fn place(&self, modified: SystemTime) -> Place {
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let days = self.start_ns.map_or(since.as_secs() / 86_400, |ns| ns / DAY_NS);
        let (year, month, day) = civil(days);
        let date = format!("{year:04}-{:02}-{day:02}", month + 1);
        Place { host: self.host.clone(), date }
    }
}

#[derive(Default)]
struct Numbers {
    start: Option<u64>,
    first: Option<u64>,
    last: Option<u64>,
    samples: u64,
}

impl Numbers {
    fn end(&self) -> Option<SystemTime> {
        let length = self.last?.saturating_sub(self.first?);
        UNIX_EPOCH.checked_add(Duration::from_nanos(self.start?.checked_add(length)?))
    }
}

fn no_header() -> DatasetError {
    DatasetError::Part { path: "the recording".to_owned(), problem: "it has no header".to_owned() }
}
