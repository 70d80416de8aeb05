//! A function's instructions and lines with their weights.

use crate::choice::Chosen;
use crate::code::Code;
use crate::disassemble::disassemble;
use crate::instruction::{Instruction, Syntax, Target};
use crate::jumps::Jumps;
use crate::weights::EventWeights;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use whit_profile::{CodeBytes, NoCode, SourceLine, SourceOf};
use whit_types::{InstructionSet, Svma};

/// An instruction with its weights.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnnotatedRow {
    /// The instruction itself.
    pub instruction: Instruction,
    /// Name of its target and the distance from there, where the target lies outside of the function.
    pub target_name: Option<(Arc<str>, u64)>,
    /// Line and inlined functions.
    pub source: SourceOf,
    /// Samples with an address in it.
    pub weights: EventWeights,
}

/// A source line with the weights of its instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnnotatedLine {
    /// `None` for instructions that no line is known of.
    pub line: Option<SourceLine>,
    /// Samples in its instructions.
    pub weights: EventWeights,
}

/// The code of a function, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Annotation {
    /// Encoding of the instructions.
    pub instruction_set: InstructionSet,
    /// Bytes of the code.
    pub bytes: Vec<u8>,
    /// Instructions by address.
    pub rows: Vec<AnnotatedRow>,
    /// Jumps inside of the function.
    pub jumps: Jumps,
    /// Lines with samples, by file and number; those of one file stand together.
    pub lines: Vec<AnnotatedLine>,
}

/// A function with the weights of its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnnotatedFunction {
    /// The function itself.
    pub chosen: Chosen,
    /// Its code, or why there is none.
    pub code: Result<Annotation, NoCode>,
}

/// Takes a function apart.
pub fn annotate(chosen: Chosen, code: &impl Code, syntax: Syntax) -> AnnotatedFunction {
    let annotated = match code.bytes(chosen.dso, chosen.range.clone()) {
        Ok(_) if !chosen.is_whole => Err(NoCode::NoBounds),
        Ok(bytes) => Ok(annotation(&chosen, bytes, code, syntax)),
        Err(error) => Err(error),
    };
    AnnotatedFunction { chosen, code: annotated }
}

fn annotation(chosen: &Chosen, code: CodeBytes, finder: &impl Code, syntax: Syntax) -> Annotation {
    let CodeBytes { bytes, instruction_set } = code;
    let instructions = disassemble(&bytes, chosen.range.start, instruction_set, syntax);
    let mut rows: Vec<AnnotatedRow> =
        instructions.into_iter().map(|instruction| row(instruction, chosen, finder)).collect();
    weigh(&mut rows, chosen, finder);
    let jumps = jumps(&rows, &chosen.range);
    let lines = lines(&rows);
    Annotation { instruction_set, bytes, rows, jumps, lines }
}

fn row(instruction: Instruction, chosen: &Chosen, finder: &impl Code) -> AnnotatedRow {
    let target_name = match instruction.target {
        Some(Target::Jump(to)) if chosen.range.contains(&to) => None,
        Some(Target::Jump(to) | Target::Call(to) | Target::Data(to)) => {
            finder.name_at(chosen.dso, to)
        }
        None => None,
    };
    let source = finder.source_of(chosen.dso, instruction.address);
    AnnotatedRow { instruction, target_name, source, weights: EventWeights::default() }
}

/// Gives each instruction the samples with an address in it. Addresses behind the bytes, which a cut file lacks, get
/// rows of their own.
fn weigh(rows: &mut Vec<AnnotatedRow>, chosen: &Chosen, finder: &impl Code) {
    let end = rows.last().map_or(chosen.range.start, |row| row.instruction.end());
    for (address, weights) in &chosen.addresses {
        if *address >= end {
            let text = "(no code)".to_owned();
            let missing = Instruction { address: *address, size_bytes: 0, text, target: None };
            let mut row = row(missing, chosen, finder);
            row.weights = weights.clone();
            rows.push(row);
            continue;
        }
        let behind = rows.partition_point(|row| row.instruction.address <= *address);
        // The first instruction begins where the function does.
        if let Some(row) = behind.checked_sub(1).and_then(|at| rows.get_mut(at)) {
            row.weights.add_all(weights);
        }
    }
}

fn jumps(rows: &[AnnotatedRow], range: &Range<Svma>) -> Jumps {
    let row_at = |address: Svma| rows.binary_search_by_key(&address, |row| row.instruction.address);
    let pair = |(from, row): (usize, &AnnotatedRow)| match row.instruction.target {
        Some(Target::Jump(to)) if range.contains(&to) => Some((from, row_at(to).ok()?)),
        _ => None,
    };
    Jumps::new(rows.len(), rows.iter().enumerate().filter_map(pair))
}

fn lines(rows: &[AnnotatedRow]) -> Vec<AnnotatedLine> {
    let mut sums: FxHashMap<Option<&SourceLine>, EventWeights> = FxHashMap::default();
    for row in rows.iter().filter(|row| !row.weights.is_empty()) {
        sums.entry(row.source.line.as_ref()).or_default().add_all(&row.weights);
    }
    let line = |(line, weights): (Option<&SourceLine>, EventWeights)| AnnotatedLine {
        line: line.cloned(),
        weights,
    };
    let mut lines: Vec<_> = sums.into_iter().map(line).collect();
    lines.sort_by(|a, b| a.line.cmp(&b.line));
    lines
}
