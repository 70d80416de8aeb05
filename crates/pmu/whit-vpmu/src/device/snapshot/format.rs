//! States as bytes with a version, for a migration between hosts with different releases.
//!
//! | bytes | contents |
//! |---|---|
//! | 8 | `WHITVPMU` |
//! | 2 | version |
//! | 4 | length of the body |
//! | 6 | kind (0 Intel, 1 AMD, 2 AMD's core extension, 3 PerfMonV2), Intel's version, general-purpose counters, fixed counters, bits of a counter, full-width writes |
//! | 8 each | counters, event selects of general-purpose counters, control of fixed counters, global control, global status |
//! | 1 | version 2: an interrupt is due |
//! | 8 | FNV-1a of all bytes before |
//!
//! Numbers are little-endian. Version 1 has registers alone, as KVM_GET_MSRS has them.

use core::fmt;

use alloc::vec::Vec;

use super::{StateError, VpmuState};
use crate::model::{PmuKind, PmuModel};

const MAGIC: [u8; 8] = *b"WHITVPMU";
const HEADER_BYTES: usize = MAGIC.len() + 2 + 4;
const SUM_BYTES: usize = 8;
/// The first version that knows of a due interrupt.
const WITH_PMI: u16 = 2;

/// Why bytes are no state, or a state no bytes of an older version.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The bytes begin as no snapshot does.
    NotASnapshot,
    /// The version is later than this release knows.
    Future {
        /// Version of the bytes.
        version: u16,
    },
    /// There is no such version.
    NoSuchVersion {
        /// The number that was asked for, or that the bytes have.
        version: u16,
    },
    /// Bytes are missing, or there are more than the header says.
    Length,
    /// The bytes changed after they were written.
    Damaged,
    /// The state itself is refused.
    State(StateError),
    /// Version 1 would lose the interrupt that is due: run the guest until it has it.
    InterruptDue,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::NotASnapshot => f.write_str("these bytes are no snapshot of a virtual PMU"),
            SnapshotError::Future { version } => write!(
                f,
                "the snapshot has version {version}, and this release reads up to version {}: restore it with a later \
                 release, or write it as version {} on its host",
                VpmuState::VERSION,
                VpmuState::VERSION
            ),
            SnapshotError::NoSuchVersion { version } => {
                write!(f, "there is no version {version}: versions are 1 to {}", VpmuState::VERSION)
            }
            SnapshotError::Length => {
                f.write_str("the snapshot is cut, or has more bytes than it says: copy it again")
            }
            SnapshotError::Damaged => f.write_str("the snapshot is damaged: copy it again"),
            SnapshotError::State(error) => write!(f, "the snapshot is whole, but {error}"),
            SnapshotError::InterruptDue => f.write_str(
                "an interrupt is due, which version 1 cannot say: let the guest take it before the snapshot",
            ),
        }
    }
}

impl core::error::Error for SnapshotError {}

impl VpmuState {
    /// The version that [`VpmuState::to_bytes`] writes. Each release reads its own version and all before.
    pub const VERSION: u16 = WITH_PMI;

    /// The state as bytes of the newest version.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.write(VpmuState::VERSION)
    }

    /// The state as bytes of an older version, for a host with an older release.
    ///
    /// # Errors
    /// Where there is no such version, or it cannot hold the state.
    pub fn to_bytes_of(&self, version: u16) -> Result<Vec<u8>, SnapshotError> {
        match version {
            1..WITH_PMI if self.pmi_due => Err(SnapshotError::InterruptDue),
            1..=VpmuState::VERSION => Ok(self.write(version)),
            _ => Err(SnapshotError::NoSuchVersion { version }),
        }
    }

    fn write(&self, version: u16) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(model_bytes(&self.model));
        let controls = [self.fixed_control, self.global_control, self.global_status];
        for value in self.counters.iter().chain(&self.selects).chain(&controls) {
            body.extend(value.to_le_bytes());
        }
        if version >= WITH_PMI {
            body.push(self.pmi_due.into());
        }
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(version.to_le_bytes());
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
        bytes.extend(sum(&bytes).to_le_bytes());
        bytes
    }

    /// The state in bytes of this version or one before.
    ///
    /// # Errors
    /// Where the bytes are none, damaged, from a later release, or a state that no guest can have come into.
    pub fn from_bytes(bytes: &[u8]) -> Result<VpmuState, SnapshotError> {
        let mut input = Input(bytes.strip_prefix(&MAGIC).ok_or(SnapshotError::NotASnapshot)?);
        let version = u16::from_le_bytes(input.take()?);
        match version {
            0 => return Err(SnapshotError::NoSuchVersion { version }),
            1..=VpmuState::VERSION => {}
            _ => return Err(SnapshotError::Future { version }),
        }
        let length = u32::from_le_bytes(input.take()?) as usize;
        if bytes.len() - HEADER_BYTES < SUM_BYTES
            || length != bytes.len() - HEADER_BYTES - SUM_BYTES
        {
            return Err(SnapshotError::Length);
        }
        let (summed, written) = bytes.split_at(bytes.len() - SUM_BYTES);
        if sum(summed).to_le_bytes() != written {
            return Err(SnapshotError::Damaged);
        }
        let mut body = Input(&summed[HEADER_BYTES..]);
        let model = model(body.take()?)?;
        let state = VpmuState {
            model,
            counters: body.values(model.slots())?,
            selects: body.values(model.general.into())?,
            fixed_control: body.value()?,
            global_control: body.value()?,
            global_status: body.value()?,
            pmi_due: version >= WITH_PMI && flag(body.take()?)?,
        };
        if !body.0.is_empty() {
            return Err(SnapshotError::Length);
        }
        state.check(&model).map_err(SnapshotError::State)?;
        Ok(state)
    }
}

fn model_bytes(model: &PmuModel) -> [u8; 6] {
    let (kind, version) = match model.kind {
        PmuKind::Intel { version } => (0, version),
        PmuKind::AmdK7 => (1, 0),
        PmuKind::AmdCore => (2, 0),
        PmuKind::AmdV2 => (3, 0),
    };
    let full_width = model.full_width_writes.into();
    [kind, version, model.general, model.fixed, model.width_bits, full_width]
}

/// A model of constructors alone: its numbers bound the lengths that are read.
fn model(bytes: [u8; 6]) -> Result<PmuModel, SnapshotError> {
    let [kind, version, general, fixed, width_bits, full_width] = bytes;
    let kind = match (kind, version) {
        (0, version) => PmuKind::Intel { version },
        (1, 0) => PmuKind::AmdK7,
        (2, 0) => PmuKind::AmdCore,
        (3, 0) => PmuKind::AmdV2,
        _ => return Err(SnapshotError::State(StateError::NoSuchModel)),
    };
    let full_width_writes = flag([full_width])?;
    let model = PmuModel { kind, general, fixed, width_bits, full_width_writes };
    model.is_valid().then_some(model).ok_or(SnapshotError::State(StateError::NoSuchModel))
}

fn flag([byte]: [u8; 1]) -> Result<bool, SnapshotError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(SnapshotError::State(StateError::ReservedBits)),
    }
}

/// FNV-1a: finds damage, not malice; a hostile snapshot meets the checks of the state.
fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(SnapshotError::Length)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn value(&mut self) -> Result<u64, SnapshotError> {
        self.take().map(u64::from_le_bytes)
    }

    fn values(&mut self, count: usize) -> Result<Vec<u64>, SnapshotError> {
        (0..count).map(|_| self.value()).collect()
    }
}
