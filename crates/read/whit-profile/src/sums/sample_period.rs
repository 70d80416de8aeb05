//! The count that a sample stands for.

use whit_perfdata::attr::{Attr, AttrFlags};
use whit_perfdata::sample::Sample;

/// The count that a sample stands for: its own, or that of its event.
#[inline]
pub(crate) fn period_of(attr: &Attr, sample: &Sample<'_>) -> u64 {
    let is_fixed = !attr.has(AttrFlags::FREQ);
    sample.period.unwrap_or(if is_fixed { attr.sample_period_or_freq } else { 1 })
}
