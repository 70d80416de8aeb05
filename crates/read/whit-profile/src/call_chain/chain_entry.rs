//! One address of a call chain.

use whit_types::Avma;

/// In whose code an address lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Side {
    /// The sampled process.
    User,
    /// Kernel mode.
    Kernel,
    /// A virtual machine's guest; its code is unknown.
    Guest,
}

/// The side of an address that stands alone: the kernel has the upper half.
pub(crate) fn side_of_address(address: Avma) -> Side {
    if address.0 >> 63 == 0 { Side::User } else { Side::Kernel }
}

/// One address of a call chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct ChainEntry {
    /// As recorded or unwound.
    pub address: Avma,
    /// True for the address behind a call; the call itself is just before it.
    pub is_return_address: bool,
    /// Whether the address is one of the kernel or of a process.
    pub side: Side,
}

impl ChainEntry {
    pub(crate) fn exact(address: Avma, side: Side) -> ChainEntry {
        ChainEntry { address, is_return_address: false, side }
    }

    /// The address by which function and line are looked up.
    pub(crate) fn lookup_address(self) -> Avma {
        Avma(self.address.0.wrapping_sub(u64::from(self.is_return_address)))
    }
}
