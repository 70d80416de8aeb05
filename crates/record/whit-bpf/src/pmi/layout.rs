//! The map's value, byte by byte: `struct cpu` of `bpf/pmi_meter.bpf.c`.

use super::Reading;

/// Handlers that are told apart on a CPU.
pub const HANDLERS_MAX: usize = 16;
/// Words of a `struct handler`.
const HANDLER_WORDS: usize = 4;

/// The work of one handler of non-maskable interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handler {
    /// Its address in the kernel.
    pub address: u64,
    /// Calls in which it handled something: interrupts.
    pub calls: u64,
    /// Time of these calls.
    pub time_ns: u64,
    /// The longest of them.
    pub longest_ns: u64,
}

impl Handler {
    /// Both, under the address of the first.
    pub(super) fn plus(self, other: &Handler) -> Handler {
        Handler {
            address: self.address,
            calls: self.calls.wrapping_add(other.calls),
            time_ns: self.time_ns.wrapping_add(other.time_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

/// Decodes one CPU's `struct cpu`; missing bytes are zero.
pub(super) fn decode(value: &[u8]) -> Reading {
    let words: Vec<u64> =
        value.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let (handlers, rest) = words.split_at(words.len().min(HANDLERS_MAX * HANDLER_WORDS));
    let handlers = handlers.as_chunks::<HANDLER_WORDS>().0.iter();
    let handlers = handlers.map(|&[address, calls, time_ns, longest_ns]| Handler {
        address,
        calls,
        time_ns,
        longest_ns,
    });
    Reading {
        handlers: handlers.filter(|handler| handler.address != 0).collect(),
        unplaced: rest.first().copied().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_read_as_the_program_writes_it() {
        let mut words = vec![0u64; HANDLERS_MAX * HANDLER_WORDS + 1];
        words[..4].copy_from_slice(&[1, 2, 3, 4]);
        words[4..8].copy_from_slice(&[5, 6, 7, 8]);
        words[HANDLERS_MAX * HANDLER_WORDS] = 9;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let wanted = [
            Handler { address: 1, calls: 2, time_ns: 3, longest_ns: 4 },
            Handler { address: 5, calls: 6, time_ns: 7, longest_ns: 8 },
        ];
        assert_eq!(decode(&bytes), Reading { handlers: wanted.to_vec(), unplaced: 9 });
        let cut = decode(&bytes[..39]);
        assert_eq!((cut.handlers, cut.unplaced), (wanted[..1].to_vec(), 0));
        assert_eq!(decode(&[]), Reading::default());
    }
}
