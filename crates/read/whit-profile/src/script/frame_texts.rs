//! The text of frames, made once for each place that chains pass through.

use super::{Format, ScriptedFrame};
use crate::call_chain::chain::CodePlace;
use crate::call_chain::chain_entry::ChainEntry;
use crate::first_pass::prepare::Prepared;
use crate::machine_model::process::SpaceId;
use crate::naming::place_names::PlaceNames;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use whit_types::OutsideText;

/// Bytes of text that one thread remembers.
const MAX_TEXT_BYTES: usize = 32 << 20;
/// Frames that one thread remembers.
const MAX_REMEMBERED: usize = 1 << 18;

/// The key of a frame's text: address, and address space, event and kind of address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FrameKey(u64, u64);

impl FrameKey {
    fn new(entry: ChainEntry, space: Option<SpaceId>, event: usize) -> FrameKey {
        let space = space.map_or(u64::from(u32::MAX), |space| u64::from(space.0));
        let kind = (entry.side as u64) << 1 | u64::from(entry.is_return_address);
        FrameKey(entry.address.0, space << 32 | (event as u64 & 0xff_ffff) << 8 | kind)
    }
}

/// The text of a frame, and whether the chain is printed no further.
#[derive(Clone)]
struct KnownFrame {
    text: Range<usize>,
    is_last: bool,
}

/// Texts of frames. One per thread.
#[derive(Default)]
pub(super) struct FrameTexts {
    known: FxHashMap<FrameKey, KnownFrame>,
    text: Vec<u8>,
    /// Frames of the current chain, innermost first.
    chain: Vec<Range<usize>>,
}

/// The text of a sample's call chain.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChainText<'a> {
    text: &'a [u8],
    frames: &'a [Range<usize>],
}

impl<'a> ChainText<'a> {
    /// The frames lie in these ranges of the text, innermost first.
    pub fn new(text: &'a [u8], frames: &'a [Range<usize>]) -> Self {
        ChainText { text, frames }
    }

    /// Appends the text of each frame, innermost first.
    pub fn append(&self, out: &mut Vec<u8>) {
        for frame in self.frames {
            out.extend_from_slice(self.text.get(frame.clone()).unwrap_or_default());
        }
    }
}

/// Data that all frames of a sample share.
#[derive(Clone, Copy)]
pub(super) struct FrameContext<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) names: &'a PlaceNames<'a>,
    pub(super) format: &'a dyn Format,
    pub(super) event: usize,
    /// False for events without call chains: inlined functions are then left out.
    pub(super) in_chain: bool,
    pub(super) space: Option<SpaceId>,
    /// Code comes and goes in the address space: its texts hold for this moment only.
    pub(super) is_jitted: bool,
}

impl FrameTexts {
    /// Begins the chain of another sample.
    pub(super) fn begin(&mut self) {
        self.chain.clear();
        if self.text.len() > MAX_TEXT_BYTES || self.known.len() > MAX_REMEMBERED {
            self.known.clear();
            self.text.clear();
        }
    }

    /// Adds a frame to the chain, and gives back whether it is the last one to print; `locate` is asked where text
    /// has to be made.
    pub(super) fn push(
        &mut self,
        entry: ChainEntry,
        context: FrameContext<'_>,
        locate: impl FnOnce() -> CodePlace,
    ) -> bool {
        let text = &mut self.text;
        let make = || {
            let start = text.len();
            let is_last = format_frames(entry, locate(), context, text);
            KnownFrame { text: start..text.len(), is_last }
        };
        let frame = if context.is_jitted {
            make()
        } else {
            let key = FrameKey::new(entry, context.space, context.event);
            self.known.entry(key).or_insert_with(make).clone()
        };
        self.chain.push(frame.text);
        frame.is_last
    }

    /// The formatted frames so far.
    pub(super) fn chain(&self) -> ChainText<'_> {
        ChainText { text: &self.text, frames: &self.chain }
    }
}

/// Formats the inlined functions at a place, innermost first, and the physical frame. Gives back whether one of them
/// ends the chain.
fn format_frames(
    entry: ChainEntry,
    place: CodePlace,
    context: FrameContext<'_>,
    out: &mut Vec<u8>,
) -> bool {
    let named = context.names.name(place);
    let dso = context.prepared.dso_path(place.dso).map(|path| OutsideText::new(&**path));
    let mut format = |function, function_offset, source: &Option<(Arc<str>, u32)>, inlined| {
        let source = source.as_ref().map(|(file, line)| (OutsideText::new(&**file), *line));
        let address = entry.address;
        let frame = ScriptedFrame { address, function, function_offset, dso, source, inlined };
        context.format.frame(context.event, &frame, out);
    };
    if context.in_chain {
        for inlined in named.inlined.iter().rev() {
            let name = OutsideText::new(&*inlined.name);
            format(Some(name), 0, &inlined.source, true);
            if context.format.ends_chain(name) {
                return true;
            }
        }
    }
    let from_start = named.address.0.wrapping_sub(named.function_start.0);
    let offset = from_start.wrapping_add(u64::from(entry.is_return_address));
    let function = named.function.as_deref().map(OutsideText::new);
    format(function, offset, &named.source, false);
    function.is_some_and(|name| context.format.ends_chain(name))
}
