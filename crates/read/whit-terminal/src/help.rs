//! The help of the keys.

/// Lines of at most 78 columns.
pub(crate) const HELP: &str = "\
h ? F1           this help
q Ctrl-C         quit, or close the text in front
Up Down PgUp PgDn Space Home End
                 choose a row; the mouse and its wheel do so, too
Enter            open a row; zoom into a frame; read code where nothing opens
Right            open one level of call chains; the frame to the right
Left             close it, go up, or zoom out; the frame to the left
Esc              close a text; undo the last zoom, filter or range
v                next view: table, flame graph, waits, time
r                in the view of time: begin a range at the chosen column; Enter
                 or the mouse, dragged, shows its samples in all views
Tab Shift-Tab    next and previous event
e + E C          open a whole row, one level, all rows; close all
a                instructions and source lines of the function
w                why: the critical path of the thread, or of the command
R                recorded requests; Enter explains the chosen one
d                zoom into the binary of the row
t                zoom into the thread of the row, or into its command
k                zoom into the kernel
/                show only functions with a text in their names
o                order rows by their own share, or with all that they call
F                shares of all samples, or of those that zooms leave
L                leave out rows below a percentage
V                the whole name of the chosen function, below the table
P                write the report as text to a file
i                header of the recording, cost, losses and warnings

Shares of the table stand with their intervals (\u{b1}): half of the interval
that holds the true share in 95 of 100 recordings. Rows with the same rank
may stand in any order. A red line below the title names all losses.";

#[cfg(test)]
mod tests {
    use super::HELP;

    #[test]
    fn help_fits_80_columns() {
        let long: Vec<_> = HELP.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:?}");
    }
}
