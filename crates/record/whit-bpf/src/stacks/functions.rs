//! Functions of interpreters with frames in the walks. They come once, on a ring of their own, with the memory that
//! names them: the code object of a module or a class is gone as soon as its code has run.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};
use whit_sys::privilege;

use crate::error::BpfError;
use crate::loading::{NEEDED, refused};

/// Bytes of `struct function_record` in front of its pieces.
const HEAD_BYTES: usize = 40 + PIECES.len() * 16;
/// Bytes of each piece: `enum function_piece`.
const PIECES: [usize; 9] = [256, 256, 192, 1024, 48, 32, 24, 64, 128];
const LISTEN: &str = "hear of interpreted functions";

/// A function with a frame in a walk: the head of `struct function_record` of `bpf/interpreters.h`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MetFunction {
    /// Its process, in the recorder's namespace.
    pub pid: u32,
    /// The interpreter's number.
    pub interpreter: u32,
    /// Address of its code object.
    pub code: u64,
    /// The number that differs between code objects that this address has in turn: [`identity`].
    pub identity: u64,
    /// Address of the names of its module; 0 where it could not be read.
    pub globals: u64,
}

impl MetFunction {
    /// Addresses of the frames of one function. Instructions at a greater distance have the last one.
    pub const FRAMES_BYTES: u64 = 1 << HASH_SHIFT;

    /// The first address of its frames. Those of instructions have their distance from the code object behind it.
    pub fn frames_start(&self) -> u64 {
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

/// A function, and the memory that the programs copied as they met it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announcement {
    /// It names process, code object and module.
    pub function: MetFunction,
    /// Addresses, with the bytes from there on.
    pieces: Vec<(u64, Box<[u8]>)>,
}

impl Announcement {
    /// One with these pieces of memory: addresses, with the bytes from there on.
    pub fn new(function: MetFunction, pieces: Vec<(u64, Box<[u8]>)>) -> Announcement {
        Announcement { function, pieces }
    }

    fn parse(bytes: &[u8]) -> Option<Announcement> {
        let function = MetFunction::parse(bytes)?;
        let word = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let (mut pieces, mut at) = (Vec::new(), HEAD_BYTES);
        for (number, room) in PIECES.into_iter().enumerate() {
            let address = word(40 + number * 8)?;
            let size = word(40 + (PIECES.len() + number) * 8)?.min(room as u64) as usize;
            let piece = bytes.get(at..at + size)?;
            if size > 0 {
                pieces.push((address, piece.into()));
            }
            at += room;
        }
        Some(Announcement { function, pieces })
    }

    /// Copies memory of the process as it was. Whether all of it is in one piece.
    pub fn copy(&self, address: u64, to: &mut [u8]) -> bool {
        let part = self.pieces.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(from..)?.get(..to.len())
        });
        part.is_some_and(|part| {
            to.copy_from_slice(part);
            true
        })
    }

    /// Bytes from an address on that are known, no more than `most`.
    pub fn known_bytes(&self, address: u64, most: u64) -> u64 {
        let known = self.pieces.iter().filter_map(|(start, bytes)| {
            let from = address.checked_sub(*start)?;
            (bytes.len() as u64).checked_sub(from)
        });
        known.max().unwrap_or(0).min(most)
    }
}

/// Mixes the words that differ between code objects of one address, as `interpreter_identity()` does.
pub fn identity(words: impl IntoIterator<Item = u64>) -> u64 {
    let mut words = words.into_iter().peekable();
    let mut mixed = HASH_SEED;
    while let Some(word) = words.next() {
        mixed = match words.peek() {
            Some(_) => (mixed ^ word).wrapping_mul(HASH_FACTOR),
            None => mix(mixed, word),
        };
    }
    mixed
}

/// `INTERPRETED` and its neighbours in `bpf/interpreter.h`.
const MARK: u64 = 1 << 62;
const HASH_SHIFT: u32 = 21;
const HASH_MASK: u64 = (1 << 40) - 1;
/// `UNWIND_HASH_SEED`.
const HASH_SEED: u64 = 0x243f_6a88_85a3_08d3;
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
    met: Arc<Mutex<Vec<Announcement>>>,
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
            let announced = Announcement::parse(bytes);
            heard.lock().unwrap_or_else(PoisonError::into_inner).extend(announced);
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
    pub fn wait(&self, timeout: Duration) -> Result<Vec<Announcement>, BpfError> {
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

    /// A record as the programs write it: two pieces are there, the second of them in part.
    fn record() -> Vec<u8> {
        let (mut addresses, mut sizes) = ([0u64; PIECES.len()], [0u64; PIECES.len()]);
        (addresses[0], sizes[0]) = (0x1000, 192);
        (addresses[2], sizes[2]) = (0x2ff0, 16);
        let head = [1u64, 2, 3, 4, 5].into_iter().chain(addresses).chain(sizes);
        let mut bytes: Vec<u8> = head.flat_map(u64::to_ne_bytes).collect();
        bytes.extend((0..PIECES.iter().sum::<usize>()).map(|at| at as u8));
        bytes
    }

    #[test]
    fn records_are_read_as_they_are_written() {
        let bytes = record();
        let announced = Announcement::parse(&bytes).expect("a function");
        let expected = MetFunction { pid: 5, interpreter: 4, code: 1, identity: 2, globals: 3 };
        assert_eq!(announced.function, expected);
        assert_eq!(Announcement::parse(&bytes[..35]), None);
        assert_eq!(Announcement::parse(&bytes[..HEAD_BYTES + 100]), None);
    }

    #[test]
    fn memory_is_copied_from_one_piece_alone() {
        let announced = Announcement::parse(&record()).expect("a function");
        let copy = |at: u64| {
            let mut to = [0; 4];
            announced.copy(at, &mut to).then_some(to)
        };
        let name = (PIECES[0] + PIECES[1]) as u8;
        assert_eq!(copy(0x1008), Some([8, 9, 10, 11]));
        assert_eq!(copy(0x2ff0), Some([name, name + 1, name + 2, name + 3]));
        assert_eq!([0xfff, 0x10bd, 0x2ffd, 0, u64::MAX].map(copy), [None; 5]);
        assert_eq!(announced.known_bytes(0x2ffc, 100), 4);
        assert_eq!(announced.known_bytes(0x1000, 100), 100);
        assert_eq!(announced.known_bytes(0x5000, 100), 0);
    }

    proptest! {
        #[test]
        fn frames_have_a_mark_and_room_for_a_distance(code: u64, identity: u64) {
            let function = MetFunction { pid: 1, interpreter: 1, code, identity, globals: 0 };
            let bits = function.frames_start();
            prop_assert_eq!(bits >> 61, 2);
            prop_assert_eq!(bits & (MetFunction::FRAMES_BYTES - 1), 0);
        }
    }
}
