//! Simulated stacks of arm64, walked on any machine: the walked functions are the called ones, and the offline unwinder
//! finds the same.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use whit_testing::check;
use whit_types::{Arch, Avma, Svma};
use whit_unwind::table::UnwindTable;
use whit_unwind::{
    AddressSpace, Bias, ModuleSections, ModuleUnwindInfo, StackDump, StopReason, Unwinder,
};

use crate::host::{END, Host, HostChain, HostMapping, HostStack, Image, TABLE_NONE};
use crate::simulated::{
    BASE, CALL_OFFSET, FUNCTION_SIZE, Function, Shape, Stopped, TEXT, module, return_address,
    signal_of_arm64, stop_in,
};

/// `UNWIND_RETURN_ADDRESS`.
const NO_RETURN_ADDRESS: u64 = 8;
/// A signature in the bits above an address of 48 bits.
const SIGNATURE: u64 = 0x00a5 << 48;
/// Where the vdso lies, and the return from a signal in it.
const VDSO: u64 = 0x7fff_f000_0000;
const SIGNAL_RETURN: std::ops::Range<u64> = 0x10..0x20;

/// A program with its tables, for both.
struct Program {
    image: Image,
    space: AddressSpace,
}

impl Program {
    fn new(functions: &[Function], in_debug_frame: bool) -> Program {
        let (mut image, mut space) = (Image::default(), AddressSpace::new());
        let end = TEXT + functions.len() as u64 * FUNCTION_SIZE;
        let of_program = (BASE, end, module(Arch::Aarch64, functions, in_debug_frame));
        let mut sections = ModuleSections::none(Arch::Aarch64);
        let signal_return = Svma(SIGNAL_RETURN.start)..Svma(SIGNAL_RETURN.end);
        sections.stack_switches.signal.push(signal_return);
        for (start, size, module) in [of_program, (VDSO, 0x1000, ModuleUnwindInfo::new(sections))] {
            let code = Svma(0)..Svma(size);
            let table = UnwindTable::build(Arch::Aarch64, &module, &[code]).ok();
            let table = table.map_or(TABLE_NONE, |table| image.add(&table));
            image.mappings.push(HostMapping { start, end: start + size, bias: start, table });
            space.map(Avma(start)..Avma(start + size), Bias(start), module);
        }
        Program { image, space }
    }

    /// Both walks.
    fn walk(
        &self,
        host: &Host,
        stopped: &Stopped,
        dump_at: u64,
    ) -> (HostChain, Vec<u64>, StopReason) {
        let regs = &stopped.regs;
        let register = |value: Option<u64>| value.unwrap_or(0);
        let stack = HostStack {
            ip: register(regs.ip()),
            sp: register(regs.sp()),
            fp: register(regs.fp()),
            extra: register(regs.lr()),
            bytes: stopped.bytes.clone(),
            ..HostStack::default()
        };
        let chain = host.walk(&self.image, &[stack]).remove(0);
        let dump = StackDump { sp: Avma(dump_at), bytes: &stopped.bytes, rest: None };
        let mut frames = Vec::new();
        let stop = Unwinder::new().unwind(&self.space, regs, dump, 127, &mut frames);
        (chain, frames.iter().map(|frame| frame.address.0).collect(), stop)
    }
}

/// Signs the return addresses in the stack.
fn sign(stopped: &mut Stopped) {
    for word in stopped.bytes.as_chunks_mut::<8>().0 {
        let value = u64::from_le_bytes(*word);
        if stopped.expected.contains(&value) {
            *word = (value | SIGNATURE).to_le_bytes();
        }
    }
}

/// Forms that rules have words for: others are `UNWIND_CFA`.
fn functions() -> impl Strategy<Value = Vec<Function>> {
    let shape =
        prop_oneof![Just(Shape::SpOnly), Just(Shape::SpAndSavedFp), Just(Shape::FramePointer),];
    let function =
        (shape, 2u64..2000).prop_map(|(shape, frame_by_16)| Function { shape, frame_by_16 });
    prop::collection::vec(function, 2..20)
}

/// How the thread was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the body of a function.
    Body,
    /// At the first instruction of a function, whose return address is in the link register.
    Entry,
    /// The handler of a signal returns to the first instruction of a function.
    Handler,
}

