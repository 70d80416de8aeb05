//! One instruction of a function.

use whit_types::Svma;

/// How instructions are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Syntax {
    /// As objdump and perf write those of x86: `mov %rsp,%rbp`.
    #[default]
    Att,
    /// As Intel's manuals do: `mov rbp,rsp`.
    Intel,
}

impl Syntax {
    /// Reads a word of objdump's option `-M`.
    pub fn parse(word: &str) -> Option<Syntax> {
        match word {
            "att" | "att-mnemonic" => Some(Syntax::Att),
            "intel" | "intel-mnemonic" => Some(Syntax::Intel),
            _ => None,
        }
    }
}

/// The place that an instruction names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// It may go on there.
    Jump(Svma),
    /// It calls the code there.
    Call(Svma),
    /// It reads, writes or names the data there.
    Data(Svma),
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Where it begins.
    pub address: Svma,
    /// Bytes; zero for an address that the code has no bytes of.
    pub size_bytes: u8,
    /// As an assembler reads it; `(bad)` where the bytes are no instruction.
    pub text: String,
    /// The place that it names, where it names one.
    pub target: Option<Target>,
}

impl Instruction {
    /// The text for bytes that are no instruction, as objdump has it.
    pub(crate) const BAD: &str = "(bad)";

    /// The address behind it.
    pub fn end(&self) -> Svma {
        Svma(self.address.0.saturating_add(u64::from(self.size_bytes)))
    }
}
