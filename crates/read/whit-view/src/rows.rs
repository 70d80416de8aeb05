//! The table of a report cell by cell, for faces that lay it out themselves.

use whit_profile::model::Profile;

use crate::hists::{HistRow, Hists};
use crate::stdio::StdioOptions;
use crate::stdio::table::{Cell, Columns};

/// Title and width for a layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableColumn {
    /// Its title.
    pub heading: &'static str,
    /// The width with which no text is cut.
    pub width: usize,
    /// True for numbers, which stand right.
    pub is_number: bool,
    /// True for numbers that only qualify the shares: ranks, and halves of intervals.
    pub is_interval: bool,
}

/// The columns of a table; those of `whit report --stdio`.
pub struct Table {
    columns: Columns,
    list: Vec<TableColumn>,
}

impl Table {
    /// The columns for these rows. Texts of rows below the limit may be wider.
    pub fn new(profile: &Profile, hists: &Hists, options: &StdioOptions) -> Table {
        let columns = Columns::for_cells(profile, hists, options);
        let widths = columns.natural_widths(profile, hists, options.hists.percent_limit);
        let column = |(cell, width): (Cell, usize)| TableColumn {
            heading: cell.heading().trim(),
            width,
            is_number: cell.is_number(),
            is_interval: cell.is_interval(),
        };
        let list = columns.cells().zip(widths).map(column).collect();
        Table { columns, list }
    }

    /// The columns in their order.
    pub fn columns(&self) -> &[TableColumn] {
        &self.list
    }

    /// The text of a column in a row, escaped, in at most `width` columns where it is a name.
    pub fn cell(
        &self,
        profile: &Profile,
        hists: &Hists,
        row: &HistRow,
        column: usize,
        width: usize,
    ) -> String {
        self.columns.cell(profile, hists, row, column, width)
    }

    /// The same for a row that shows its callers as well, the outermost first.
    pub fn cell_below(
        &self,
        profile: &Profile,
        hists: &Hists,
        rows: (&[&HistRow], &HistRow),
        column: usize,
        width: usize,
    ) -> String {
        self.columns.cell_below(profile, hists, rows, column, width)
    }

    /// The share in percent that a column shows; `None` for other columns.
    pub fn share(&self, hists: &Hists, row: &HistRow, column: usize) -> Option<f64> {
        self.columns.share(hists, row, column)
    }
}
