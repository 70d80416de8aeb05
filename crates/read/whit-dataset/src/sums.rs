//! `sample_sum` of a dataset: groups of rows of `sample`, added up by several threads.

use crate::batch::{Batch, ColumnValues, Values};
use crate::inner::Inner;
use crate::part_reader::PartReader;
use crate::schema::partitions;
use crate::sum_tasks::{Task, Tasks};
use rustc_hash::FxHashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use whit_tables::{AnyTable, Cursor, Held, SAMPLE, SAMPLE_SUM, TableError, Value, Wanted};

/// Columns of numbers by which rows may be told apart.
const NUMBERS: [&str; 5] = ["utid", "upid", "cpu", "cgroup_id", "callsite_id"];

/// Texts by which they may be told apart.
const TEXTS: [&str; 2] = ["event", "comm"];

/// No number: all of the recording are positive.
const NULL: i64 = i64::MIN;

/// Stands for a text that is null.
const NO_TEXT: u32 = u32::MAX;

/// Memory of a sum, with its share of the table's empty places.
const SUM_BYTES: usize = 2 * size_of::<(Key, Sum)>();

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Key {
    part: usize,
    texts: [u32; TEXTS.len()],
    numbers: [i64; NUMBERS.len()],
}

#[derive(Clone, Copy, Default, Debug)]
struct Sum {
    weight: i64,
    samples: i64,
}

impl Sum {
    fn add(&mut self, other: Sum) -> Result<(), TableError> {
        self.weight = self.weight.checked_add(other.weight).ok_or(TableError::Overflow)?;
        self.samples += other.samples;
        Ok(())
    }
}

type Sums = FxHashMap<Key, Sum>;

/// Texts of all files, each once.
#[derive(Default)]
struct Texts {
    values: Vec<Arc<str>>,
    by_value: FxHashMap<Arc<str>, u32>,
}

impl Texts {
    fn number(&mut self, text: &Arc<str>) -> u32 {
        let next = self.values.len() as u32;
        *self.by_value.entry(text.clone()).or_insert_with(|| {
            self.values.push(text.clone());
            next
        })
    }
}

/// The columns that are read of `sample`, by their places there.
struct Reading {
    table: &'static dyn AnyTable,
    /// As the sums are wanted; the columns are those of `sample`.
    wanted: Wanted,
    ts: Option<usize>,
    weight: Option<usize>,
    texts: [Option<usize>; TEXTS.len()],
    numbers: [Option<usize>; NUMBERS.len()],
}

impl Reading {
    fn of(wanted: &Wanted) -> Reading {
        let table = SAMPLE;
        let (columns, sums) = (table.columns(), SAMPLE_SUM.columns());
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let is_used = |name: &str| {
            let at = sums.iter().position(|column| column.name == name);
            at.is_some_and(|at| wanted.uses(at))
        };
        let used = |name: &str| place(name).filter(|_| is_used(name));
        let (ts, weight) = (place("ts"), place("weight"));
        let (texts, numbers) = (TEXTS.map(used), NUMBERS.map(used));
        let has_range = wanted.from.is_some() || wanted.to.is_some();
        let read = texts.iter().chain(&numbers).flatten().chain(&weight);
        let read = read.chain(ts.as_ref().filter(|_| has_range));
        let columns = read.fold(0, |bits, place| bits | 1 << place);
        let wanted = Wanted { columns, ..wanted.clone() };
        Reading { table, wanted, ts, weight, texts, numbers }
    }

