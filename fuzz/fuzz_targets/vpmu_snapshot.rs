//! A snapshot of a virtual PMU of any bytes: refused, or the state that writes the same bytes.
#![no_main]

use whit_fuzz::fuzz_target;
use whit_vpmu::VpmuState;

/// The sum of a snapshot, which no search would find.
fn summed(body: &[u8]) -> Vec<u8> {
    let sum = body.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    [body, &sum.to_le_bytes()].concat()
}

fuzz_target!(|data| {
    let _ = VpmuState::from_bytes(data);
    let [version, body @ ..] = data else { return };
    let version = u16::from(version % 4);
    let length = (body.len() as u32).to_le_bytes();
    let bytes = summed(&[b"WHITVPMU".as_slice(), &version.to_le_bytes(), &length, body].concat());
    if let Ok(state) = VpmuState::from_bytes(&bytes) {
        assert_eq!(state.to_bytes_of(version).as_deref(), Ok(bytes.as_slice()));
    }
});
