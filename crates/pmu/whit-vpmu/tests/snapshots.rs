//! Snapshots as bytes: between versions, damaged, and from the future.

mod support;

use proptest::prelude::*;
use support::{device, models, run, write};
use whit_vpmu::{PmuModel, Simulated, SnapshotError, StateError, Vpmu, VpmuConfig, VpmuState};

const INSTRUCTIONS: u64 = 0x53_00c0;

/// A guest of this kind in the middle of a period.
fn state(model: PmuModel) -> VpmuState {
    let mut guest = device(model);
    let (counter, select) =
        if model.has_msr(0xc1) { (0xc1, 0x186) } else { (0xc001_0004, 0xc001_0000) };
    write(&mut guest, counter, 0xffff_ff00);
    write(&mut guest, select, INSTRUCTIONS);
    run(&mut guest, 0xc0, true, 60);
    guest.state()
}

/// Version 1 by hand: what an old release wrote.
fn first_version(state: &VpmuState) -> Vec<u8> {
    let bytes = state.to_bytes();
    let body = &bytes[14..bytes.len() - 9];
    let mut old = b"WHITVPMU\x01\x00".to_vec();
    old.extend((body.len() as u32).to_le_bytes());
    old.extend(body);
    summed(old)
}

fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    bytes.extend(sum.to_le_bytes());
    bytes
}

#[test]
fn every_model_comes_back_from_every_version() {
    for model in models() {
        let state = state(model);
        assert_eq!(VpmuState::from_bytes(&state.to_bytes()).as_ref(), Ok(&state));
        assert_eq!(state.to_bytes_of(1), Ok(first_version(&state)));
        for version in 1..=VpmuState::VERSION {
            let bytes = state.to_bytes_of(version).expect("a version");
            assert_eq!(VpmuState::from_bytes(&bytes).as_ref(), Ok(&state), "version {version}");
        }
    }
}

#[test]
fn a_guest_counts_on_across_releases() {
    let model = models()[1];
    let bytes = first_version(&state(model));
    let restored = VpmuState::from_bytes(&bytes).expect("an old snapshot");
    let config = VpmuConfig::new(model);
    let device = Vpmu::from_state(config, Simulated::new(), support::Line::nmi(), &restored);
    let mut device = device.expect("a device");
    device.on_vcpu_enter();
    run(&mut device, 0xc0, true, 0x100 - 60);
    assert_eq!(device.interrupt().nmis, 1, "the period ends where it would have");
}

#[test]
fn an_older_version_loses_nothing_in_silence() {
    let mut state = state(models()[1]);
    state.pmi_due = true;
    assert_eq!(VpmuState::from_bytes(&state.to_bytes()).as_ref(), Ok(&state));
    assert_eq!(state.to_bytes_of(1), Err(SnapshotError::InterruptDue));
    for version in [0, VpmuState::VERSION + 1] {
        let refused = Err(SnapshotError::NoSuchVersion { version });
        assert_eq!(state.to_bytes_of(version), refused);
    }
}

#[test]
fn what_cannot_be_restored_says_why() {
    let state = state(models()[1]);
    let whole = state.to_bytes();
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole[..whole.len() - 8].to_vec();
        change(&mut bytes);
        VpmuState::from_bytes(&summed(bytes)).unwrap_err()
    };
    assert_eq!(VpmuState::from_bytes(b"{\"model\":1}"), Err(SnapshotError::NotASnapshot));
    let future = refused(&|bytes| bytes[8] = 3);
    assert_eq!(future, SnapshotError::Future { version: 3 });
    let text = future.to_string();
    assert!(text.contains("version 3") && text.contains("up to version 2"), "{text}");
    assert_eq!(refused(&|bytes| bytes[8] = 0), SnapshotError::NoSuchVersion { version: 0 });
    assert_eq!(refused(&|bytes| bytes.push(0)), SnapshotError::Length);
    for kind in [1, 9] {
        let wrong = refused(&|bytes| bytes[14] = kind);
        assert_eq!(wrong, SnapshotError::State(StateError::NoSuchModel));
    }
    let reserved = SnapshotError::State(StateError::ReservedBits);
    // The top byte of the first counter, and the due interrupt.
    assert_eq!(refused(&|bytes| bytes[27] = 1), reserved);
    assert_eq!(refused(&|bytes| *bytes.last_mut().expect("a byte") = 2), reserved);
}

#[test]
fn any_damage_is_seen() {
    let whole = state(models()[1]).to_bytes();
    for length in 0..whole.len() {
        assert!(VpmuState::from_bytes(&whole[..length]).is_err(), "cut at {length}");
    }
    for bit in 0..8 * whole.len() {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(VpmuState::from_bytes(&bytes).is_err(), "bit {bit}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_answered(body in prop::collection::vec(any::<u8>(), 0..300), version in 1..3_u16) {
        let mut bytes = b"WHITVPMU".to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend(body);
        if let Ok(state) = VpmuState::from_bytes(&summed(bytes.clone())) {
            prop_assert_eq!(state.to_bytes_of(version), Ok(summed(bytes)));
        }
    }
}
