//! An annotated function in columns, for a face that draws it: the page.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::Serialize;
use whit_annotate::{AnnotatedFunction, Annotation, EventWeights};
use whit_profile::SourceLine;
use whit_profile::model::EventId;

use super::intervals::FunctionIntervals;
use super::text::{append_instruction, expand_tabs, short_name};
use super::{Annotated, LineText, line_name};

/// Lines without code between two lines with code are shown where they are so few.
const MAX_GAP_LINES: u32 = 12;
/// Longest text of a line, in characters.
const MAX_LINE_CHARACTERS: usize = 300;

/// Place, event, samples, period, and half of the interval of the share of the function in points of percent.
type PartWeight = (u32, u32, u64, u64, Option<f64>);

/// A function with its instructions and lines. Columns have an entry for each instruction.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PanelFunction {
    /// First address in hexadecimal digits: it may not fit a number of JavaScript.
    start: String,
    size_bytes: u64,
    /// Why there is no code; instructions are then the addresses of samples alone.
    problem: Option<String>,
    /// Event, samples, period, and half of the interval of the share of the event.
    weights: Vec<(u32, u64, u64, Option<f64>)>,
    /// Distance from the start.
    offsets: Vec<u64>,
    texts: Vec<String>,
    /// Target of a jump inside of the function: one more than its instruction, 0 for none.
    targets: Vec<u32>,
    /// Index into `margin_texts`.
    margins: Vec<u32>,
    /// Arrows beside an instruction, and between it and the one above.
    margin_texts: Vec<(String, String)>,
    /// Jumps without an arrow.
    undrawn: usize,
    /// One more than the index into `lines`, 0 for none.
    line_of: Vec<u32>,
    /// Index into `chains`.
    chain_of: Vec<u32>,
    /// Inlined functions around an instruction, the outermost first: name, short name, and the line that calls it.
    chains: Vec<Vec<(String, String, String)>>,
    files: Vec<String>,
    /// File, number, text where the file is at hand; by file and number.
    lines: Vec<(u32, u32, Option<String>)>,
    row_weights: Vec<PartWeight>,
    /// Places are indices into `lines`, plus one; 0 has the instructions without a line.
    line_weights: Vec<PartWeight>,
}

impl PanelFunction {
    /// From a function of an annotated profile; intervals come from its blocks of time, if it has them.
    pub fn new(
        annotated: &Annotated<'_>,
        function: &AnnotatedFunction,
        line_text: LineText<'_>,
    ) -> PanelFunction {
        let chosen = &function.chosen;
        let events = chosen.weights.iter().map(|(event, _)| event);
        let of = |event| {
            let (profile, weights) = (annotated.profile, annotated.weights);
            (event, FunctionIntervals::new(profile, weights, function, event))
        };
        let intervals: Vec<_> = events.map(of).collect();
        let weight = |((event, weight), (_, of)): ((EventId, _), &(EventId, FunctionIntervals))| {
            let whit_annotate::Weight { samples, period } = weight;
            (event.0, samples, period, of.own.map(|own| rounded(own.plus_minus())))
        };
        let panel = PanelFunction {
            start: format!("{:x}", chosen.range.start),
            size_bytes: chosen.range.end.0.saturating_sub(chosen.range.start.0),
            problem: function.code.as_ref().err().map(ToString::to_string),
            weights: chosen.weights.iter().zip(&intervals).map(weight).collect(),
            offsets: Vec::new(),
            texts: Vec::new(),
            targets: Vec::new(),
            margins: Vec::new(),
            margin_texts: Vec::new(),
            undrawn: 0,
            line_of: Vec::new(),
            chain_of: Vec::new(),
            chains: Vec::new(),
            files: Vec::new(),
            lines: Vec::new(),
            row_weights: Vec::new(),
            line_weights: Vec::new(),
        };
        match &function.code {
            Ok(code) => panel.with_code(code, &intervals, chosen.range.start.0, line_text),
            Err(_) => panel.with_addresses(function, &intervals),
        }
    }

    fn with_addresses(
        mut self,
        function: &AnnotatedFunction,
        intervals: &[(EventId, FunctionIntervals)],
    ) -> PanelFunction {
        let chosen = &function.chosen;
        for (row, (address, weights)) in chosen.addresses.iter().enumerate() {
            self.offsets.push(address.0.saturating_sub(chosen.range.start.0));
            let half = |of: &FunctionIntervals| of.row(*address).local.map(|it| it.plus_minus());
            push_weights(&mut self.row_weights, row, weights, intervals, half);
        }
        self
    }

