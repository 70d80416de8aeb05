//! Annotated functions as JSON.

use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;
use whit_annotate::{
    AnnotatedFunction, AnnotatedLine, AnnotatedRow, Annotation, EventWeights, Target,
};
use whit_profile::model::EventId;
use whit_profile::{SourceLine, SourceOf};

use super::intervals::{FunctionIntervals, PartIntervals};
use super::{AnnotateOptions, Annotated, LineText};
use crate::hists::{self, ShareInterval};
use crate::json::{Dso, EventPrecision, Losses, Recording};
use crate::json_strings;
use crate::warning::warning_text;

/// Version of the form; see the module [`json`](crate::json).
pub const VERSION: u32 = 1;

/// Writes the annotated functions, without a line end after them.
///
/// # Errors
/// The error of `out`.
pub fn write_json(
    out: &mut impl Write,
    annotated: &Annotated<'_>,
    options: &AnnotateOptions,
    line_text: LineText<'_>,
) -> io::Result<()> {
    json_strings::write(out, &Document::of(annotated, options, line_text))
}

/// `whit annotate --json`: one object. Members may be added; `version` grows when one changes its meaning or goes
/// away. Whole numbers are addresses, counts or bytes, as their names say.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Document<'a> {
    /// `whit-annotate`.
    format: &'static str,
    /// Version of this form.
    version: u32,
    recording: Recording<'a>,
    /// In the order of the recording.
    events: Vec<Event<'a>>,
    /// The heaviest first.
    functions: Vec<Function<'a>>,
    losses: Losses,
    warnings: Vec<String>,
}

/// One recorded event.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Event<'a> {
    name: &'a str,
    samples: u64,
    period: u64,
    lost_samples: u64,
    /// Where samples stand.
    precision: EventPrecision,
}

/// A function with its instructions and lines. The weights of the instructions add up to that of the function, and so
/// do those of the lines.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Function<'a> {
    name: &'a str,
    dso: Dso<'a>,
    /// True for code of the kernel.
    kernel: bool,
    /// First address, as the binary states it; of the kernel, where it was in memory.
    start: u64,
    size_bytes: u64,
    /// `x86_64`, `x86_32` or `aarch64`; `null` without code.
    instruction_set: Option<&'static str>,
    /// Why there is no code; `instructions` are then the addresses of samples alone.
    problem: Option<String>,
    /// One for each event that has samples here.
    weights: Vec<Share>,
    /// By address.
    instructions: Vec<Instruction<'a>>,
    /// Source lines with samples, by file and number.
    lines: Vec<Line<'a>>,
}

/// The weight of a function or of a part of it, for one event.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Share {
    /// Index in `events`.
    event: u32,
    samples: u64,
    period: u64,
    /// Share of the period of the event.
    percent: f64,
    /// Lower end of the interval that holds the true share in 95 of 100 recordings, lost samples included.
    #[serde(skip_serializing_if = "Option::is_none")]
    low_percent: Option<f64>,
    /// Its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    high_percent: Option<f64>,
    /// Share of the period of the function.
    function_percent: f64,
    /// Lower end of the interval of that share.
    #[serde(skip_serializing_if = "Option::is_none")]
    function_low_percent: Option<f64>,
    /// Its upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    function_high_percent: Option<f64>,
}

/// One instruction.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Instruction<'a> {
    address: u64,
    size_bytes: u8,
    /// In hexadecimal digits.
    bytes: String,
    /// `null` without code.
    text: Option<&'a str>,
    /// The place that it names, where it names one.
    target: Option<TargetOf<'a>>,
    /// `null` where none is known.
    line: Option<LineOf<'a>>,
    /// Inlined functions that it belongs to, the outermost first.
    inlined: Vec<Inlined<'a>>,
    /// One for each event that has samples here.
    weights: Vec<Share>,
}

