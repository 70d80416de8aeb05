//! The help of the keys.

/// Lines of at most 78 columns.
pub(crate) const HELP: &str = "\
h ? F1           this help
q Ctrl-C         quit, or close the text in front
Up Down PgUp PgDn Space Home End   choose a row; the mouse and its wheel, too
Enter            open the call chains of a row; zoom into a frame; read a function
Right            open one level of call chains; the frame to the right
Left             close it, go up, or zoom out; the frame to the left
Esc              back: close a text, undo the last zoom or filter
v                next view: table, flame graph, waits, time
Tab Shift-Tab    next and previous event
e + E C          open a whole row, one level, all rows; close all
a                annotate: instructions and source lines of the function
d                zoom into the binary of the row
t                zoom into the thread of the row (its command, where rows have none)
k                zoom into the kernel
/                show only functions with a text in their names
F                shares of all samples, or of those that zooms and filters leave
L                leave out rows below a percentage
V                the whole name of the chosen function, below the table
P                write the report as text to a file
i                header of the recording, cost, losses and warnings

Shares of the table stand with their intervals (\u{b1}): half of the interval that
holds the true share in 95 of 100 recordings. Rows with the same rank may stand in
any order. A red line below the title names all losses.";