    fn with_code(
        mut self,
        code: &Annotation,
        intervals: &[(EventId, FunctionIntervals)],
        start: u64,
        line_text: LineText<'_>,
    ) -> PanelFunction {
        let lines = Lines::of(code);
        let mut margins = Table::default();
        let mut chains = Table::default();
        for (number, row) in code.rows.iter().enumerate() {
            let instruction = &row.instruction;
            self.offsets.push(instruction.address.0.saturating_sub(start));
            let mut text = String::new();
            append_instruction(row, &mut text);
            self.texts.push(text);
            self.targets.push(target(code, number));
            let (mut own, mut above) = (String::new(), String::new());
            code.jumps.append_row(number, &mut own);
            code.jumps.append_above(number, &mut above);
            self.margins.push(margins.number((own, above)));
            self.line_of.push(lines.place(row.source.line.as_ref()));
            self.chain_of.push(chains.number(row.source.inlined.clone()));
            let half = |of: &FunctionIntervals| {
                of.row(instruction.address).local.map(|it| it.plus_minus())
            };
            push_weights(&mut self.row_weights, number, &row.weights, intervals, half);
        }
        for line in &code.lines {
            let place = lines.place(line.line.as_ref()) as usize;
            let half = |of: &FunctionIntervals| of.line(&line.line).local.map(|it| it.plus_minus());
            push_weights(&mut self.line_weights, place, &line.weights, intervals, half);
        }
        self.margin_texts = margins.values;
        self.undrawn = code.jumps.undrawn();
        let call = |(name, site): &(Arc<str>, Option<SourceLine>)| {
            let site = site.as_ref().map(|site| line_name(site, false)).unwrap_or_default();
            (name.to_string(), short_name(name), site)
        };
        self.chains = chains.values.iter().map(|chain| chain.iter().map(call).collect()).collect();
        self.lines = lines.texts(line_text);
        self.files = lines.files.iter().map(ToString::to_string).collect();
        self
    }
}

/// One more than the instruction that a jump leads to.
fn target(code: &Annotation, number: usize) -> u32 {
    let Some(whit_annotate::Target::Jump(to)) = code.rows[number].instruction.target else {
        return 0;
    };
    let found = code.rows.binary_search_by_key(&to, |row| row.instruction.address);
    found.map_or(0, |row| row as u32 + 1)
}

fn push_weights(
    list: &mut Vec<PartWeight>,
    place: usize,
    weights: &EventWeights,
    intervals: &[(EventId, FunctionIntervals)],
    half: impl Fn(&FunctionIntervals) -> Option<f64>,
) {
    for (event, weight) in weights.iter() {
        let of = intervals.iter().find(|(known, _)| *known == event);
        let half = of.and_then(|(_, of)| half(of)).map(rounded);
        list.push((place as u32, event.0, weight.samples, weight.period, half));
    }
}

/// More digits would only make the page larger.
fn rounded(points: f64) -> f64 {
    (points * 1000.0).round() / 1000.0
}

/// Distinct values in the order of their first use.
struct Table<T> {
    numbers: FxHashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { numbers: FxHashMap::default(), values: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn number(&mut self, value: T) -> u32 {
        *self.numbers.entry(value.clone()).or_insert_with(|| {
            self.values.push(value);
            self.values.len() as u32 - 1
        })
    }
}

/// The lines of a function, with those between them.
struct Lines {
    files: Vec<Arc<str>>,
    /// File and number, ascending.
    all: Vec<(u32, u32)>,
    file_of: FxHashMap<Arc<str>, u32>,
}

impl Lines {
    fn of(code: &Annotation) -> Lines {
        let used: BTreeSet<&SourceLine> = code
            .rows
            .iter()
            .filter_map(|row| row.source.line.as_ref())
            .filter(|line| line.line > 0)
            .collect();
        let mut lines = Lines { files: Vec::new(), all: Vec::new(), file_of: FxHashMap::default() };
        for line in used {
            let file = match lines.file_of.get(&line.file) {
                Some(file) => *file,
                None => {
                    let file = lines.files.len() as u32;
                    lines.files.push(line.file.clone());
                    lines.file_of.insert(line.file.clone(), file);
                    file
                }
            };
            if let Some((last_file, last)) = lines.all.last().copied()
                && last_file == file
                && line.line - last <= MAX_GAP_LINES
            {
                lines.all.extend((last + 1..line.line).map(|between| (file, between)));
            }
            lines.all.push((file, line.line));
        }
        lines
    }

    /// One more than the place of a line.
    fn place(&self, line: Option<&SourceLine>) -> u32 {
        let found = line.and_then(|line| {
            let key = (*self.file_of.get(&line.file)?, line.line);
            self.all.binary_search(&key).ok()
        });
        found.map_or(0, |place| place as u32 + 1)
    }

    fn texts(&self, line_text: LineText<'_>) -> Vec<(u32, u32, Option<String>)> {
        let one = |(file, line): &(u32, u32)| {
            let place = SourceLine { file: self.files[*file as usize].clone(), line: *line };
            (*file, *line, line_text(&place).map(|text| bounded_line(&text)))
        };
        self.all.iter().map(one).collect()
    }
}

fn bounded_line(text: &str) -> String {
    let text = expand_tabs(text.trim_end());
    match text.char_indices().nth(MAX_LINE_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
