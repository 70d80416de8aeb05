//! Tables of recordings that queries look rows up in, kept in memory.

use crate::batch::Batch;
use crate::error::DatasetError;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes up to which tables are kept; the one in use stays in any case.
const MAX_BYTES: usize = 256 << 20;

/// Place of the file in the dataset, name of the table.
type Key = (usize, &'static str);

/// The tables that were used last, the last one behind.
#[derive(Default)]
pub(crate) struct Cache(Mutex<Vec<(Key, Arc<Batch>)>>);

impl Cache {
    /// Gives a table, read unless it is there.
    pub(crate) fn get(
        &self,
        key: Key,
        read: impl FnOnce() -> Result<Batch, DatasetError>,
    ) -> Result<Arc<Batch>, DatasetError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = match kept.iter().rposition(|(known, _)| *known == key) {
            Some(place) => kept.remove(place),
            None => (key, Arc::new(read()?)),
        };
        let batch = entry.1.clone();
        kept.push(entry);
        let mut bytes: usize = kept.iter().map(|(_, batch)| batch.bytes).sum();
        while bytes > MAX_BYTES && kept.len() > 1 {
            bytes -= kept.remove(0).1.bytes;
        }
        Ok(batch)
    }
}
