//! Proves that every index of a profile is in range, so that the code behind it may index.

use whit_profile::model::{NodeId, Profile};
use whit_profile::switches::Switches;

use super::HtmlError;

/// One column of references from `table` to `target`, which has `len` entries.
struct Column {
    table: &'static str,
    target: &'static str,
    len: usize,
}

impl Column {
    fn check(&self, values: impl Iterator<Item = u32>) -> Result<(), HtmlError> {
        for (index, value) in values.enumerate() {
            if value as usize >= self.len {
                let Column { table, target, len } = *self;
                return Err(HtmlError::Inconsistent { table, index, target, value, len });
            }
        }
        Ok(())
    }
}

/// Checks all references of all tables; also that parents stand before their children.
pub(crate) fn check_indices(p: &Profile) -> Result<(), HtmlError> {
    let column = |table, target, len| Column { table, target, len };
    column("threads", "comms", p.comms.len()).check(p.threads.iter().map(|t| t.comm.0))?;
    column("functions", "dsos", p.dsos.len()).check(p.functions.iter().map(|f| f.dso.0))?;
    column("frames", "functions", p.functions.len())
        .check(p.frames.iter().map(|f| f.function.0))?;
    // Frames without a source stand as file 0 of a table that then is one longer at least.
    column("frames", "files", p.files.len() + 1)
        .check(p.frames.iter().map(|f| f.source.map_or(0, |(file, _)| file.0.saturating_add(1))))?;
    column("nodes", "frames", p.frames.len()).check(p.nodes.iter().map(|n| n.frame.0))?;
    check_parents(p)?;
    column("rows", "events", p.events.len()).check(p.rows.iter().map(|r| r.event.0))?;
    column("rows", "threads", p.threads.len()).check(p.rows.iter().map(|r| r.thread.0))?;
    column("rows", "comms", p.comms.len()).check(p.rows.iter().map(|r| r.comm.0))?;
    // A row without any frame has the node NONE; it wraps to 0 and real nodes to 1 and up.
    column("rows", "nodes", p.nodes.len() + 1)
        .check(p.rows.iter().map(|r| r.node.0.wrapping_add(1)))
}

/// Checks all references from the switches to the tables of a profile that was checked.
pub(crate) fn check_switches(p: &Profile, switches: &Switches) -> Result<(), HtmlError> {
    let column = |table, target, len| Column { table, target, len };
    let (rows, line) = (&switches.rows, &switches.timeline.spans);
    let threads = p.threads.len();
    column("switches", "threads", threads).check(rows.iter().map(|r| r.thread.0))?;
    column("switches", "comms", p.comms.len()).check(rows.iter().map(|r| r.comm.0))?;
    // No call stack wraps to 0.
    let nodes = |table| column(table, "nodes", p.nodes.len() + 1);
    nodes("switches").check(rows.iter().map(|r| r.node.0.wrapping_add(1)))?;
    column("time line", "threads", threads).check(line.iter().map(|s| s.thread.0))?;
    nodes("time line").check(line.iter().map(|s| s.node.0.wrapping_add(1)))?;
    let wakers = || line.iter().filter_map(|s| Some(s.woken?.1));
    column("wakers", "threads", threads).check(wakers().map(|waker| waker.thread.0))?;
    nodes("wakers").check(wakers().map(|waker| waker.node.0.wrapping_add(1)))?;
    column("switches", "events", p.events.len())
        .check(switches.sources.samples.iter().map(|event| event.0))
}

fn check_parents(p: &Profile) -> Result<(), HtmlError> {
    for (index, node) in p.nodes.iter().enumerate() {
        if node.parent != NodeId::NONE && node.parent.index() >= index {
            return Err(HtmlError::Inconsistent {
                table: "nodes",
                index,
                target: "earlier nodes",
                value: node.parent.0,
                len: index,
            });
        }
    }
    Ok(())
}