#[test]
fn simulated_stacks_of_arm64_are_walked_as_offline() {
    check("walk of simulated stacks of arm64", || {
        let host = Host::compile_for(Arch::Aarch64)?;
        let places = prop_oneof![Just(Place::Body), Just(Place::Entry), Just(Place::Handler)];
        let calls = prop::collection::vec(any::<prop::sample::Index>(), 1..60);
        let inputs = (functions(), calls, places, any::<bool>(), any::<bool>());
        let config = ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() };
        TestRunner::new(config)
            .run(&inputs, |(functions, calls, place, is_signed, in_debug_frame)| {
                let chain: Vec<usize> =
                    calls.iter().map(|call| 1 + call.index(functions.len() - 1)).collect();
                let program = Program::new(&functions, in_debug_frame);
                let mut stopped = stop_in(Arch::Aarch64, &functions, &chain);
                if is_signed {
                    sign(&mut stopped);
                }
                let (entry, caller) = (return_address(1) - CALL_OFFSET, stopped.expected[0]);
                let mut dump_at = stopped.sp;
                match place {
                    Place::Body => {}
                    Place::Entry => {
                        stopped.regs = stopped.regs.with_ip(entry).with_lr(caller | SIGNATURE);
                        stopped.expected.insert(0, entry);
                    }
                    Place::Handler => {
                        dump_at = signal_of_arm64(&mut stopped, entry);
                        let ip = VDSO + SIGNAL_RETURN.start + 4;
                        stopped.regs = stopped.regs.with_ip(ip).with_sp(dump_at);
                        stopped.expected.splice(0..0, [ip, entry]);
                    }
                }
                let (walked, offline, stop) = program.walk(&host, &stopped, dump_at);
                prop_assert_eq!(&walked.frames, &stopped.expected);
                prop_assert_eq!(walked.reason, END);
                prop_assert_eq!((&offline, stop), (&stopped.expected, StopReason::EndOfStack));
                Ok(())
            })
            .unwrap();
        Ok(())
    });
}

/// The rule at its entry says "in the link register" for ever; one use is all it has.
#[test]
fn a_link_register_of_arm64_is_used_once() {
    check("walk of a link register that lies", || {
        let host = Host::compile_for(Arch::Aarch64)?;
        let functions = [Function { shape: Shape::SpOnly, frame_by_16: 3 }; 4];
        let program = Program::new(&functions, false);
        let mut lying = stop_in(Arch::Aarch64, &functions, &[1]);
        let entry = return_address(3) - CALL_OFFSET;
        lying.regs = lying.regs.with_ip(entry).with_lr(entry + 1);
        let (walked, offline, stop) = program.walk(&host, &lying, lying.sp);
        assert_eq!((walked.frames, walked.reason), (vec![entry, entry + 1], NO_RETURN_ADDRESS));
        assert_eq!((offline, stop), (vec![entry, entry + 1], StopReason::MissingRegister));
        Ok(())
    });
}

/// Code without a table: a leaf's return address is in the link register, then frame pointers lead on.
#[test]
fn code_of_arm64_without_a_table_is_walked_by_link_register_and_frame_pointer() {
    check("walk of arm64 without a table", || {
        let host = Host::compile_for(Arch::Aarch64)?;
        let functions = [Function { shape: Shape::FramePointer, frame_by_16: 3 }; 6];
        let mut program = Program::new(&functions, false);
        let mut stopped = stop_in(Arch::Aarch64, &functions, &[1, 2, 3, 2, 4, 5, 1]);
        sign(&mut stopped);
        // Functions 2 and 3 lie in the middle, and have none.
        let without = BASE + TEXT + 2 * FUNCTION_SIZE;
        let mut behind = program.image.mappings[0];
        let end = without + 2 * FUNCTION_SIZE;
        program.image.mappings[0].end = without;
        behind.start = end;
        let none = HostMapping { start: without, end, bias: 0, table: TABLE_NONE };
        program.image.mappings.splice(1..1, [none, behind]);
        program.space.map(Avma(without)..Avma(end), Bias(0), ModuleUnwindInfo::none(Arch::Aarch64));
        let (walked, offline, stop) = program.walk(&host, &stopped, stopped.sp);
        assert_eq!((&walked.frames, walked.reason), (&stopped.expected, END));
        assert_eq!((offline, stop), (stopped.expected.clone(), StopReason::EndOfStack));
        Ok(())
    });
}
