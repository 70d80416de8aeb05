//! Cases that take turns, and their rows.

use std::fmt::Display;

use anyhow::Result;
use serde::Serialize;
use whit_measure::summary::Spread;

use crate::bench::Say;
use crate::page::NONE;

/// All runs of a case: a tool with a load or a setting.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Row<C, R> {
    #[serde(flatten)]
    pub(crate) case: C,
    /// One for each round.
    pub(crate) runs: Vec<R>,
    /// Why there are no runs, or fewer.
    pub(crate) refused: Option<String>,
}

/// A column: heading, figure of a run, and the text of the figure over all runs.
pub(crate) type Column<R> = (&'static str, fn(&R) -> Option<f64>, fn(&Spread) -> String);

impl<C, R> Row<C, R> {
    pub(crate) fn new(case: C) -> Row<C, R> {
        Row { case, runs: Vec::new(), refused: None }
    }

    /// A figure over the runs that have it.
    pub(crate) fn spread(&self, of: impl Fn(&R) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(of))
    }

    /// The cells behind the names; the reason alone where the case was refused.
    pub(crate) fn cells(&self, mut names: Vec<String>, columns: &[Column<R>]) -> Vec<String> {
        let cell = |(_, of, show): &Column<R>| {
            self.spread(of).map_or_else(|| NONE.to_owned(), |values| show(&values))
        };
        match &self.refused {
            Some(reason) => names.push(reason.clone()),
            None if self.runs.is_empty() => names.push("was not run".to_owned()),
            None => names.extend(columns.iter().map(cell)),
        }
        names
    }
}

/// The headings of a table, those of names first.
pub(crate) fn headings<'a, R>(
    names: &'a [&'a str],
    columns: &'a [Column<R>],
) -> impl Iterator<Item = &'a str> {
    names.iter().copied().chain(columns.iter().map(|(heading, ..)| *heading))
}

/// Runs every case once per round, in turn. A refused one is not run again.
pub(crate) fn interleave<C: Display, R>(
    rows: &mut [Row<C, R>],
    rounds: usize,
    say: Say<'_>,
    run: &mut dyn FnMut(&C) -> Result<Result<R, String>>,
) -> Result<()> {
    for round in 0..rounds {
        for index in order(round, rows.len()) {
            let row = &mut rows[index];
            if row.refused.is_some() {
                continue;
            }
            say(&format!("round {} of {rounds}: {}", round + 1, row.case));
            match run(&row.case)? {
                Ok(run) => row.runs.push(run),
                Err(reason) => row.refused = Some(reason),
            }
        }
    }
    Ok(())
}

/// The order in which a round runs its cases: every round begins at another one, and every other round runs
/// backwards, so that no case always follows the same other.
pub(crate) fn order(round: usize, cases: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..cases).map(|turn| (round + turn) % cases).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{median, spread};

    #[test]
    fn cases_take_turns_and_a_refused_one_stops() {
        let mut rows: Vec<Row<&str, f64>> = ["a", "b", "c"].map(Row::new).into();
        let (mut order, mut said) = (Vec::new(), Vec::new());
        interleave(&mut rows, 2, &mut |text| said.push(text.to_owned()), &mut |case| {
            order.push(*case);
            Ok(if *case == "b" { Err("no right".to_owned()) } else { Ok(order.len() as f64) })
        })
        .unwrap();
        assert_eq!(order, ["a", "b", "c", "a", "c"]);
        assert_eq!(said[0], "round 1 of 2: a");
        let columns: [Column<f64>; 2] = [("x", |run| Some(*run), median), ("y", |_| None, spread)];
        assert_eq!(rows[0].cells(vec!["a".to_owned()], &columns), ["a", "2.50", "–"]);
        assert_eq!(rows[1].cells(vec!["b".to_owned()], &columns), ["b", "no right"]);
        assert_eq!(headings(&["tool"], &columns).collect::<Vec<_>>(), ["tool", "x", "y"]);
    }
}
