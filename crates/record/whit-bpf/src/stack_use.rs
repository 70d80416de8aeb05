//! The stack that programs use, as the verifiers of kernels before Linux 6.13 add it up: along each chain of calls. Newer
//! ones give some programs a stack of their own, so that loading here does not show it.

use std::collections::{BTreeMap, HashMap};

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind, SymbolSection};

use crate::OBJECTS;
use crate::packed_object::PackedObject;

/// `MAX_BPF_STACK`.
const STACK_BYTES: u64 = 512;
/// The verifier rounds the stack of a function up to a multiple of this, and at least to this.
const ROUNDED_BYTES: u64 = 32;
const INSTRUCTION_BYTES: u64 = 8;
/// The register with the upper end of the stack.
const FRAME: u8 = 10;

/// Where a function is: its section and its address there.
type Place = (usize, u64);

#[derive(Default)]
struct Function {
    name: String,
    stack_bytes: u64,
    callees: Vec<Place>,
}

/// An instruction: `struct bpf_insn` of `include/uapi/linux/bpf.h`.
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    to: u8,
    from: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    fn of(bytes: [u8; 8]) -> Instruction {
        let [code, registers, low, high, immediate @ ..] = bytes;
        Instruction {
            code,
            to: registers & 15,
            from: registers >> 4,
            offset: i16::from_le_bytes([low, high]),
            immediate: i32::from_le_bytes(immediate),
        }
    }

    /// Bytes of the stack that it names, `before` the one before it.
    fn stack_bytes(self, before: Option<Instruction>) -> u64 {
        let base = match self.code & 7 {
            // Loads.
            1 => self.from,
            // Stores.
            2 | 3 => self.to,
            // `r = r10; r += -16`.
            7 if self.code == 0x07 => {
                let is_copy = |it: Instruction| (it.code, it.from, it.to) == (0xbf, FRAME, self.to);
                let is_address = before.is_some_and(is_copy) && self.immediate < 0;
                return if is_address { u64::from(self.immediate.unsigned_abs()) } else { 0 };
            }
            _ => return 0,
        };
        if base == FRAME && self.offset < 0 { u64::from(self.offset.unsigned_abs()) } else { 0 }
    }

    /// A call of another function of the object, and not of a helper.
    fn is_call(self) -> bool {
        (self.code, self.from) == (0x85, 1)
    }
}

fn functions(file: &object::File<'_>) -> BTreeMap<Place, Function> {
    let mut functions = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        let SymbolSection::Section(section) = symbol.section() else { continue };
        let code = file.section_by_index(section).expect("a section");
        let relocations: HashMap<u64, Place> = code
            .relocations()
            .filter_map(|(at, relocation)| {
                let RelocationTarget::Symbol(target) = relocation.target() else { return None };
                let target = file.symbol_by_index(target).expect("a symbol");
                let SymbolSection::Section(section) = target.section() else { return None };
                Some((at, (section.0, target.address())))
            })
            .collect();
        let bytes = code.data_range(symbol.address(), symbol.size()).expect("code").expect("code");
        let mut function =
            Function { name: symbol.name().expect("a name").to_owned(), ..Function::default() };
        let mut before = None;
        for (number, bytes) in (0..).zip(bytes.chunks_exact(INSTRUCTION_BYTES as usize)) {
            let at = symbol.address() + number * INSTRUCTION_BYTES;
            let instruction = Instruction::of(bytes.try_into().expect("eight bytes"));
            function.stack_bytes = function.stack_bytes.max(instruction.stack_bytes(before));
            before = Some(instruction);
            let steps = |count: i32| (i64::from(count) + 1) * INSTRUCTION_BYTES as i64;
            match relocations.get(&at) {
                // Behind the symbol, where that is a section.
                Some((section, start)) if instruction.is_call() => {
                    let target = start.wrapping_add_signed(steps(instruction.immediate));
                    function.callees.push((*section, target));
                }
                None if instruction.is_call() => {
                    let target = at.wrapping_add_signed(steps(instruction.immediate));
                    function.callees.push((section.0, target));
                }
                // The address of a function that a helper calls.
                Some(target) => function.callees.push(*target),
                None => {}
            }
        }
        functions.insert((section.0, symbol.address()), function);
    }
    functions
}

/// The most stack of a chain of calls from a function on, and the names in it.
fn deepest(functions: &BTreeMap<Place, Function>, from: Place) -> (u64, Vec<&str>) {
    // The address of data is none of a function.
    let Some(function) = functions.get(&from) else { return (0, Vec::new()) };
    let below = function.callees.iter().map(|callee| deepest(functions, *callee)).max();
    let (bytes, mut names) = below.unwrap_or_default();
    names.push(&function.name);
    (bytes + function.stack_bytes.max(1).next_multiple_of(ROUNDED_BYTES), names)
}

#[test]
fn no_chain_of_calls_uses_more_stack_than_old_kernels_have() {
    let mut chains = 0;
    for packed in OBJECTS {
        let bytes = PackedObject { packed }.unpacked();
        let file = object::File::parse(&*bytes).expect("an object");
        let functions = functions(&file);
        for place in functions.keys() {
            let (bytes, names) = deepest(&functions, *place);
            assert!(bytes <= STACK_BYTES, "{bytes} bytes, the innermost first: {names:?}");
            chains += usize::from(names.len() > 3);
        }
    }
    assert!(chains > 0, "no function calls another");
}
