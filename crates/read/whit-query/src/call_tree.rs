//! `summary_tree(statement)`: a call tree with the weights of any call sites. Without a statement it is the view of this
//! name over all samples.

use crate::table_function::{Rows, TableFunction, needed, read, wrong};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Result, Statement};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use whit_tables::{Budget, Held};

const NAME: &str = "summary_tree";

/// Bytes of a node with its share of maps.
const NODE_BYTES: usize = 256;

const SAMPLES: &str = "SELECT event, callsite_id, weight FROM callsite_weight";

const SITE: &str = "SELECT c.recording_id, c.parent_id, c.depth, f.name, m.name FROM callsite c
    JOIN frame f ON f.id = c.frame_id JOIN mapping m ON m.id = f.mapping WHERE c.id = ?";

pub(crate) const SUMMARY_TREE: TableFunction = TableFunction {
    name: NAME,
    columns: &[
        "recording_id",
        "event",
        "id",
        "parent_id",
        "depth",
        "name",
        "mapping_name",
        "self_weight",
        "total_weight",
    ],
    arguments: &["statement"],
    run,
};

/// A call site as its table has it.
struct Site {
    recording: Value,
    parent: Option<i64>,
    depth: Value,
    name: Value,
    mapping: Value,
}

#[derive(Clone, Copy, Default)]
struct Weights {
    own: i64,
    total: i64,
}

struct Tree {
    /// By event and call site.
    weights: BTreeMap<(usize, i64), Weights>,
    events: Vec<Value>,
    sites: HashMap<i64, Site>,
    held: Held,
}

fn run(
    connection: &Connection,
    arguments: &[Option<String>],
    budget: Arc<Budget>,
) -> Result<Box<dyn Rows>> {
    let statement = arguments.first().and_then(Option::as_deref).unwrap_or(SAMPLES);
    let held = Held::new(budget);
    let mut tree =
        Tree { weights: BTreeMap::new(), events: Vec::new(), sites: HashMap::new(), held };
    tree.read(connection, statement)?;
    tree.climb(connection)?;
    let Tree { weights, events, sites, held } = tree;
    let weights: Vec<_> = weights.into_iter().collect();
    Ok(Box::new(Nodes { weights, events, sites, next: 0, _held: held }))
}

fn too_large() -> rusqlite::Error {
    wrong(NAME, "the sum of weights is too large for a number of 64 bits")
}

impl Tree {
    fn read(&mut self, connection: &Connection, statement: &str) -> Result<()> {
        read(connection, NAME, statement, |names, row| {
            let site: Option<i64> = row.get(needed(NAME, names, "callsite_id")?)?;
            let weight: Option<i64> = row.get(needed(NAME, names, "weight")?)?;
            let Some((site, weight)) = site.zip(weight) else { return Ok(()) };
            let event = names.iter().position(|name| name == "event");
            let event = event.map_or(Ok(Value::Null), |place| row.get(place))?;
            let event = self.event(event);
            let weights = self.weights.entry((event, site)).or_default();
            weights.own = weights.own.checked_add(weight).ok_or_else(too_large)?;
            self.count()
        })
    }

    fn event(&mut self, event: Value) -> usize {
        let known = self.events.iter().position(|known| *known == event);
        known.unwrap_or_else(|| {
            self.events.push(event);
            self.events.len() - 1
        })
    }

    fn count(&mut self) -> Result<()> {
        let bytes = (self.weights.len() + self.sites.len() + self.events.len()) * NODE_BYTES;
        match self.held.set(bytes) {
            true => Ok(()),
            false => {
                Err(wrong(NAME, "it holds the tree, and needs more memory than --memory allows"))
            }
        }
    }

    /// Adds each weight to the total of its call site and of all callers.
    fn climb(&mut self, connection: &Connection) -> Result<()> {
        let mut statement = connection.prepare(SITE)?;
        let leaves: Vec<_> = self.weights.iter().map(|(node, it)| (*node, it.own)).collect();
        for ((event, leaf), weight) in leaves {
            let mut next = Some(leaf);
            while let Some(id) = next {
                let weights = self.weights.entry((event, id)).or_default();
                weights.total = weights.total.checked_add(weight).ok_or_else(too_large)?;
                next = match self.sites.entry(id) {
                    Entry::Occupied(known) => known.get().parent,
                    Entry::Vacant(new) => new.insert(site(&mut statement, id)?).parent,
                };
            }
            self.count()?;
        }
        Ok(())
    }
}

fn site(statement: &mut Statement<'_>, id: i64) -> Result<Site> {
    let site = statement.query_row([id], |row| {
        let (recording, parent, depth) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Site { recording, parent, depth, name: row.get(3)?, mapping: row.get(4)? })
    });
    site.optional()?.ok_or_else(|| {
        let problem = format!("there is no call site {id}: numbers of call sites hold for one run");
        wrong(NAME, problem)
    })
}

struct Nodes {
    weights: Vec<((usize, i64), Weights)>,
    events: Vec<Value>,
    sites: HashMap<i64, Site>,
    next: usize,
    _held: Held,
}

impl Rows for Nodes {
    fn advance(&mut self) -> Result<bool> {
        self.next += 1;
        Ok(self.next <= self.weights.len())
    }

    fn value(&self, column: usize) -> Value {
        let Some(((event, id), weights)) = self.weights.get(self.next.wrapping_sub(1)) else {
            return Value::Null;
        };
        let Some(site) = self.sites.get(id) else { return Value::Null };
        match column {
            0 => site.recording.clone(),
            1 => self.events[*event].clone(),
            2 => Value::Integer(*id),
            3 => site.parent.map_or(Value::Null, Value::Integer),
            4 => site.depth.clone(),
            5 => site.name.clone(),
            6 => site.mapping.clone(),
            7 => Value::Integer(weights.own),
            8 => Value::Integer(weights.total),
            _ => Value::Null,
        }
    }
}
