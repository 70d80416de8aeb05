//! The terms that every event understands.

use crate::resolve::error::ResolveErrorKind;
use crate::resolve::resolved::{ResolvedEvent, Sampling};
use crate::term::Term;

/// Sizes of stack dumps are multiples of this (the kernel refuses other sizes).
const STACK_SIZE_ALIGN_BYTES: u64 = 8;
/// Largest stack dump: the largest multiple of 8 that fits the record's 16-bit size.
const STACK_SIZE_MAX_BYTES: u64 = u16::MAX as u64 / STACK_SIZE_ALIGN_BYTES * STACK_SIZE_ALIGN_BYTES;

/// Applies the common terms in order, so that the last of a kind wins. Terms of the PMU are left
/// to [`super::pmu_terms`].
pub(super) fn apply_common(
    event: &mut ResolvedEvent,
    terms: &[Term],
) -> Result<(), ResolveErrorKind> {
    terms.iter().try_for_each(|term| apply(event, term))
}

fn apply(event: &mut ResolvedEvent, term: &Term) -> Result<(), ResolveErrorKind> {
    let own = &mut event.terms;
    match term {
        Term::Config(value) => event.config[0] = *value,
        Term::Config1(value) => event.config[1] = *value,
        Term::Config2(value) => event.config[2] = *value,
        Term::Config3(value) => event.config[3] = *value,
        Term::Name(name) => {
            event.name.clone_from(name);
            event.name_given = true;
        }
        Term::Period(period) => own.sampling = Some(Sampling::Period(*period)),
        Term::Frequency(hz) => own.sampling = Some(Sampling::FrequencyHz(*hz)),
        Term::BranchType(filter) => own.branch_type = Some(filter.clone()),
        Term::Time(set) => own.time = Some(*set),
        Term::CallGraph(mode) => own.call_graph = Some(*mode),
        Term::StackSize(bytes) => own.stack_size_bytes = Some(stack_size(*bytes)?),
        Term::MaxStack(frames) => own.max_stack = Some(fit("max-stack", *frames)?),
        Term::Inherit(set) => own.inherit = Some(*set),
        Term::Overwrite(set) => own.overwrite = Some(*set),
        Term::MaxEvents(count) => own.max_events = Some(*count),
        Term::PerCore(set) => own.per_core = *set,
        Term::AuxOutput(set) => own.aux_output = *set,
        Term::AuxAction(action) => own.aux_action = Some(action.clone()),
        Term::AuxSampleSize(bytes) => {
            own.aux_sample_size_bytes = Some(fit("aux-sample-size", *bytes)?);
        }
        Term::MetricId(id) => own.metric_id = Some(id.clone()),
        Term::DriverConfig(setting) => own.driver_config.push(setting.clone()),
        Term::Pmu { .. } => {}
    }
    Ok(())
}

fn stack_size(bytes: u64) -> Result<u32, ResolveErrorKind> {
    if bytes == 0 || bytes > STACK_SIZE_MAX_BYTES {
        let (term, max) = ("stack-size", STACK_SIZE_MAX_BYTES);
        return Err(ResolveErrorKind::OutOfRange { term, value: bytes, min: 1, max });
    }
    fit("stack-size", bytes.next_multiple_of(STACK_SIZE_ALIGN_BYTES))
}

fn fit<T: TryFrom<u64> + Bounded>(term: &'static str, value: u64) -> Result<T, ResolveErrorKind> {
    let out = ResolveErrorKind::OutOfRange { term, value, min: 0, max: T::LARGEST };
    T::try_from(value).map_err(|_| out)
}

trait Bounded {
    const LARGEST: u64;
}

impl Bounded for u16 {
    const LARGEST: u64 = u16::MAX as u64;
}

impl Bounded for u32 {
    const LARGEST: u64 = u32::MAX as u64;
}
