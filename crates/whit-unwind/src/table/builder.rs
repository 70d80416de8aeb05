//! From call frame information to a table.

use std::collections::HashMap;
use std::ops::Range;

use gimli::{FrameDescriptionEntry, UnwindContext, UnwindSection, UnwindTableRow};
use whit_types::Svma;

use super::rules::CompactRule;
use super::{
    BUCKET_BYTES, NoTable, ROWS_MAX, RULE_BITS, RULES_MAX, SPAN_MAX_BYTES, UnwindTable,
    WORK_MAX_BYTES,
};
use crate::cfi::{Reader, RowSink};
use crate::module::{ModuleUnwindInfo, StackSwitches};

/// Number of a rule.
type RuleId = u32;
/// The rule for code that no entry covers is always the first.
const UNCOVERED: RuleId = 0;

/// A rule for a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
    rule: RuleId,
}

pub(super) fn build(
    module: &ModuleUnwindInfo,
    code: &[Range<Svma>],
) -> Result<UnwindTable, NoTable> {
    build_within(module, code, WORK_MAX_BYTES)
}

/// Reads at most so many bytes of entries.
pub(super) fn build_within(
    module: &ModuleUnwindInfo,
    code: &[Range<Svma>],
    work_max_bytes: usize,
) -> Result<UnwindTable, NoTable> {
    let mut code: Vec<_> = code.iter().map(|range| range.start.0..range.end.0).collect();
    code.retain(|range| range.start < range.end);
    code.sort_unstable_by_key(|range| range.start);
    let mut collector = Collector::new(work_max_bytes);
    let mut spans: Vec<Span> = Vec::new();
    let mut context = UnwindContext::new();
    for table in module.tables() {
        table.for_each_row(&mut context, &mut collector);
        let found = within(std::mem::take(&mut collector.spans), &code);
        spans = if spans.is_empty() { found } else { fill_gaps(spans, &found) };
    }
    spans = with_switches(spans, module.stack_switches(), &mut collector);
    if collector.is_full {
        return Err(NoTable::TooLarge);
    }
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return Err(NoTable::NoUnwindInfo);
    };
    let start = first.start - first.start % BUCKET_BYTES;
    if last.end - start > SPAN_MAX_BYTES {
        return Err(NoTable::TooLarge);
    }
    lay_out(start, &spans, collector.rules)
}

/// Takes rows in and interns their rules.
struct Collector {
    spans: Vec<Span>,
    rules: Vec<CompactRule>,
    ids: HashMap<CompactRule, RuleId>,
    work_bytes: usize,
    work_max_bytes: usize,
    is_full: bool,
}

impl Collector {
    fn new(work_max_bytes: usize) -> Collector {
        let ids = HashMap::from([(CompactRule::UNCOVERED, UNCOVERED)]);
        Collector {
            spans: Vec::new(),
            rules: vec![CompactRule::UNCOVERED],
            ids,
            work_bytes: 0,
            work_max_bytes,
            is_full: false,
        }
    }

    fn id(&mut self, rule: CompactRule) -> Option<RuleId> {
        if let Some(id) = self.ids.get(&rule) {
            return Some(*id);
        }
        if self.rules.len() == RULES_MAX {
            return None;
        }
        let id = self.rules.len() as RuleId;
        self.rules.push(rule);
        self.ids.insert(rule, id);
        Some(id)
    }
}

impl RowSink for Collector {
    fn entry(&mut self, bytes: usize) -> bool {
        self.work_bytes = self.work_bytes.saturating_add(bytes);
        self.is_full |= self.work_bytes > self.work_max_bytes;
        !self.is_full
    }

    fn row<'a, S: UnwindSection<Reader<'a>>>(
        &mut self,
        section: &S,
        fde: &FrameDescriptionEntry<Reader<'a>>,
        row: &UnwindTableRow<usize>,
        range: Range<u64>,
    ) {
        let rule = CompactRule::from_row(section, fde, row);
        match self.id(rule) {
            Some(rule) if self.spans.len() < ROWS_MAX => {
                // Rows that differ in other registers alone are one here.
                match self.spans.last_mut() {
                    Some(last) if last.end == range.start && last.rule == rule => {
                        last.end = range.end;
                    }
                    _ => self.spans.push(Span { start: range.start, end: range.end, rule }),
                }
            }
            _ => self.is_full = true,
        }
    }
}

