//! From call frame information to a table.

use std::collections::HashMap;
use std::ops::Range;

use gimli::{FrameDescriptionEntry, UnwindContext, UnwindSection, UnwindTableRow};
use whit_types::{Arch, Svma};

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
///
/// The largest binaries have millions, so each is small. Code of more than 4 GiB is more than any table spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    length: u32,
    rule: RuleId,
}

impl Span {
    /// `None` for more code than a table may span.
    fn new(range: Range<u64>, rule: RuleId) -> Option<Span> {
        let length = u32::try_from(range.end.checked_sub(range.start)?).ok()?;
        Some(Span { start: range.start, length, rule })
    }

    fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// The part of it in a range that overlaps it.
    fn within(&self, range: &Range<u64>) -> Span {
        let (start, end) = (self.start.max(range.start), self.end().min(range.end));
        // It is no longer than the whole.
        Span { start, length: end.saturating_sub(start) as u32, rule: self.rule }
    }
}

pub(super) fn build(
    arch: Arch,
    module: &ModuleUnwindInfo,
    code: &[Range<Svma>],
) -> Result<UnwindTable, NoTable> {
    build_within(arch, module, code, WORK_MAX_BYTES)
}

/// Reads at most so many bytes of entries.
pub(super) fn build_within(
    arch: Arch,
    module: &ModuleUnwindInfo,
    code: &[Range<Svma>],
    work_max_bytes: usize,
) -> Result<UnwindTable, NoTable> {
    let mut code: Vec<_> = code.iter().map(|range| range.start.0..range.end.0).collect();
    code.retain(|range| range.start < range.end);
    code.sort_unstable_by_key(|range| range.start);
    let mut collector = Collector::new(arch, code, work_max_bytes);
    let mut spans: Vec<Span> = Vec::new();
    let mut context = UnwindContext::new();
    for table in module.tables() {
        table.for_each_row(&mut context, &mut collector);
        let found = collector.take();
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
    if last.end() - start > SPAN_MAX_BYTES {
        return Err(NoTable::TooLarge);
    }
    lay_out(start, &spans, collector.rules)
}

/// Takes rows in, as far as they lie in code, and interns their rules.
struct Collector {
    arch: Arch,
    /// Ascending.
    code: Vec<Range<u64>>,
    /// The first range of code that the next row may lie in.
    at: usize,
    spans: Vec<Span>,
    rules: Vec<CompactRule>,
    ids: HashMap<CompactRule, RuleId>,
    work_bytes: usize,
    work_max_bytes: usize,
    is_full: bool,
}

impl Collector {
    fn new(arch: Arch, code: Vec<Range<u64>>, work_max_bytes: usize) -> Collector {
        let ids = HashMap::from([(CompactRule::UNCOVERED, UNCOVERED)]);
        Collector {
            arch,
            code,
            at: 0,
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

    /// The spans of one section.
    fn take(&mut self) -> Vec<Span> {
        self.at = 0;
        std::mem::take(&mut self.spans)
    }

    /// Adds the parts of a row that lie in code. Rows ascend; the part that overlaps backwards is left out.
    fn put(&mut self, row: Range<u64>, rule: RuleId) {
        let mut start = self.spans.last().map_or(row.start, |last| row.start.max(last.end()));
        while start < row.end
            && let Some(code) = self.code.get(self.at)
        {
            if code.end <= start {
                self.at += 1;
                continue;
            }
            let (from, to) = (start.max(code.start), row.end.min(code.end));
            if from >= to {
                break;
            }
            self.push(from..to, rule);
            start = to;
        }
    }

    fn push(&mut self, part: Range<u64>, rule: RuleId) {
        // Rows that differ in other registers alone are one here.
        if let Some(last) = self.spans.last_mut()
            && (last.end(), last.rule) == (part.start, rule)
            && let Some(joined) = Span::new(last.start..part.end, rule)
        {
            *last = joined;
            return;
        }
        match Span::new(part, rule) {
            Some(span) if self.spans.len() < ROWS_MAX => self.spans.push(span),
            _ => self.is_full = true,
        }
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
        let rule = CompactRule::from_row(self.arch, section, fde, row);
        match self.id(rule) {
            Some(rule) => self.put(range, rule),
            None => self.is_full = true,
        }
    }
}

/// The spans, with the rules of code that changes stacks in place of the entries' rules.
fn with_switches(
    spans: Vec<Span>,
    switches: &StackSwitches,
    collector: &mut Collector,
) -> Vec<Span> {
    if switches.is_empty() {
        return spans;
    }
    // No entry has to cover the return from a signal.
    let signals: Vec<Span> = switches
        .signal
        .iter()
        .filter_map(|range| Span::new(range.start.0..range.end.0, UNCOVERED))
        .collect();
    let spans = fill_gaps(spans, &signals);
    let mut out = Vec::with_capacity(spans.len());
    for span in spans {
        let mut start = span.start;
        while start < span.end() {
            let (switch, until) = switches.at(start);
            let end = until.min(span.end());
            let rule = match switch.map(|switch| collector.id(CompactRule::of_switch(switch))) {
                None => span.rule,
                Some(Some(rule)) => rule,
                Some(None) => {
                    collector.is_full = true;
                    return Vec::new();
                }
            };
            out.push(Span { rule, ..span.within(&(start..end)) });
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
            let part = span.within(&gap);
            if part.length > 0 {
                out.push(part);
            }
            if span.end() > gap.end {
                *span = span.within(&(gap.end..u64::MAX));
                break;
            }
            rest.next();
        }
    };
    let mut from = 0;
    for span in first {
        put(&mut out, from..span.start);
        from = span.end();
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
        covered_to = span.end();
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
