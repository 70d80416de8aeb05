//! How much the property tests try.

use proptest::prelude::ProptestConfig;

/// Under Miri, which takes a thousand times as long, a few are what can be had.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig::with_cases(if cfg!(miri) { 2 } else { count })
}
