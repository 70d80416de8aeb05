//! Made-up code: a loop for each place of a function, with lines, jumps and an inlined function.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use whit_annotate::Code;
use whit_page::HotCode;
use whit_profile::model::{
    BlockContext, BlockWeight, Blocks, DsoId, FunctionId, Profile, SampleRow,
};
use whit_profile::{CodeBytes, NoCode, SourceLine, SourceOf};
use whit_types::{InstructionSet, Svma};

/// `add %rcx,%rax; cmp %rdx,%rax; jne` to the first; `nop`: 16 bytes, which is the distance of frames.
const LOOP: [u8; 16] = [
    0x48, 0x01, 0xc8, 0x48, 0x39, 0xd0, 0x75, 0xf8, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
];

/// Made-up code of a made-up profile.
struct MadeUp<'a> {
    profile: &'a Profile,
    ranges: HashMap<FunctionId, (u64, u64)>,
    function_of: HashMap<u64, FunctionId>,
    /// Names of inlined functions and variables.
    name: &'a str,
}

impl MadeUp<'_> {
    fn line(&self, address: u64) -> Option<SourceLine> {
        let frame = self.profile.frames.iter().find(|frame| frame.address.0 == address & !0xf)?;
        let (file, line) = frame.source?;
        let file = self.profile.files[file.index()].exact();
        // The comparison stands in the line behind.
        Some(SourceLine { file: file.into(), line: line + u32::from(address & 0xf >= 3) })
    }
}

impl Code for MadeUp<'_> {
    fn function_at(&self, _dso: DsoId, address: Svma) -> Option<Range<Svma>> {
        let (start, end) = self.ranges[self.function_of.get(&address.0)?];
        Some(Svma(start)..Svma(end))
    }

    fn name_at(&self, _dso: DsoId, _address: Svma) -> Option<(Arc<str>, u64)> {
        Some((self.name.into(), 8))
    }

    fn bytes(&self, dso: DsoId, range: Range<Svma>) -> Result<CodeBytes, NoCode> {
        if self.profile.dsos[dso.index()].short_name.exact().starts_with("libc") {
            return Err(NoCode::NotInFile);
        }
        let loops = (range.end.0 - range.start.0).div_ceil(LOOP.len() as u64) as usize;
        Ok(CodeBytes { bytes: LOOP.repeat(loops), instruction_set: InstructionSet::X86_64 })
    }

    fn source_of(&self, _dso: DsoId, address: Svma) -> SourceOf {
        let call_site = self.line(address.0 & !0xf);
        let inlined = match address.0 & 0xf {
            3..8 => vec![(self.name.into(), call_site)],
            _ => Vec::new(),
        };
        SourceOf { line: self.line(address.0), inlined }
    }
}

const BLOCKS: u64 = 8;

/// Blocks of time between which shares scatter a little.
pub(crate) fn blocks(profile: &Profile) -> Blocks {
    let context = |row: &SampleRow| BlockContext {
        event: row.event,
        thread: row.thread,
        comm: row.comm,
        facets: row.facets,
    };
    let of_block = |block: u64| {
        let weight = |(context, row): (usize, &SampleRow)| BlockWeight {
            context: context as u32,
            node: row.node,
            period: {
                // Half of the blocks have less, the others as much more.
                let (tenths, more) = (10, context as u64 % 3);
                let part = if block.is_multiple_of(2) { tenths + more } else { tenths - more };
                row.period / BLOCKS * part / tenths
            },
        };
        profile.rows.iter().enumerate().map(weight).collect()
    };
    Blocks {
        length_ns: 1_000_000,
        contexts: profile.rows.iter().map(context).collect(),
        weights: (0..BLOCKS).map(of_block).collect(),
    }
}

/// Code for a profile whose other names come from `name`; the text of lines, too.
pub(crate) fn of(profile: &Profile, name: &str) -> HotCode {
    let mut ranges: HashMap<FunctionId, (u64, u64)> = HashMap::new();
    let mut function_of = HashMap::new();
    for frame in profile.frames.iter().filter(|frame| !frame.inlined) {
        let at = frame.address.0;
        let range = ranges.entry(frame.function).or_insert((at, at + 16));
        *range = (range.0.min(at), range.1.max(at + 16));
        function_of.insert(at, frame.function);
    }
    let profile = &Profile { blocks: Some(blocks(profile)), ..profile.clone() };
    let made_up = MadeUp { profile, ranges, function_of, name };
    let mut text = |line: &SourceLine| {
        let is_at_hand = !line.file.starts_with("net/");
        is_at_hand.then(|| format!("\tline {} of {name}", line.line))
    };
    HotCode::new(profile, &made_up, &mut text)
}
