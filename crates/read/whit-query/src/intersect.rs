//! `interval_intersect(left, right)`: the times at which an interval of each side holds.

use crate::table_function::{Rows, TableFunction, needed, read, wrong};
use rusqlite::types::Value;
use rusqlite::{Connection, Result};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use whit_tables::{Budget, Held};

const NAME: &str = "interval_intersect";

/// Bytes of an interval with its share of containers.
const INTERVAL_BYTES: usize = 2 * size_of::<Interval>();

pub(crate) const INTERVAL_INTERSECT: TableFunction = TableFunction {
    name: NAME,
    columns: &["ts", "dur", "key", "id_0", "id_1"],
    arguments: &["left_rows", "right_rows"],
    run,
};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Interval {
    key: usize,
    start: i64,
    is_right: bool,
    end: i64,
    id: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shared {
    start: i64,
    end: i64,
    key: usize,
    left: Option<i64>,
    right: Option<i64>,
}

/// Texts of keys, so that they sort; a real number is its own text.
type Keys = BTreeMap<String, usize>;

struct Reader {
    keys: Keys,
    values: Vec<Value>,
    intervals: Vec<Interval>,
    held: Held,
}

fn run(
    connection: &Connection,
    arguments: &[Option<String>],
    budget: Arc<Budget>,
) -> Result<Box<dyn Rows>> {
    let [Some(left), Some(right)] = arguments else {
        return Err(wrong(
            NAME,
            "it takes two statements or tables, each with the columns ts and dur",
        ));
    };
    let (keys, held) = (Keys::new(), Held::new(budget));
    let mut reader = Reader { keys, values: Vec::new(), intervals: Vec::new(), held };
    reader.read(connection, left, false)?;
    reader.read(connection, right, true)?;
    reader.intervals.sort_unstable();
    let Reader { values, intervals, held, .. } = reader;
    Ok(Box::new(Intersection { values, sweep: Sweep::new(intervals), row: None, _held: held }))
}

impl Reader {
    fn read(&mut self, connection: &Connection, source: &str, is_right: bool) -> Result<()> {
        read(connection, NAME, source, |names, row| {
            let (ts, dur) = (needed(NAME, names, "ts")?, needed(NAME, names, "dur")?);
            let whole = |place: usize| match row.get(place)? {
                Value::Integer(number) => Ok(Some(number)),
                Value::Null => Ok(None),
                _ => Err(wrong(NAME, format_args!("{} is no whole number", names[place]))),
            };
            // An interval without an end has no length to share.
            let Some((start, dur)) = whole(ts)?.zip(whole(dur)?) else { return Ok(()) };
            if dur < 0 {
                return Err(wrong(NAME, "dur is negative"));
            }
            let at = |name: &str| names.iter().position(|it| it == name);
            let id = at("id").map(whole).transpose()?.flatten();
            let key = at("key").map_or(Ok(Value::Null), |place| row.get(place))?;
            let key = self.key(key);
            let end = start.saturating_add(dur);
            self.intervals.push(Interval { key, start, is_right, end, id });
            let bytes = (self.intervals.capacity() + self.keys.len()) * INTERVAL_BYTES;
            match self.held.set(bytes) {
                true => Ok(()),
                false => Err(wrong(
                    NAME,
                    "it holds both sides, and needs more memory than --memory allows",
                )),
            }
        })
    }

    fn key(&mut self, key: Value) -> usize {
        let next = self.values.len();
        let number = *self.keys.entry(format!("{key:?}")).or_insert(next);
        if number == next {
            self.values.push(key);
        }
        number
    }
}

/// Goes over all intervals in the order of their beginnings, and keeps those that hold.
struct Sweep {
    intervals: std::vec::IntoIter<Interval>,
    key: usize,
    left: Vec<Interval>,
    right: Vec<Interval>,
    found: VecDeque<Shared>,
}

impl Sweep {
    fn new(intervals: Vec<Interval>) -> Sweep {
        let intervals = intervals.into_iter();
        Sweep { intervals, key: 0, left: Vec::new(), right: Vec::new(), found: VecDeque::new() }
    }

    fn next(&mut self) -> Option<Shared> {
        loop {
            if let Some(shared) = self.found.pop_front() {
                return Some(shared);
            }
            let interval = self.intervals.next()?;
            self.take(interval);
        }
    }

    fn take(&mut self, new: Interval) {
        if new.key != self.key {
            self.left.clear();
            self.right.clear();
            self.key = new.key;
        }
        let (own, others) = match new.is_right {
            true => (&mut self.right, &mut self.left),
            false => (&mut self.left, &mut self.right),
        };
        // A moment holds as long as nothing later begins.
        others.retain(|other| other.end > new.start || other.start == new.start);
        self.found.extend(others.iter().map(|other| {
            let (left, right) = if new.is_right { (other.id, new.id) } else { (new.id, other.id) };
            Shared { start: new.start, end: new.end.min(other.end), key: new.key, left, right }
        }));
        own.push(new);
    }
}

struct Intersection {
    values: Vec<Value>,
    sweep: Sweep,
    row: Option<Shared>,
    _held: Held,
}

impl Rows for Intersection {
    fn advance(&mut self) -> Result<bool> {
        self.row = self.sweep.next();
        Ok(self.row.is_some())
    }

    fn value(&self, column: usize) -> Value {
        let Some(row) = self.row else { return Value::Null };
        let id = |id: Option<i64>| id.map_or(Value::Null, Value::Integer);
        match column {
            0 => Value::Integer(row.start),
            1 => Value::Integer(row.end.saturating_sub(row.start)),
            2 => self.values[row.key].clone(),
            3 => id(row.left),
            4 => id(row.right),
            _ => Value::Null,
        }
    }
}
