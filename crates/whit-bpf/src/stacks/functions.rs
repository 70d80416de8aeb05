//! Functions of interpreters whose frames the programs have met. They come once, on a ring of their own, so that somebody
//! reads their names while the process lives.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use whit_sys::privilege;

use crate::error::BpfError;
use crate::loading::{NEEDED, refused};

/// Bytes of `struct function_record`.
const RECORD_BYTES: usize = 40;
const LISTEN: &str = "hear of interpreted functions";

/// A function whose frame was met: `struct function_record` of `bpf/interpreters.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MetFunction {
    /// Its process, in the recorder's namespace.
    pub pid: u32,
    /// The interpreter's number.
    pub interpreter: u32,
    /// Address of its code object.
    pub code: u64,
    /// The word of the code object that tells it from others at this address.
    pub identity: u64,
    /// Address of the names of its module; 0 where it could not be read.
    pub globals: u64,
}

impl MetFunction {
    /// The bits that its frames have in front of the address of an instruction.
    pub fn frame_bits(&self) -> u64 {
        let mixed = mix(self.code, self.identity);
        MARK | (mixed >> 24 & HASH_MASK) << HASH_SHIFT
    }

    fn parse(bytes: &[u8]) -> Option<MetFunction> {
        let word = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        Some(MetFunction {
            code: word(0)?,
            identity: word(8)?,
            globals: word(16)?,
            interpreter: half(24)?,
            pid: half(32)?,
        })
    }
}

/// `INTERPRETED` and its neighbours in `bpf/interpreter.h`.
const MARK: u64 = 1 << 62;
const HASH_SHIFT: u32 = 47;
const HASH_MASK: u64 = 0x3fff;
/// `UNWIND_HASH_FACTOR`.
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// `unwind_mix()`.
fn mix(hash: u64, value: u64) -> u64 {
    let hash = (hash ^ value).wrapping_mul(HASH_FACTOR);
    hash ^ hash >> 32
}

/// The ring, for one thread.
pub struct Functions {
    ring: RingBuffer<'static>,
    met: Arc<Mutex<Vec<MetFunction>>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Functions").finish_non_exhaustive()
    }
}

impl Functions {
    pub(super) fn new(map: &MapHandle) -> Result<Functions, BpfError> {
        let met = Arc::new(Mutex::new(Vec::new()));
        let heard = met.clone();
        let hear = move |bytes: &[u8]| {
            let function = bytes.get(..RECORD_BYTES).and_then(MetFunction::parse);
            heard.lock().unwrap_or_else(PoisonError::into_inner).extend(function);
            0
        };
        let _in_force = privilege::raise(&NEEDED);
        let mut builder = RingBufferBuilder::new();
        builder.add(map, hear).map_err(refused(LISTEN))?;
        Ok(Functions { ring: builder.build().map_err(refused(LISTEN))?, met })
    }

    /// Waits for functions, no longer than `timeout`. A function comes once, or a few times.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses.
    pub fn wait(&self, timeout: Duration) -> Result<Vec<MetFunction>, BpfError> {
        match self.ring.poll(timeout) {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::Interrupted => {}
            other => other.map_err(refused(LISTEN))?,
        }
        Ok(std::mem::take(&mut *self.met.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_are_read_as_they_are_written() {
        let words = [1u64, 2, 3, 4, 5];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let function = MetFunction::parse(&bytes).expect("a function");
        let expected = MetFunction { pid: 5, interpreter: 4, code: 1, identity: 2, globals: 3 };
        assert_eq!((function, bytes.len()), (expected, RECORD_BYTES));
        assert_eq!(MetFunction::parse(&bytes[..35]), None);
    }

    proptest! {
        #[test]
        fn frames_have_a_mark_and_room_for_an_address(code: u64, identity: u64) {
            let function = MetFunction { pid: 1, interpreter: 1, code, identity, globals: 0 };
            let bits = function.frame_bits();
            prop_assert_eq!(bits >> 61, 2);
            prop_assert_eq!(bits & ((1 << HASH_SHIFT) - 1), 0);
        }
    }
}
