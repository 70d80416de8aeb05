use super::*;
use proptest::prelude::*;

fn mm(number: u64) -> MmId {
    MmId::new(number).unwrap()
}

fn actions(policy: &mut impl LbrPolicy, events: &[LbrEvent]) -> std::vec::Vec<bool> {
    events.iter().map(|event| policy.on(*event) == Action::Reset).collect()
}

#[test]
fn threads_and_idle_time_cost_nothing() {
    let events = [
        LbrEvent::Installed(Running::User(mm(1))),
        LbrEvent::SchedOut(Some(mm(1))),
        LbrEvent::SchedIn(Running::User(mm(1))),
        LbrEvent::SchedOut(Some(mm(1))),
        LbrEvent::SchedIn(Running::Kernel),
        LbrEvent::SchedOut(None),
        LbrEvent::SchedIn(Running::User(mm(1))),
        LbrEvent::SchedOut(Some(mm(1))),
        LbrEvent::SchedIn(Running::User(mm(2))),
    ];
    let expected = [true, false, false, false, false, false, false, false, true];
    assert_eq!(actions(&mut OwnerTag::default(), &events), expected);
    assert_eq!(actions(&mut LastOwnerRule::default(), &events), expected);
    let classic = [true, false, true, false, true, false, true, false, true];
    assert_eq!(actions(&mut FlushAlways, &events), classic);
}

#[test]
fn a_borrowing_kernel_thread_is_like_a_task() {
    let mut policy = OwnerTag::default();
    let events = [
        LbrEvent::SchedIn(Running::User(mm(1))),
        LbrEvent::SchedIn(Running::Kernel),
        LbrEvent::Adopted(Running::Borrowed(mm(1))),
        LbrEvent::Adopted(Running::Borrowed(mm(2))),
        LbrEvent::Adopted(Running::Kernel),
        LbrEvent::SchedIn(Running::User(mm(1))),
    ];
    assert_eq!(actions(&mut policy, &events), [false, false, false, true, false, true]);
}

#[test]
fn after_an_exec_nothing_is_shown_until_the_next_switch() {
    let mut policy = OwnerTag::default();
    policy.on(LbrEvent::SchedIn(Running::User(mm(1))));
    let all = View { user: true, kernel: true };
    assert_eq!(policy.view(Running::User(mm(1)), BranchFilter::ALL), all);
    policy.on(LbrEvent::MmDropped);
    assert_eq!(policy.view(Running::User(mm(2)), BranchFilter::ALL), View::NONE);
    assert_eq!(policy.on(LbrEvent::SchedIn(Running::User(mm(2)))), Action::Reset);
    assert_eq!(policy.view(Running::User(mm(2)), BranchFilter::ALL), all);
    let user = View { user: true, kernel: false };
    assert_eq!(policy.view(Running::User(mm(2)), BranchFilter::USER), user);
    let kernel = View { user: false, kernel: true };
    assert_eq!(policy.view(Running::Kernel, BranchFilter::ALL), kernel);
    assert_eq!(policy.view(Running::Kernel, BranchFilter::USER), View::NONE);
}

#[test]
fn views_are_applied_to_addresses_with_any_flags() {
    const USER: u64 = 0x7fff_1234;
    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const MISPREDICTED: u64 = 1 << 63;
    let mut stack = BranchStack::new();
    for (from, to) in [(USER, USER), (USER | MISPREDICTED, USER), (USER, KERNEL), (KERNEL, KERNEL)]
    {
        stack.push(BranchRecord { from, to, info: 0 });
    }
    let left = |view: View| {
        let mut stack = stack;
        view.apply(&mut stack);
        stack.as_slice().len()
    };
    assert_eq!(left(View { user: true, kernel: true }), 4);
    assert_eq!(left(View { user: true, kernel: false }), 2);
    assert_eq!(left(View { user: false, kernel: true }), 2);
    assert_eq!(left(View::NONE), 0);
}

fn event() -> impl Strategy<Value = LbrEvent> {
    let running = prop_oneof![
        (1..4_u64).prop_map(|number| Running::User(mm(number))),
        Just(Running::Kernel),
    ];
    prop_oneof![
        6 => running.clone().prop_map(LbrEvent::SchedIn),
        2 => (0..4_u64).prop_map(|number| LbrEvent::SchedOut(MmId::new(number))),
        1 => Just(LbrEvent::MmDropped),
        1 => running.clone().prop_map(LbrEvent::Foreign),
        1 => running.prop_map(LbrEvent::Installed),
    ]
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]

    /// Never more resets than classic, on any trace and at every moment of it.
    #[test]
    fn resets_are_at_most_the_classic_ones(events in prop::collection::vec(event(), 0..200)) {
        let (mut ours, mut classic) = (OwnerTag::default(), FlushAlways);
        for event in events {
            let (ours, classic) = (ours.on(event), classic.on(event));
            prop_assert!(ours == Action::Keep || classic == Action::Reset, "{event:?}");
        }
    }
}
