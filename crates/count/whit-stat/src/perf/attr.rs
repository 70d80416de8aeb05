//! The attributes with which an event is opened to be counted: those of
//! `create_perf_stat_counter` in `tools/perf/util/stat.c`.

use whit_events::{PreciseIp, ResolvedEvent};
use whit_perfdata::attr::{Attr, AttrFlags, ReadFormat, pmu_type};

/// `PERF_COUNT_SW_DUMMY`.
const DUMMY: u64 = 9;

/// Attributes that are equal for all events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common {
    /// Children inherit events.
    pub(super) inherit: bool,
    /// The exec of the command switches them on.
    pub(super) on_exec: bool,
}

/// The role of an event in its set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Switched and read by itself.
    Alone,
    /// Switched and read for others too.
    Leader,
    /// Follows its leader.
    Member,
}

/// Attributes of `event`. Pinning and exclusive use are the set's, and its leader bears them.
pub(super) fn of_event(
    event: &ResolvedEvent,
    role: Role,
    (pinned, exclusive): (bool, bool),
    common: Common,
) -> Attr {
    let exclude = &event.exclude;
    let ([config, config1, config2, config3], bp_type) = event.attr_words();
    let mut attr = Attr {
        pmu_type: event.pmu_type,
        config,
        config1,
        config2,
        config3,
        bp_type,
        ..base(role, common, event.terms.inherit)
    };
    let leads = role != Role::Member;
    for (flag, on) in [
        (AttrFlags::EXCLUDE_USER, exclude.user),
        (AttrFlags::EXCLUDE_KERNEL, exclude.kernel),
        (AttrFlags::EXCLUDE_HV, exclude.hypervisor),
        (AttrFlags::EXCLUDE_GUEST, exclude.guest),
        (AttrFlags::EXCLUDE_HOST, exclude.host),
        (AttrFlags::EXCLUDE_IDLE, exclude.idle),
        (AttrFlags::PINNED, leads && pinned),
        (AttrFlags::EXCLUSIVE, leads && exclusive),
    ] {
        attr.flags = attr.flags.with(flag, on);
    }
    attr.set_precise_ip(match event.precise_ip {
        PreciseIp::Level(level) => level,
        // How exact an address is does not matter to a count.
        PreciseIp::Max => 0,
    });
    attr
}

/// The event that leads a set of ours: it counts nothing and needs no right to the kernel.
pub(super) fn of_dummy(common: Common, inherit: Option<bool>) -> Attr {
    let mut attr = base(Role::Leader, common, inherit);
    attr.pmu_type = pmu_type::SOFTWARE;
    attr.config = DUMMY;
    attr.flags |= AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
    attr
}

fn base(role: Role, common: Common, inherit: Option<bool>) -> Attr {
    let leads = role != Role::Member;
    let mut read_format = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    if role == Role::Leader {
        read_format |= ReadFormat::GROUP;
    }
    let flags = AttrFlags::default()
        .with(AttrFlags::INHERIT, common.inherit && inherit.unwrap_or(true))
        .with(AttrFlags::DISABLED, leads)
        .with(AttrFlags::ENABLE_ON_EXEC, leads && common.on_exec);
    Attr { read_format, flags, ..Attr::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;

    fn attr(text: &str, role: Role) -> Attr {
        let counter = &counters(text)[0];
        let set = (counter.event.pinned, counter.event.exclusive);
        of_event(&counter.event, role, set, Common { inherit: true, on_exec: true })
    }

    #[test]
    fn leaders_are_switched_and_members_follow() {
        let alone = attr("cycles:uD", Role::Alone);
        let switched = AttrFlags::DISABLED | AttrFlags::ENABLE_ON_EXEC | AttrFlags::PINNED;
        assert!(alone.flags.contains(switched | AttrFlags::INHERIT | AttrFlags::EXCLUDE_KERNEL));
        assert!(!alone.read_format.contains(ReadFormat::GROUP));
        let member = attr("cycles:uD", Role::Member);
        assert_eq!(member.flags.0 & switched.0, 0);
        assert!(attr("cycles", Role::Leader).read_format.contains(ReadFormat::GROUP));
        assert!(of_dummy(Common { inherit: true, on_exec: false }, Some(false)).flags.0 & 2 == 0);
    }

    #[test]
    fn an_event_that_is_counted_is_never_sampled() {
        let attr = attr("sched/period=5/,mem:0x1000/8:w".split(',').nth(1).unwrap(), Role::Alone);
        assert_eq!((attr.sample_period_or_freq, attr.sample_type.0), (0, 0));
        assert_eq!((attr.config1, attr.config2, attr.bp_type), (0x1000, 8, 2));
        assert_eq!(
            super::of_event(
                &counters("cycles:P")[0].event,
                Role::Alone,
                (false, false),
                Common { inherit: false, on_exec: false },
            )
            .precise_ip(),
            0
        );
    }
}