    fn add_group(
        &self,
        part: usize,
        batch: &Batch,
        texts: &Mutex<Texts>,
        sums: &mut Sums,
    ) -> Result<(), TableError> {
        let column = |place: usize| batch.columns.get(place).and_then(Option::as_ref);
        let times = self.ts.and_then(column);
        let numbers = self.numbers.map(|place| place.and_then(column));
        let text_numbers = self.texts.map(|place| {
            let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
            place.and_then(column).map(|column| numbers_of(column, &mut texts))
        });
        let weights = self.weight.and_then(column);
        for row in 0..batch.rows {
            if times.is_some_and(|times| !self.is_in_range(int(times, row))) {
                continue;
            }
            let numbers = numbers.map(|column| column.map_or(NULL, |column| int(column, row)));
            let text = |of: &Option<Vec<u32>>| of.as_ref().map_or(NO_TEXT, |of| of[row]);
            let texts = std::array::from_fn(|at| text(&text_numbers[at]));
            let weight = weights.map(|weights| int(weights, row)).filter(|it| *it != NULL);
            let sum = sums.entry(Key { part, texts, numbers }).or_default();
            sum.add(Sum { weight: weight.unwrap_or(0), samples: 1 })?;
        }
        Ok(())
    }

    fn is_in_range(&self, ts: i64) -> bool {
        self.wanted.from.is_none_or(|from| ts >= from) && self.wanted.to.is_none_or(|to| ts <= to)
    }
}

fn int(column: &ColumnValues, row: usize) -> i64 {
    match &column.values {
        Values::Ints(values) if column.is_set[row] => values[row],
        _ => NULL,
    }
}

/// The number of the text of each row. Equal texts of a group share their bytes, and mostly follow each other.
fn numbers_of(column: &ColumnValues, texts: &mut Texts) -> Vec<u32> {
    let Values::Texts(values) = &column.values else { return vec![NO_TEXT; column.is_set.len()] };
    let mut last: Option<(&Arc<str>, u32)> = None;
    let number = |(text, is_set): (_, &bool)| match last {
        _ if !is_set => NO_TEXT,
        Some((known, number)) if Arc::ptr_eq(known, text) => number,
        _ => last.insert((text, texts.number(text))).1,
    };
    values.iter().zip(&column.is_set).map(number).collect()
}

/// Where the value of a column of the sums comes from.
#[derive(Clone, Copy)]
enum Origin {
    Recording,
    Text(usize),
    Number(usize),
    Weight,
    Samples,
    First,
    Last,
    Host,
    Date,
}

fn origin(name: &str) -> Option<Origin> {
    let place = |of: &[&str]| of.iter().position(|it| *it == name);
    Some(match name {
        "recording_id" => Origin::Recording,
        "weight" => Origin::Weight,
        "samples" => Origin::Samples,
        "from_ts" => Origin::First,
        "to_ts" => Origin::Last,
        "host" => Origin::Host,
        "date" => Origin::Date,
        _ => place(&TEXTS).map(Origin::Text).or_else(|| place(&NUMBERS).map(Origin::Number))?,
    })
}

struct SumCursor {
    inner: Arc<Inner>,
    reading: Reading,
    tasks: Tasks<PartReader>,
    origins: Vec<Option<Origin>>,
    texts: Texts,
    held: Option<Mutex<Held>>,
    sums: std::vec::IntoIter<(Key, Sum)>,
    current: Option<(Key, Sum)>,
}

/// Adds up the samples of the wanted files.
pub(crate) fn open(inner: &Arc<Inner>, wanted: &Wanted) -> Box<dyn Cursor> {
    let reading = Reading::of(wanted);
    let mut columns = SAMPLE_SUM.columns();
    columns.extend(partitions(SAMPLE_SUM));
    Box::new(SumCursor {
        tasks: Tasks::of(inner.wanted_parts(wanted)),
        origins: columns.iter().map(|column| origin(column.name)).collect(),
        texts: Texts::default(),
        held: wanted.budget.clone().map(|budget| Mutex::new(Held::new(budget))),
        sums: Vec::new().into_iter(),
        current: None,
        reading,
        inner: inner.clone(),
    })
}

