//! Text in the layout of `perf annotate --stdio`.

use std::fmt::Write as _;
use std::io::{self, Write};

use whit_annotate::{AnnotatedFunction, AnnotatedRow, Annotation, Target};
use whit_profile::precision::Precision;
use whit_profile::{NoCode, SourceLine, SourceOf};
use whit_types::{OutsideText, pad};

use super::table::{Part, Table};
use super::{AnnotateOptions, Annotated, LineText, line_name, summary};
use crate::hists::{self, EventGroup};
use crate::stdio;
use crate::units;

/// Bytes of an instruction that `--asm-raw` prints in one line, as objdump.
const RAW_BYTES: usize = 7;
/// Columns for each inlined function around a line.
const INDENT: usize = 2;
/// Longer arguments of templates are left out of names of inlined functions.
const MAX_ARGUMENTS_BYTES: usize = 12;

/// Prints the annotated functions, one table for each event or group of events.
///
/// # Errors
/// The error of `out`.
pub fn write_text(
    out: &mut impl Write,
    annotated: &Annotated<'_>,
    options: &AnnotateOptions,
    line_text: LineText<'_>,
) -> io::Result<()> {
    if !options.quiet {
        stdio::write_ledger_and_warnings(out, annotated.profile)?;
    }
    stdio::write_loss(out, annotated.profile)?;
    for function in annotated.functions {
        if options.skip_missing && function.code.is_err() {
            continue;
        }
        for group in annotated.groups(function, options) {
            let table = Table::new(annotated, function, &group, options);
            Listing { annotated, function, table, options }.write(out, &group, line_text)?;
        }
    }
    Ok(())
}

/// One function for one event or group.
struct Listing<'a> {
    annotated: &'a Annotated<'a>,
    function: &'a AnnotatedFunction,
    table: Table<'a>,
    options: &'a AnnotateOptions,
}