/// The place that an instruction names.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TargetOf<'a> {
    /// `jump`, `call` or `data`.
    kind: &'static str,
    address: u64,
    /// The function or variable there; `null` inside of the function itself, and where none is known.
    name: Option<&'a str>,
    /// Distance from its start.
    offset: Option<u64>,
}

/// A line of a source file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LineOf<'a> {
    /// Path as the compiler recorded it.
    file: &'a str,
    /// Counted from one; zero where the compiler vouches for none.
    line: u32,
}

/// An inlined function.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Inlined<'a> {
    name: &'a str,
    /// The line that calls it, in the function around it.
    call_site: Option<LineOf<'a>>,
}

/// A source line with samples.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Line<'a> {
    /// `null` for the instructions that no line is known of.
    line: Option<LineOf<'a>>,
    /// `null` where the file is not at hand.
    text: Option<String>,
    weights: Vec<Share>,
}

impl<'a> Document<'a> {
    fn of(
        annotated: &Annotated<'a>,
        options: &AnnotateOptions,
        line_text: LineText<'_>,
    ) -> Document<'a> {
        let profile = annotated.profile;
        let event = |info: &'a whit_profile::model::EventInfo| Event {
            name: info.name.exact(),
            samples: info.samples,
            period: info.period,
            lost_samples: info.lost_samples,
            precision: EventPrecision::of(info.precision),
        };
        let is_shown =
            |function: &&AnnotatedFunction| !options.skip_missing || function.code.is_ok();
        let functions = annotated.functions.iter().filter(is_shown);
        Document {
            format: "whit-annotate",
            version: VERSION,
            recording: Recording::of(&profile.recording),
            events: profile.events.iter().map(event).collect(),
            functions: functions
                .map(|function| Maker::new(annotated, function, options).function(line_text))
                .collect(),
            losses: Losses::of(&profile.losses),
            warnings: profile.warnings.iter().map(|w| warning_text(w).into_exact()).collect(),
        }
    }
}

/// Makes the documents of one function.
struct Maker<'a, 'o> {
    annotated: Annotated<'a>,
    function: &'a AnnotatedFunction,
    options: &'o AnnotateOptions,
    /// One for each event that has samples in the function.
    intervals: Vec<(EventId, FunctionIntervals)>,
}

impl<'a, 'o> Maker<'a, 'o> {
    fn new(
        annotated: &Annotated<'a>,
        function: &'a AnnotatedFunction,
        options: &'o AnnotateOptions,
    ) -> Maker<'a, 'o> {
        let Annotated { profile, weights, .. } = *annotated;
        let events = function.chosen.weights.iter().map(|(event, _)| event);
        let of = |event| (event, FunctionIntervals::new(profile, weights, function, event));
        let intervals = events.filter(|_| options.intervals).map(of).collect();
        Maker { annotated: *annotated, function, options, intervals }
    }

