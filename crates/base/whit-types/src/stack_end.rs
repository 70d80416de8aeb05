//! Ends of stacks that were walked where they were: in the kernel.

/// Why a walk ended. Numbers are those of the BPF program and of recordings: they never change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StackEnd {
    /// It was no walk: a stack of the kernel.
    Kernel,
    /// The outermost frame was reached.
    EndOfStack,
    /// Memory could not be read without a fault.
    Unreadable,
    /// The next value lies below the stack pointer.
    OutsideStack,
    /// The address lies in no known mapping.
    NoMapping,
    /// The table of a binary was not loaded yet, and the frame pointer led nowhere.
    NoTableYet,
    /// Nothing says how to unwind there, and the frame pointer led nowhere.
    NoUnwindInfo,
    /// The frame address cannot be said in a rule.
    UnsupportedCfa,
    /// The place of the return address cannot.
    UnsupportedReturnAddress,
    /// That of the frame pointer cannot.
    UnsupportedFramePointer,
    /// That of the registers that a signal saved cannot.
    UnsupportedSignal,
    /// There were as many frames as there may be.
    FramesLimit,
    /// The stack pointer would not grow.
    Loop,
    /// A table said what no table says.
    BadTable,
    /// The process was not known yet.
    NoProcess,
    /// 32-bit code.
    Not64Bit,
    /// The binary could not be opened, and the frame pointer led nowhere.
    NotOpened,
}

impl StackEnd {
    /// All of them, by number.
    pub const ALL: [StackEnd; 17] = [
        StackEnd::Kernel,
        StackEnd::EndOfStack,
        StackEnd::Unreadable,
        StackEnd::OutsideStack,
        StackEnd::NoMapping,
        StackEnd::NoTableYet,
        StackEnd::NoUnwindInfo,
        StackEnd::UnsupportedCfa,
        StackEnd::UnsupportedReturnAddress,
        StackEnd::UnsupportedFramePointer,
        StackEnd::UnsupportedSignal,
        StackEnd::FramesLimit,
        StackEnd::Loop,
        StackEnd::BadTable,
        StackEnd::NoProcess,
        StackEnd::Not64Bit,
        StackEnd::NotOpened,
    ];

    /// The reason of a number.
    pub fn from_number(number: u8) -> Option<StackEnd> {
        StackEnd::ALL.get(usize::from(number)).copied()
    }

    /// A name for programs; never changes.
    pub fn name(self) -> &'static str {
        match self {
            StackEnd::Kernel => "kernel",
            StackEnd::EndOfStack => "end_of_stack",
            StackEnd::Unreadable => "unreadable",
            StackEnd::OutsideStack => "outside_stack",
            StackEnd::NoMapping => "no_mapping",
            StackEnd::NoTableYet => "no_table_yet",
            StackEnd::NoUnwindInfo => "no_unwind_info",
            StackEnd::UnsupportedCfa => "unsupported_cfa",
            StackEnd::UnsupportedReturnAddress => "unsupported_return_address",
            StackEnd::UnsupportedFramePointer => "unsupported_frame_pointer",
            StackEnd::UnsupportedSignal => "unsupported_signal",
            StackEnd::FramesLimit => "frames_limit",
            StackEnd::Loop => "loop",
            StackEnd::BadTable => "bad_table",
            StackEnd::NoProcess => "no_process",
            StackEnd::Not64Bit => "not_64bit",
            StackEnd::NotOpened => "not_opened",
        }
    }

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            StackEnd::Kernel => "a stack of the kernel",
            StackEnd::EndOfStack => "the outermost frame was reached",
            StackEnd::Unreadable => "the stack could not be read",
            StackEnd::OutsideStack => "the next value lies below the stack pointer",
            StackEnd::NoMapping => "the address lies in no known mapping",
            StackEnd::NoTableYet => "the unwind table was not loaded yet",
            StackEnd::NoUnwindInfo => "no unwind information covers the address",
            StackEnd::UnsupportedCfa => "no rule can say where the frame is",
            StackEnd::UnsupportedReturnAddress => "no rule can say where the return address is",
            StackEnd::UnsupportedFramePointer => "no rule can say where the frame pointer is",
            StackEnd::UnsupportedSignal => "the frame of a signal has an unknown form",
            StackEnd::FramesLimit => "the limit of frames was reached",
            StackEnd::Loop => "the stack pointer does not grow",
            StackEnd::BadTable => "the unwind table is damaged",
            StackEnd::NoProcess => "the process was not known yet",
            StackEnd::Not64Bit => "32-bit code",
            StackEnd::NotOpened => "the binary could not be opened",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_number_a_name_and_a_text() {
        for (number, end) in StackEnd::ALL.into_iter().enumerate() {
            assert_eq!(end as usize, number);
            assert_eq!(StackEnd::from_number(number as u8), Some(end));
            let others = StackEnd::ALL.into_iter().filter(|other| *other != end);
            assert!(others.into_iter().all(|o| o.name() != end.name() && o.text() != end.text()));
        }
        assert_eq!(StackEnd::from_number(StackEnd::ALL.len() as u8), None);
    }
}
