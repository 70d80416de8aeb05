//! Rows in levels: one level for each sort key, or for each group of keys, as `perf report --hierarchy` has them.

use std::sync::Arc;

use whit_profile::model::Profile;

use super::row_order::{self, RowOrder};
use super::sort_key::SortKey;
use super::{ChainTree, HistRow};

/// Where a row of a hierarchy stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level {
    /// Rows around it.
    pub depth: usize,
    /// True where the row has no level below it.
    pub is_leaf: bool,
}

/// Arranges rows in levels.
pub(super) struct Nesting<'a, F> {
    pub(super) profile: &'a Profile,
    pub(super) order: RowOrder<'a>,
    /// The keys of each level, from the outermost.
    pub(super) levels: &'a [Vec<SortKey>],
    /// False for rows that a filter hides: they count in the rows around them alone.
    pub(super) is_shown: F,
}

impl<F: Fn(&HistRow) -> bool> Nesting<'_, F> {
    /// Puts in front of the rows of each level the row that sums them up, and tells where each stands.
    pub(super) fn nest(&self, rows: &mut Vec<HistRow>) -> Vec<Level> {
        let (mut nested, mut places) = (Vec::with_capacity(rows.len()), Vec::new());
        self.add_level(0, std::mem::take(rows), &mut nested, &mut places);
        *rows = nested;
        places
    }

    fn add_level(
        &self,
        depth: usize,
        rows: Vec<HistRow>,
        nested: &mut Vec<HistRow>,
        places: &mut Vec<Level>,
    ) {
        if depth + 1 >= self.levels.len() {
            let mut shown: Vec<HistRow> = rows.into_iter().filter(&self.is_shown).collect();
            row_order::sort(self.profile, &self.order, &mut shown);
            places.extend(shown.iter().map(|_| Level { depth, is_leaf: true }));
            nested.append(&mut shown);
            return;
        }
        let mut groups = self.group(depth, rows);
        groups.sort_by(|(a, _), (b, _)| self.order.compare(self.profile, a, b));
        for (sum, rows) in groups {
            if rows.iter().any(&self.is_shown) {
                nested.push(sum);
                places.push(Level { depth, is_leaf: false });
                self.add_level(depth + 1, rows, nested, places);
            }
        }
    }

    /// Rows that the level's keys do not tell apart, with their sum.
    fn group(&self, depth: usize, mut rows: Vec<HistRow>) -> Vec<(HistRow, Vec<HistRow>)> {
        let keys = &self.levels[depth];
        rows.sort_by(|a, b| row_order::under_keys(keys, self.profile, a, b));
        let mut groups: Vec<(HistRow, Vec<HistRow>)> = Vec::new();
        for row in rows {
            match groups.last_mut() {
                Some((sum, members))
                    if row_order::under_keys(keys, self.profile, sum, &row).is_eq() =>
                {
                    sum.add(&row);
                    members.push(row);
                }
                _ => groups.push((row.without_chains(), vec![row])),
            }
        }
        groups
    }
}

impl HistRow {
    fn without_chains(&self) -> HistRow {
        HistRow {
            context: Arc::clone(&self.context),
            max_depth: 0,
            intervals: None,
            members: self.members.clone(),
            examples: Box::default(),
            chains: ChainTree::default(),
            ..*self
        }
    }

    /// Adds the weights of another row.
    fn add(&mut self, other: &HistRow) {
        self.self_period += other.self_period;
        self.self_samples += other.self_samples;
        self.children_period += other.children_period;
        self.children_samples += other.children_samples;
        self.self_latency += other.self_latency;
        self.children_latency += other.children_latency;
        self.kernel_period += other.kernel_period;
        for (sum, member) in self.members.iter_mut().zip(&other.members) {
            sum.add(member);
        }
        self.first_thread = self.first_thread.min(other.first_thread);
    }
}