impl Listing<'_> {
    fn write(
        &self,
        out: &mut impl Write,
        group: &EventGroup,
        line_text: LineText<'_>,
    ) -> io::Result<()> {
        let chosen = &self.function.chosen;
        let dso = &self.annotated.profile.dsos[chosen.dso.index()];
        stdio::write_losses_of_events(out, self.annotated.profile, group)?;
        if !self.options.quiet {
            self.write_facts(out, group)?;
        }
        if let (true, Ok(code)) = (self.options.summary, &self.function.code) {
            summary::write(out, &dso.path, code, &self.table, self.options)?;
        }
        let samples = chosen.weights.of(group.leader).samples;
        let members = group.members.iter().map(|member| chosen.weights.of(*member).samples);
        let samples: u64 = samples + members.sum::<u64>();
        let heading = format!(
            "{} |\tSource code & Disassembly of {} for {} ({samples} samples, percent: {})",
            self.table.heading(),
            dso.short_name,
            group.name,
            self.options.percent_type.words(),
        );
        writeln!(out, "{heading}\n{}", "-".repeat(heading.chars().count()))?;
        match &self.function.code {
            Ok(code) => self.write_code(out, code, line_text)?,
            Err(reason) => self.write_addresses(out, reason)?,
        }
        writeln!(out)
    }

    /// Everything about the function and its samples that has no place in the table.
    fn write_facts(&self, out: &mut impl Write, group: &EventGroup) -> io::Result<()> {
        let profile = self.annotated.profile;
        let chosen = &self.function.chosen;
        let event = group.leader;
        let info = &profile.events[event.index()];
        let (own, whole) = (chosen.weights.of(event), self.annotated.whole(event));
        let name = self.annotated.name(self.function);
        let dso = &profile.dsos[chosen.dso.index()];
        write!(out, "# {name} in {}", dso.path)?;
        if let Some(id) = dso.build_id {
            write!(out, " ({id})")?;
        }
        let percent = hists::percent(own.period, whole.period);
        write!(out, ": {percent:.2}%")?;
        if let Some(interval) = self.table.own() {
            write!(out, " ± {:.2}", interval.plus_minus())?;
        }
        writeln!(out, " of {}", info.name)?;
        if info.precision != Precision::Unknown {
            writeln!(out, "# Precision: {}", info.precision)?;
        }
        if self.table.has_intervals() {
            let blocks = profile.blocks.as_ref();
            let (count, length) = blocks.map_or((0, 0), |all| (all.weights.len(), all.length_ns));
            let length = units::duration(length);
            writeln!(
                out,
                "# ±: half of the interval that holds the true share in 95 of 100 recordings (from {count} blocks of \
                 {length}); empty where a share has too few blocks"
            )?;
        }
        let undrawn = self.function.code.as_ref().map_or(0, |code| code.jumps.undrawn());
        if undrawn > 0 {
            let jumps = units::counted(undrawn as u64, "jump");
            writeln!(
                out,
                "# {jumps} without an arrow: there is no room for more beside each other"
            )?;
        }
        Ok(())
    }

    /// The samples of a function whose code is not at hand.
    fn write_addresses(&self, out: &mut impl Write, reason: &NoCode) -> io::Result<()> {
        let name = self.annotated.name(self.function);
        writeln!(
            out,
            "# no instructions of {name}, only addresses: {reason}",
            reason = Escaped(reason)
        )?;
        for (address, weights) in &self.function.chosen.addresses {
            let mut text = String::new();
            self.table.append(Part::Row(*address), weights, &mut text);
            writeln!(out, "{text} :  {address:>7x}:")?;
        }
        Ok(())
    }

    fn write_code(
        &self,
        out: &mut impl Write,
        code: &Annotation,
        line_text: LineText<'_>,
    ) -> io::Result<()> {
        let name = self.annotated.name(self.function);
        let indent = " ".repeat(self.table.width());
        let start = self.function.chosen.range.start;
        writeln!(out, "{indent} : {start:016x} <{name}>:")?;
        let address_width = format!("{:x}", self.function.chosen.range.end).len() + 1;
        let mut shown = Shown::default();
        let mut text = String::new();
        for (number, row) in code.rows.iter().enumerate() {
            text.clear();
            if self.options.source {
                let mut above = String::new();
                code.jumps.append_above(number, &mut above);
                let blanks = pad::blanks(address_width);
                let margin = format!("{indent} :  {blanks}  {above} ");
                self.append_source(&row.source, &mut shown, &margin, line_text, &mut text);
            }
            self.table.append(Part::Row(row.instruction.address), &row.weights, &mut text);
            // Writing to a String cannot fail.
            let address = format!("{:x}", row.instruction.address);
            let _ = write!(text, " :  {}: ", pad::right(address, address_width));
            code.jumps.append_row(number, &mut text);
            text.push(' ');
            if self.options.raw {
                append_raw(row, code, start.0, &mut text);
            }
            append_instruction(row, &mut text);
            text.truncate(text.trim_end().len());
            writeln!(out, "{text}")?;
        }
        Ok(())
    }

    /// Appends lines for the inlined functions and the source line of an instruction, where they are others than those
    /// of the instruction before.
    fn append_source(
        &self,
        source: &SourceOf,
        shown: &mut Shown,
        margin: &str,
        line_text: LineText<'_>,
        text: &mut String,
    ) {
        let full_paths = self.options.full_paths;
        if self.options.inline && shown.inlined != source.inlined {
            self.append_inlined(source, shown, margin, text);
            shown.inlined.clone_from(&source.inlined);
            // The line may be that of the call site, and stand far above.
            shown.line = None;
        }
        let Some(line) = source.line.as_ref().filter(|line| line.line > 0) else { return };
        if shown.line.as_ref() == Some(line) {
            return;
        }
        let depth = if self.options.inline { source.inlined.len() } else { 0 };
        let name = line_name(line, full_paths);
        let _ = write!(text, "{margin}{}{name}", pad::blanks(INDENT * depth));
        if let Some(code) = line_text(line) {
            let _ = write!(text, "  {}", OutsideText::new(expand_tabs(&code)));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        shown.line = Some(line.clone());
    }

    /// Appends a line for each inlined function that begins here, or one for the function that goes on here.
    fn append_inlined(&self, source: &SourceOf, shown: &Shown, margin: &str, text: &mut String) {
        let both = shown.inlined.iter().zip(&source.inlined);
        let common = both.take_while(|(old, new)| old == new).count();
        let begun = &source.inlined[common..];
        if begun.is_empty() {
            let name = match common.checked_sub(1) {
                Some(last) => short_name(&source.inlined[last].0),
                None => short_name(self.annotated.name(self.function).exact()),
            };
            let indent = pad::blanks(INDENT * common);
            let _ = writeln!(text, "{margin}{indent}< {}", OutsideText::new(name));
        }
        for (depth, (name, call_site)) in (common..).zip(begun) {
            let (indent, name) = (pad::blanks(INDENT * depth), short_name(name));
            let _ = write!(text, "{margin}{indent}> {}, inlined", OutsideText::new(name));
            if let Some(call_site) = call_site {
                let _ = write!(text, " at {}", line_name(call_site, self.options.full_paths));
            }
            text.push('\n');
        }
    }
}