impl SumCursor {
    /// Adds up groups until there are no more, or their sums fill the memory. False behind the last.
    fn fill(&mut self) -> Result<bool, TableError> {
        if let Some(held) = &mut self.held {
            held.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        }
        let texts = Mutex::new(std::mem::take(&mut self.texts));
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let work = || self.work(&texts);
        let done: Vec<Result<Sums, TableError>> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            let died = || TableError::Load {
                path: "the dataset".to_owned(),
                problem: "a thread that read it ended unexpectedly; please report this".to_owned(),
            };
            let others =
                others.into_iter().map(|other| other.join().unwrap_or_else(|_| Err(died())));
            std::iter::once(own).chain(others).collect()
        });
        self.texts = texts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut all = Sums::default();
        for sums in done {
            for (key, sum) in sums? {
                all.entry(key).or_default().add(sum)?;
            }
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        self.sums = all.into_iter();
        Ok(!self.sums.as_slice().is_empty() || !self.tasks.is_done())
    }

    fn work(&self, texts: &Mutex<Texts>) -> Result<Sums, TableError> {
        let (mut sums, mut counted) = (Sums::default(), 0);
        let open = |part| self.reading.open(&self.inner, part);
        let groups_of = |reader: &PartReader| self.reading.groups(reader);
        while let Some(Task { part, reader, groups }) = self.tasks.next(&open, &groups_of)? {
            let mut groups = groups.into_iter();
            while let Some(group) = groups.next() {
                if self.inner.cancel.is_cancelled() {
                    return Err(TableError::Cancelled);
                }
                let batch = reader.read(group, &self.reading.wanted)?;
                self.reading.add_group(part, &batch, texts, &mut sums)?;
                let more = sums.len() - counted;
                counted = sums.len();
                if more > 0 && !self.has_room(more * SUM_BYTES) {
                    self.tasks.give_back(Task { part, reader, groups: groups.collect() });
                    return Ok(sums);
                }
            }
        }
        Ok(sums)
    }

    fn has_room(&self, bytes: usize) -> bool {
        let Some(held) = &self.held else { return true };
        held.lock().unwrap_or_else(PoisonError::into_inner).take_more(bytes)
    }
}

impl Reading {
    fn open(&self, inner: &Inner, part: usize) -> Result<PartReader, TableError> {
        let path = inner.parts[part].path(&inner.root, self.table.name());
        Ok(PartReader::open(&path, self.table)?)
    }

    fn groups(&self, reader: &PartReader) -> Vec<usize> {
        reader.groups(&self.wanted)
    }
}

impl Cursor for SumCursor {
    fn advance(&mut self) -> Result<bool, TableError> {
        loop {
            self.current = self.sums.next();
            if self.current.is_some() {
                return Ok(true);
            }
            if self.inner.cancel.is_cancelled() {
                return Err(TableError::Cancelled);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }

    fn value(&self, column: usize) -> Value {
        let Some((key, sum)) = &self.current else { return Value::Null };
        let Some(Some(origin)) = self.origins.get(column) else { return Value::Null };
        let part = &self.inner.parts[key.part];
        let or_null = |number: Option<i64>| number.map_or(Value::Null, Value::Int);
        let text = |text: Option<&Arc<str>>| text.map_or(Value::Null, |it| Value::Text(it.clone()));
        match *origin {
            Origin::Recording => Value::Int(part.id),
            Origin::Text(place) => text(self.texts.values.get(key.texts[place] as usize)),
            Origin::Number(place) => or_null(Some(key.numbers[place]).filter(|it| *it != NULL)),
            Origin::Weight => Value::Int(sum.weight),
            Origin::Samples => Value::Int(sum.samples),
            Origin::First => or_null(self.reading.wanted.from),
            Origin::Last => or_null(self.reading.wanted.to),
            Origin::Host => {
                part.place.host.as_deref().map_or(Value::Null, |it| Value::Text(it.into()))
            }
            Origin::Date => Value::Text(part.place.date.as_str().into()),
        }
    }
}