    fn function(&self, line_text: LineText<'_>) -> Function<'a> {
        let (function, profile) = (self.function, self.annotated.profile);
        let chosen = &function.chosen;
        let code = function.code.as_ref();
        let own =
            |intervals: &FunctionIntervals| PartIntervals { local: None, global: intervals.own };
        Function {
            name: self.annotated.name(function).exact(),
            dso: Dso::of(profile, chosen.dso),
            kernel: chosen.kernel,
            start: chosen.range.start.0,
            size_bytes: chosen.range.end.0 - chosen.range.start.0,
            instruction_set: code.ok().map(|code| code.instruction_set.name()),
            problem: code.err().map(ToString::to_string),
            weights: self.shares(&chosen.weights, own),
            instructions: match code {
                Ok(code) => code.rows.iter().map(|row| self.instruction(row, code)).collect(),
                Err(_) => self.addresses(),
            },
            lines: code
                .map_or(&[][..], |code| &code.lines)
                .iter()
                .map(|line| self.line(line, line_text))
                .collect(),
        }
    }

    fn shares(
        &self,
        weights: &EventWeights,
        of_part: impl Fn(&FunctionIntervals) -> PartIntervals,
    ) -> Vec<Share> {
        let wanted = self.options.event;
        let events = weights.iter().filter(|(event, _)| wanted.is_none_or(|it| it == *event));
        let share = |(event, weight): (EventId, whit_annotate::Weight)| {
            let known = self.intervals.iter().find(|(of, _)| *of == event);
            let part = known.map(|(_, intervals)| of_part(intervals)).unwrap_or_default();
            let low = |interval: Option<ShareInterval>| interval.map(|interval| interval.low);
            let high = |interval: Option<ShareInterval>| interval.map(|interval| interval.high);
            let function = self.function.chosen.weights.of(event);
            Share {
                event: event.0,
                samples: weight.samples,
                period: weight.period,
                percent: hists::percent(weight.period, self.annotated.whole(event).period),
                low_percent: low(part.global),
                high_percent: high(part.global),
                function_percent: hists::percent(weight.period, function.period),
                function_low_percent: low(part.local),
                function_high_percent: high(part.local),
            }
        };
        events.map(share).collect()
    }

    fn instruction(&self, row: &'a AnnotatedRow, code: &Annotation) -> Instruction<'a> {
        let instruction = &row.instruction;
        let at = instruction.address.0.wrapping_sub(self.function.chosen.range.start.0) as usize;
        let bytes = code.bytes.get(at..at + usize::from(instruction.size_bytes));
        let bytes = bytes.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect();
        Instruction {
            address: instruction.address.0,
            size_bytes: instruction.size_bytes,
            bytes,
            text: Some(&instruction.text),
            target: TargetOf::of(row),
            line: row.source.line.as_ref().map(LineOf::of),
            inlined: Inlined::all(&row.source),
            weights: self.shares(&row.weights, |all| all.row(instruction.address)),
        }
    }

    /// The samples of a function without code.
    fn addresses(&self) -> Vec<Instruction<'a>> {
        let addresses = self.function.chosen.addresses.iter();
        let one = |(address, weights): &(whit_types::Svma, EventWeights)| Instruction {
            address: address.0,
            size_bytes: 0,
            bytes: String::new(),
            text: None,
            target: None,
            line: None,
            inlined: Vec::new(),
            weights: self.shares(weights, |all| all.row(*address)),
        };
        addresses.map(one).collect()
    }

    fn line(&self, line: &'a AnnotatedLine, line_text: LineText<'_>) -> Line<'a> {
        Line {
            line: line.line.as_ref().map(LineOf::of),
            text: line.line.as_ref().filter(|_| self.options.source).and_then(line_text),
            weights: self.shares(&line.weights, |all| all.line(&line.line)),
        }
    }
}

impl<'a> TargetOf<'a> {
    fn of(row: &'a AnnotatedRow) -> Option<TargetOf<'a>> {
        let (kind, address) = match row.instruction.target? {
            Target::Jump(to) => ("jump", to),
            Target::Call(to) => ("call", to),
            Target::Data(to) => ("data", to),
        };
        let named = row.target_name.as_ref();
        Some(TargetOf {
            kind,
            address: address.0,
            name: named.map(|(name, _)| &**name),
            offset: named.map(|(_, offset)| *offset),
        })
    }
}

impl<'a> LineOf<'a> {
    fn of(line: &'a SourceLine) -> LineOf<'a> {
        LineOf { file: &line.file, line: line.line }
    }
}

impl<'a> Inlined<'a> {
    fn all(source: &'a SourceOf) -> Vec<Inlined<'a>> {
        let one = |(name, call_site): &'a (Arc<str>, Option<SourceLine>)| Inlined {
            name,
            call_site: call_site.as_ref().map(LineOf::of),
        };
        source.inlined.iter().map(one).collect()
    }
}

#[cfg(test)]
mod schema {
    use super::*;

    #[test]
    fn the_schema_is_published() {
        whit_schemas::assert_schema::<Document<'_>>("docs/schemas/annotate.json");
    }
}
