//! The code of the hottest functions, which the page shows with its source. `web/src/code.js` reads what this writes.

use serde::Serialize;
use whit_annotate::{Code, Syntax, Wanted, Weights, annotate};
use whit_profile::model::{FunctionId, Profile};
use whit_view::annotate::{Annotated, LineText, PanelFunction};
use whit_view::json_strings;

use super::tables::Tables;

/// Functions whose code a page holds at most, the hottest first.
pub const MAX_CODE_FUNCTIONS: usize = 40;
/// Functions below this share of every event have no code on the page, in percent.
pub const MIN_CODE_PERCENT: f64 = 0.2;
/// Code of one function that a page holds at most. Those of real programs reach some hundred KiB; a row for each
/// instruction is no reading matter then.
pub const MAX_CODE_FUNCTION_BYTES: u64 = 128 << 10;
/// Text of all code that a page holds at most, in bytes of JSON.
pub const MAX_CODE_BYTES: usize = 4 << 20;

/// The hottest functions taken apart, for [`Content`](super::Content).
#[derive(Clone, Debug, Default)]
pub struct HotCode {
    functions: Vec<(FunctionId, PanelFunction)>,
    /// Functions that the bound on bytes left out, and those with more code than a page holds of one.
    left_out: usize,
    too_large: Vec<(FunctionId, u64)>,
}

impl HotCode {
    /// Takes the hottest functions of a profile apart; `line_text` gives the text of source lines. Intervals come from
    /// the profile's blocks of time, if it was loaded with them.
    pub fn new(profile: &Profile, code: &impl Code, line_text: LineText<'_>) -> HotCode {
        let weights = Weights::new(profile);
        let wanted = Wanted::default();
        let chosen = weights.hottest(MAX_CODE_FUNCTIONS, MIN_CODE_PERCENT, &wanted, code);
        let mut hot = HotCode::default();
        let mut left_bytes = MAX_CODE_BYTES;
        for one in chosen {
            let (id, size_bytes) =
                (one.function, one.range.end.0.saturating_sub(one.range.start.0));
            if size_bytes > MAX_CODE_FUNCTION_BYTES {
                hot.too_large.push((id, size_bytes));
                continue;
            }
            let functions = [annotate(one, code, Syntax::default())];
            let annotated = Annotated { profile, weights: &weights, functions: &functions };
            let panel = PanelFunction::new(&annotated, &functions[0], line_text);
            match left_bytes.checked_sub(bytes_of(&panel)) {
                Some(left) => {
                    left_bytes = left;
                    hot.functions.push((id, panel));
                }
                None => hot.left_out += 1,
            }
        }
        hot
    }
}

fn bytes_of(panel: &PanelFunction) -> usize {
    let mut counter = Counter(0);
    // A counter takes all bytes.
    let written = json_strings::write_for_script(&mut counter, panel);
    written.map_or(usize::MAX, |()| counter.0)
}

struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The block of the page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeBlock {
    functions: Vec<CodeEntry>,
    left_out: usize,
    /// Function and bytes of its code.
    too_large: Vec<(u32, u64)>,
    max_functions: usize,
    min_percent: f64,
    max_function_bytes: u64,
    max_bytes: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CodeEntry {
    /// Index into the page's functions.
    function: u32,
    #[serde(flatten)]
    panel: PanelFunction,
}

/// Functions that the page's call tree folded away are left out: nothing there leads to them.
pub(crate) fn block(hot: &HotCode, tables: &Tables<'_>) -> CodeBlock {
    let place = |id: &FunctionId| tables.function_of.get(id).copied();
    let entry = |(id, panel): &(FunctionId, PanelFunction)| {
        Some(CodeEntry { function: place(id)?, panel: panel.clone() })
    };
    CodeBlock {
        functions: hot.functions.iter().filter_map(entry).collect(),
        left_out: hot.left_out,
        too_large: hot
            .too_large
            .iter()
            .filter_map(|(id, bytes)| Some((place(id)?, *bytes)))
            .collect(),
        max_functions: MAX_CODE_FUNCTIONS,
        min_percent: MIN_CODE_PERCENT,
        max_function_bytes: MAX_CODE_FUNCTION_BYTES,
        max_bytes: MAX_CODE_BYTES,
    }
}