/// The parts of `spans` that lie in `code`. Both ascend; what overlaps backwards is left out.
fn within(spans: Vec<Span>, code: &[Range<u64>]) -> Vec<Span> {
    let mut out: Vec<Span> = Vec::with_capacity(spans.len());
    let mut at = 0;
    for span in spans {
        let mut start = out.last().map_or(span.start, |last| span.start.max(last.end));
        while start < span.end && at < code.len() {
            if code[at].end <= start {
                at += 1;
                continue;
            }
            let (from, to) = (start.max(code[at].start), span.end.min(code[at].end));
            if from >= to {
                break;
            }
            out.push(Span { start: from, end: to, rule: span.rule });
            start = to;
        }
    }
    out
}

/// The spans, with the rules of code that changes stacks in place of the entries' rules.
fn with_switches(
    spans: Vec<Span>,
    switches: &StackSwitches,
    collector: &mut Collector,
) -> Vec<Span> {
    let mut out = Vec::with_capacity(spans.len());
    for span in spans {
        let mut start = span.start;
        while start < span.end {
            let (switch, until) = switches.at(start);
            let end = until.min(span.end);
            let rule = match switch.map(|switch| collector.id(CompactRule::of_switch(switch))) {
                None => span.rule,
                Some(Some(rule)) => rule,
                Some(None) => {
                    collector.is_full = true;
                    return Vec::new();
                }
            };
            out.push(Span { start, end, rule });
            start = end;
        }
    }
    out
}

/// `first`, and of `second` what lies between.
fn fill_gaps(first: Vec<Span>, second: &[Span]) -> Vec<Span> {
    let mut out = Vec::with_capacity(first.len() + second.len());
    let mut rest = second.iter().copied().peekable();
    let mut put = |out: &mut Vec<Span>, gap: Range<u64>| {
        while let Some(span) = rest.peek_mut() {
            if span.start >= gap.end {
                break;
            }
            let (start, end) = (span.start.max(gap.start), span.end.min(gap.end));
            if start < end {
                out.push(Span { start, end, rule: span.rule });
            }
            if span.end > gap.end {
                span.start = gap.end;
                break;
            }
            rest.next();
        }
    };
    let mut from = 0;
    for span in first {
        put(&mut out, from..span.start);
        from = span.end;
        out.push(span);
    }
    put(&mut out, from..u64::MAX);
    out
}

/// Writes rows and index.
fn lay_out(start: u64, spans: &[Span], rules: Vec<CompactRule>) -> Result<UnwindTable, NoTable> {
    let mut layout = Layout { start, index: Vec::new(), rows: Vec::new(), last: UNCOVERED };
    let mut covered_to = start;
    for span in spans {
        if covered_to < span.start {
            layout.begin(covered_to, UNCOVERED);
        }
        layout.begin(span.start, span.rule);
        covered_to = span.end;
    }
    layout.begin(covered_to, UNCOVERED);
    if layout.rows.len() > ROWS_MAX {
        return Err(NoTable::TooLarge);
    }
    let rows = layout.rows.len() as u32;
    layout.index.push(rows);
    Ok(UnwindTable { start, index: layout.index, rows: layout.rows, rules })
}

struct Layout {
    start: u64,
    index: Vec<u32>,
    rows: Vec<u32>,
    last: RuleId,
}

impl Layout {
    /// From `address` on, `rule` holds. Addresses ascend.
    fn begin(&mut self, address: u64, rule: RuleId) {
        let offset = address - self.start;
        let bucket = (offset / BUCKET_BYTES) as usize;
        while self.index.len() <= bucket {
            self.index.push(self.rows.len() as u32);
        }
        if self.rows.is_empty() || self.last != rule {
            self.rows.push(((offset % BUCKET_BYTES) as u32) << RULE_BITS | rule);
            self.last = rule;
        }
    }
}