/// The part of the source that the reader has last seen.
#[derive(Default)]
struct Shown {
    inlined: Vec<(std::sync::Arc<str>, Option<SourceLine>)>,
    line: Option<SourceLine>,
}

/// Prints a reason escaped: it may quote a path.
struct Escaped<'a>(&'a NoCode);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&whit_types::escape(&self.0.to_string()))
    }
}

/// A name without long arguments of templates: `std::sort<…>`. Chains of inlined functions repeat them in each line.
pub(super) fn short_name(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('<') {
        let (before, arguments) = rest.split_at(open);
        short.push_str(before);
        // `<T as Trait>::f` of Rust, and `operator<`, are no lists of arguments.
        let is_list = !short.is_empty()
            && !short.ends_with([' ', '<', ':', '('])
            && !short.ends_with("operator");
        match arguments_end(arguments).filter(|end| is_list && *end > MAX_ARGUMENTS_BYTES) {
            Some(end) => {
                short.push_str("<…>");
                rest = &arguments[end..];
            }
            None => {
                short.push('<');
                rest = &arguments[1..];
            }
        }
    }
    short + rest
}

/// The end of the list of arguments that the text begins with.
fn arguments_end(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            // Not that of an arrow.
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
        before = c;
    }
    None
}

/// Tabs are control characters, and indent by eight columns in source files.
pub(super) fn expand_tabs(line: &str) -> String {
    let mut expanded = String::with_capacity(line.len());
    let mut column = 0;
    for c in line.chars() {
        let blanks = if c == '\t' { 8 - column % 8 } else { 0 };
        match c {
            '\t' => expanded.extend(std::iter::repeat_n(' ', blanks)),
            c => expanded.push(c),
        }
        column += blanks.max(1);
    }
    expanded
}

fn append_raw(row: &AnnotatedRow, code: &Annotation, start: u64, text: &mut String) {
    let at = row.instruction.address.0.wrapping_sub(start) as usize;
    let bytes = code.bytes.get(at..at + usize::from(row.instruction.size_bytes));
    let bytes = bytes.unwrap_or_default();
    for byte in bytes {
        let _ = write!(text, "{byte:02x} ");
    }
    let missing = RAW_BYTES.saturating_sub(bytes.len());
    let _ = write!(text, "{}", pad::blanks(3 * missing));
}

pub(super) fn append_instruction(row: &AnnotatedRow, text: &mut String) {
    text.push_str(&row.instruction.text);
    // Instructions of x86 have the distance alone.
    if let Some(Target::Data(to)) = row.instruction.target
        && !row.instruction.text.contains(&format!("{to:#x}"))
    {
        let _ = write!(text, "  # {to:#x}");
    }
    if let Some((name, offset)) = &row.target_name {
        let name = OutsideText::new(&**name);
        let _ = match offset {
            0 => write!(text, "  <{name}>"),
            offset => write!(text, "  <{name}+{offset:#x}>"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_arguments_of_templates_are_left_out() {
        assert_eq!(short_name("std::sort<unsigned int*, less>"), "std::sort<…>");
        assert_eq!(short_name("map<a<b, c, d, e>>::get<int>()"), "map<…>::get<int>()");
        assert_eq!(short_name("f<decltype(a->b), int>::g"), "f<…>::g");
        assert_eq!(
            short_name("operator<(Long, Longer, Longest)"),
            "operator<(Long, Longer, Longest)"
        );
        assert_eq!(
            short_name("<alloc::vec::Vec<T> as core::Drop>::drop"),
            "<alloc::vec::Vec<T> as core::Drop>::drop"
        );
        assert_eq!(short_name("broken<unsigned long"), "broken<unsigned long");
    }

    #[test]
    fn tabs_reach_to_multiples_of_eight() {
        assert_eq!(expand_tabs("\ta\tb"), "        a       b");
        assert_eq!(expand_tabs("12345678\tx"), "12345678        x");
    }

    proptest! {
        #[test]
        fn any_name_is_shortened(name in "[a<>:\\- ]{0,40}") {
            prop_assert!(short_name(&name).len() <= name.len() + 8);
        }
    }
}
