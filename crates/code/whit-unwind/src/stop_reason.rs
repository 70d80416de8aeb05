//! Why a chain of frames ends.

use std::fmt;

/// Why a chain of frames ended where it did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StopReason {
    /// The outermost frame was reached.
    EndOfStack,
    /// The next value lies above the bytes that were recorded of the stack.
    StackDumpExhausted,
    /// The next value lies below the recorded stack pointer: another stack, or a wrong turn.
    OutsideStack,
    /// The return address lies in no known mapping (and is left out), or the instruction pointer
    /// does and the frame pointer leads nowhere.
    NoModule,
    /// The module does not say how to unwind at this address, and the frame pointer leads nowhere.
    NoUnwindInfo,
    /// The module could not be opened, and the frame pointer leads nowhere.
    Unopened,
    /// The module's entry for this address cannot be evaluated.
    BadUnwindInfo,
    /// The rule needs a register that was not recorded, or that is lost by now.
    MissingRegister,
    /// Instruction or stack pointer were not recorded, or belong to an unexpected architecture.
    BadRegs,
    /// The caller's limit of frames was reached.
    FramesLimit,
    /// The stack pointer would not grow: following on would never end.
    Loop,
}

impl StopReason {
    /// All reasons, in the order of their discriminants, for tables of counts. Recordings have these numbers
    /// (`WHIT_UNWOUND`), so new reasons come last.
    pub const ALL: [StopReason; 11] = [
        StopReason::EndOfStack,
        StopReason::StackDumpExhausted,
        StopReason::OutsideStack,
        StopReason::NoModule,
        StopReason::NoUnwindInfo,
        StopReason::Unopened,
        StopReason::BadUnwindInfo,
        StopReason::MissingRegister,
        StopReason::BadRegs,
        StopReason::FramesLimit,
        StopReason::Loop,
    ];

    /// True where the chain is known to be complete.
    pub fn is_complete(self) -> bool {
        self == StopReason::EndOfStack
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::EndOfStack => "the outermost frame was reached",
            StopReason::StackDumpExhausted => "the recorded part of the stack ends here",
            StopReason::OutsideStack => "the next value lies outside the recorded stack",
            StopReason::NoModule => "the address lies in no known mapping",
            StopReason::NoUnwindInfo => "no unwind information covers the address",
            StopReason::Unopened => "the binary could not be opened",
            StopReason::BadUnwindInfo => "the unwind information cannot be evaluated",
            StopReason::MissingRegister => "a register that is needed was not recorded",
            StopReason::BadRegs => "instruction or stack pointer were not recorded",
            StopReason::FramesLimit => "the limit of frames was reached",
            StopReason::Loop => "the stack pointer does not grow",
        })
    }
}
