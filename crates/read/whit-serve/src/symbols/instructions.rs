//! `/asm/v1`: instructions of a range of code.

use super::{Binaries, Loaded, Refused, Symbols, base_of, hex, hexadecimal};
use serde::{Deserialize, Serialize};
use whit_annotate::{Syntax, disassemble};
use whit_profile::CodeBytes;
use whit_profile::model::DsoId;
use whit_types::{InstructionSet, Svma};

/// Code of one request.
const MAX_CODE_BYTES: u64 = 1 << 20;
/// The last instruction may reach so far behind the range.
const MAX_INSTRUCTION_BYTES: u64 = 15;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    name: Option<String>,
    debug_name: Option<String>,
    debug_id: Option<String>,
    #[serde(deserialize_with = "hexadecimal")]
    start_address: u64,
    #[serde(deserialize_with = "hexadecimal")]
    size: u64,
    #[serde(default)]
    continue_until_function_end: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    start_address: String,
    size: String,
    arch: &'static str,
    syntax: &'static [&'static str],
    instructions: Vec<Instruction>,
}

/// Offset, then the text in each syntax.
#[derive(Serialize)]
#[serde(untagged)]
enum Instruction {
    Two(u64, String, String),
    One(u64, String),
}

impl<C: Binaries> Symbols<'_, C> {
    pub(crate) fn instructions(&self, body: &[u8]) -> String {
        self.answer(body, |loaded, request| loaded.disassembled(&request))
    }
}

impl<C: Binaries> Loaded<C> {
    fn disassembled(&self, request: &Request) -> Result<Answer, Refused> {
        let name = request.debug_name.as_ref().or(request.name.as_ref());
        let (Some(name), Some(id)) = (name, &request.debug_id) else {
            return Err("the request names no library: it needs debugName and debugId".to_owned());
        };
        let dso = self.library(name, id)?;
        let code = &self.code;
        let base = base_of(code, dso, name)?;
        let start = Svma(base.0.wrapping_add(request.start_address));
        let function_end = code.function_at(dso, start).map(|range| range.end.0 - start.0);
        let size_bytes = match function_end.filter(|_| request.continue_until_function_end) {
            Some(end) => request.size.max(end),
            None => request.size,
        };
        if size_bytes > MAX_CODE_BYTES {
            return Err(format!(
                "{size_bytes} bytes of code are more than the {MAX_CODE_BYTES} of one answer"
            ));
        }
        let read = bytes(code, dso, start, size_bytes, function_end)?;
        Ok(answer(&read, start, size_bytes, request.start_address))
    }
}

/// The bytes of the range, and of its last instruction where the code goes on.
fn bytes(
    code: &impl Binaries,
    dso: DsoId,
    start: Svma,
    size_bytes: u64,
    function_end: Option<u64>,
) -> Result<CodeBytes, Refused> {
    let read = |size_bytes: u64| -> Result<CodeBytes, Refused> {
        let end = start.0.checked_add(size_bytes).ok_or("no code has such an address")?;
        code.bytes(dso, start..Svma(end)).map_err(|reason| reason.to_string())
    };
    let behind = size_bytes + MAX_INSTRUCTION_BYTES;
    let end = function_end.map_or(size_bytes, |end| end.clamp(size_bytes, behind));
    read(behind).or_else(|_| read(end)).or_else(|_| read(size_bytes))
}

fn answer(code: &CodeBytes, start: Svma, size_bytes: u64, offset: u64) -> Answer {
    let set = code.instruction_set;
    let of = |syntax| {
        let all = disassemble(&code.bytes, start, set, syntax);
        all.into_iter().take_while(|one| one.address.0 - start.0 < size_bytes)
    };
    let end = of(Syntax::Intel).last().map_or(start, |last| last.end());
    let place = |address: Svma| address.0 - start.0;
    let (arch, syntax): (_, &[_]) = match set {
        InstructionSet::X86_64 => ("x86_64", &["Intel", "AT&T"]),
        InstructionSet::X86_32 => ("i686", &["Intel", "AT&T"]),
        InstructionSet::Aarch64 => ("aarch64", &["ARM"]),
    };
    let instructions = match set {
        InstructionSet::Aarch64 => {
            of(Syntax::Intel).map(|one| Instruction::One(place(one.address), one.text)).collect()
        }
        _ => {
            let both = of(Syntax::Intel).zip(of(Syntax::Att));
            both.map(|(intel, att)| Instruction::Two(place(intel.address), intel.text, att.text))
                .collect()
        }
    };
    Answer { start_address: hex(offset), size: hex(end.0 - start.0), arch, syntax, instructions }
}
