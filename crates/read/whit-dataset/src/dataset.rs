//! A dataset as a store of rows.

use crate::cache::Cache;
use crate::cursor;
use crate::error::{DatasetError, shown};
use crate::inner::Inner;
use crate::layout::{LAST_TABLE, Part, parts};
use crate::schema::partitions;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use whit_tables::{AnyTable, Cancel, ColumnInfo, Cursor, Defect, Store, Wanted};

/// Strange files that are named; of more there is only the number.
const MAX_NAMED: usize = 3;

/// A dataset as it was when it was opened.
#[derive(Clone)]
pub struct Dataset {
    inner: Arc<Inner>,
    defects: Vec<Defect>,
}

impl Dataset {
    /// Looks which recordings are there.
    ///
    /// # Errors
    /// The folder is no dataset, or two recordings have one number.
    pub fn open(root: &Path, cancel: Cancel) -> Result<Dataset, DatasetError> {
        let (parts_of_last, strange) = parts(root, LAST_TABLE)?;
        if parts_of_last.is_empty() {
            return Err(DatasetError::Absent(shown(root)));
        }
        let mut seen: BTreeMap<i64, &Part> = BTreeMap::new();
        for part in &parts_of_last {
            if let Some(other) = seen.insert(part.id, part) {
                let path = |part: &Part| shown(&part.path(root, LAST_TABLE));
                return Err(DatasetError::SameNumber {
                    id: part.id,
                    one: path(other),
                    other: path(part),
                });
            }
        }
        let mut defects: Vec<_> =
            strange.iter().take(MAX_NAMED).map(|path| strange_file(path)).collect();
        if strange.len() > MAX_NAMED {
            let more = strange.len() - MAX_NAMED;
            defects.push(Defect::Dataset(format!("{more} more files are left out")));
        }
        let (samples, _) = parts(root, "sample")?;
        let orphans = samples.iter().filter(|part| !seen.contains_key(&part.id)).count();
        if orphans > 0 {
            defects.push(Defect::Dataset(format!(
                "{}: {orphans} recordings are not whole, and are left out: their export runs or was killed, or their copy is \
                 not complete. Export or copy them again",
                shown(root)
            )));
        }
        let cache = Cache::default();
        let inner = Inner { root: root.to_owned(), parts: parts_of_last, cancel, cache };
        Ok(Dataset { inner: Arc::new(inner), defects })
    }

    /// Number of recordings.
    pub fn len(&self) -> usize {
        self.inner.parts.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.inner.parts.is_empty()
    }
}

fn strange_file(path: &Path) -> Defect {
    Defect::Dataset(format!(
        "{}: it is left out, since whit names files otherwise; other engines read it: take it away",
        shown(path)
    ))
}

impl Store for Dataset {
    fn partitions(&self, table: &dyn AnyTable) -> Vec<ColumnInfo> {
        partitions(table)
    }

    fn open(&self, table: &'static dyn AnyTable, wanted: &Wanted) -> Box<dyn Cursor> {
        cursor::open(&self.inner, table, wanted)
    }

    fn cancel(&self) -> &Cancel {
        &self.inner.cancel
    }

    fn defects(&self) -> Vec<Defect> {
        self.defects.clone()
    }
}
