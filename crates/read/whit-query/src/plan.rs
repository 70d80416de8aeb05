//! From constraints of a query to those of a reader: the answer of `xBestIndex`, and its way to `xFilter`.

use whit_tables::{ColumnInfo, ColumnRole, Size, Wanted};

/// How a column is compared with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Comparison {
    Equal,
    AtLeast,
    Above,
    AtMost,
    Below,
}

/// A constraint that the reader uses: its place among those of the query, and its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Used {
    pub(crate) constraint: usize,
    pub(crate) role: ColumnRole,
    pub(crate) comparison: Comparison,
}

/// The plan for one scan of a table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Plan {
    pub(crate) used: Vec<Used>,
    pub(crate) columns: u64,
    pub(crate) cost: f64,
    pub(crate) rows: i64,
    pub(crate) is_unique: bool,
}

/// A constraint of the query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constraint {
    pub(crate) column: usize,
    pub(crate) comparison: Comparison,
}

/// Rows and cost of a scan without constraints. Reading a recording costs much more for each row than a row of a table
/// in memory: the planner should rather look each row of a stream up there than read a stream for each row.
fn scan(size: Size) -> (f64, f64) {
    match size {
        Size::Small => (100.0, 100.0),
        Size::Chains => (1e5, 1e5),
        Size::Streamed => (1e7, 1e9),
    }
}

/// Chooses the constraints that a table can use.
pub(crate) fn plan(
    size: Size,
    infos: &[ColumnInfo],
    constraints: &[(usize, Constraint)],
    columns: u64,
) -> Plan {
    let (mut rows, mut cost) = scan(size);
    let is_streamed = size == Size::Streamed;
    let (mut used, mut is_unique) = (Vec::new(), false);
    for &(constraint, Constraint { column, comparison }) in constraints {
        let Some(info) = infos.get(column) else { continue };
        let (is_used, row_factor, cost_factor) = match (info.role, comparison) {
            (ColumnRole::Key, Comparison::Equal) => {
                is_unique = true;
                (true, 0.0, 0.0)
            }
            (ColumnRole::Recording, Comparison::Equal) => (true, 0.5, 0.5),
            // The whole recording is read all the same.
            (ColumnRole::Thread | ColumnRole::Process | ColumnRole::Cgroup, Comparison::Equal) => {
                (is_streamed, 0.05, 0.5)
            }
            // The other samples are decoded, and their call chains are not made.
            (ColumnRole::Event, Comparison::Equal) => (is_streamed, 0.02, 0.9),
            (ColumnRole::From | ColumnRole::To, Comparison::Equal) => (true, 0.5, 0.5),
            (ColumnRole::Host, Comparison::Equal) | (ColumnRole::Date, _) => (true, 0.3, 0.3),
            (ColumnRole::Time, Comparison::Equal) => (true, 1e-6, 0.01),
            (ColumnRole::Time, _) => (true, 0.3, 0.3),
            (_, Comparison::Equal) => (false, 0.02, 1.0),
            _ => (false, 1.0, 1.0),
        };
        rows *= row_factor;
        cost *= cost_factor;
        if is_used {
            used.push(Used { constraint, role: info.role, comparison });
        }
    }
    let (rows, cost) = if is_unique { (1.0, 1.0) } else { (rows.max(1.0), cost.max(1.0)) };
    Plan { used, columns, cost, rows: rows as i64, is_unique }
}

impl Plan {
    /// As SQLite carries it to the scan: the columns, then a letter for each value.
    pub(crate) fn text(&self) -> String {
        let letters = self.used.iter().map(|used| match (used.role, used.comparison) {
            (ColumnRole::Key, _) => 'k',
            (ColumnRole::Recording, _) => 'r',
            (ColumnRole::Thread, _) => 't',
            (ColumnRole::Process, _) => 'p',
            (ColumnRole::Cgroup, _) => 'c',
            (ColumnRole::Event, _) => 'e',
            (ColumnRole::From, _) => 'F',
            (ColumnRole::To, _) => 'T',
            (ColumnRole::Host, _) => 'h',
            (ColumnRole::Date, Comparison::Equal) => 'd',
            (ColumnRole::Date, Comparison::AtLeast | Comparison::Above) => 'f',
            (ColumnRole::Date, Comparison::AtMost | Comparison::Below) => 'u',
            (_, Comparison::Equal) => '=',
            (_, Comparison::AtLeast) => 'g',
            (_, Comparison::Above) => '>',
            (_, Comparison::AtMost) => 'l',
            (_, Comparison::Below) => '<',
        });
        format!("{} {}", self.columns, letters.collect::<String>())
    }
}

/// The reader's constraints, from such a text and the values. A value of another type is left to SQLite, which checks
/// all constraints again.
pub(crate) fn wanted(
    text: &str,
    value: impl Fn(usize) -> Option<i64>,
    text_at: impl Fn(usize) -> Option<String>,
) -> Wanted {
    let (columns, letters) = text.split_once(' ').unwrap_or((text, ""));
    let mut wanted =
        Wanted { columns: columns.parse().unwrap_or(u64::MAX), ..Wanted::everything() };
    for (place, letter) in letters.chars().enumerate() {
        match letter {
            'e' => wanted.event = text_at(place),
            'h' => wanted.host = text_at(place),
            'd' => (wanted.from_date, wanted.to_date) = (text_at(place), text_at(place)),
            'f' => wanted.from_date = text_at(place),
            'u' => wanted.to_date = text_at(place),
            _ => {}
        }
        let Some(value) = value(place) else { continue };
        let not_before = |wanted: &mut Wanted, value: i64| {
            wanted.from = Some(wanted.from.map_or(value, |from| from.max(value)));
        };
        let not_behind = |wanted: &mut Wanted, value: i64| {
            wanted.to = Some(wanted.to.map_or(value, |to| to.min(value)));
        };
        match letter {
            'k' => wanted.key = Some(value),
            'r' => wanted.recording = Some(value),
            't' => wanted.thread = Some(value),
            'p' => wanted.process = Some(value),
            'c' => wanted.cgroup = Some(value),
            '=' => {
                not_before(&mut wanted, value);
                not_behind(&mut wanted, value);
            }
            'g' | 'F' => not_before(&mut wanted, value),
            '>' => not_before(&mut wanted, value.saturating_add(1)),
            'l' | 'T' => not_behind(&mut wanted, value),
            '<' => not_behind(&mut wanted, value.saturating_sub(1)),
            _ => {}
        }
    }
    wanted
}
