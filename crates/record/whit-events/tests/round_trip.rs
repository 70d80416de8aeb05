//! Printed events read back equal, and means the same to a machine.

mod support;

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use whit_events::*;

fn modifiers() -> impl Strategy<Value = Modifiers> {
    let flags = (any::<[bool; 6]>(), any::<[bool; 6]>(), 0..=Modifiers::MAX_PRECISE);
    flags.prop_map(|(a, b, precise)| Modifiers {
        user: a[0],
        kernel: a[1],
        hypervisor: a[2],
        guest: a[3],
        host: a[4],
        precise_max: a[5],
        sample_read: b[0],
        pinned: b[1],
        weak: b[2],
        exclude_idle: b[3],
        exclusive: b[4],
        bpf: b[5],
        precise,
    })
}

/// A word that is no built-in event, raw event or number.
fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z_*?\\[\\]!][a-zA-Z0-9_.*?!\\[\\]-]{0,12}".prop_filter("built in", |word| {
        let reads_as_itself = parse(word).is_ok_and(|list| {
            matches!(&list.items[0], Item::Event(Event { kind: EventKind::Named(name), .. }) if name == word)
        });
        reads_as_itself && word != "mem"
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{1,20}", "\\PC{1,10}", "['\"][a-z]{0,4}['\"]", "[ \\n\\\\'\"/,}é]{1,6}"]
}

fn pmu_term() -> impl Strategy<Value = Term> {
    let value = prop_oneof![
        Just(TermValue::Flag),
        any::<u64>().prop_map(TermValue::Number),
        text().prop_map(TermValue::Text),
    ];
    let name = "[a-zA-Z0-9_*?.:-]{1,10}"
        .prop_filter("common term", |name| common_term_names().all(|known| known != name));
    (name, value).prop_map(|(name, value)| Term::Pmu { name, value })
}

fn common_term() -> impl Strategy<Value = Term> {
    prop_oneof![
        any::<u64>().prop_map(Term::Config),
        any::<u64>().prop_map(Term::Config1),
        any::<u64>().prop_map(Term::Config2),
        any::<u64>().prop_map(Term::Config3),
        text().prop_map(Term::Name),
        any::<u64>().prop_map(Term::Period),
        any::<u64>().prop_map(Term::Frequency),
        text().prop_map(Term::BranchType),
        any::<bool>().prop_map(Term::Time),
        (0..CallGraph::ALL.len()).prop_map(|i| Term::CallGraph(CallGraph::ALL[i])),
        any::<u64>().prop_map(Term::StackSize),
        any::<u64>().prop_map(Term::MaxStack),
        any::<bool>().prop_map(Term::Inherit),
        any::<bool>().prop_map(Term::Overwrite),
        any::<u64>().prop_map(Term::MaxEvents),
        any::<bool>().prop_map(Term::PerCore),
        any::<bool>().prop_map(Term::AuxOutput),
        text().prop_map(Term::AuxAction),
        any::<u64>().prop_map(Term::AuxSampleSize),
        text().prop_map(Term::MetricId),
    ]
}

fn any_term() -> impl Strategy<Value = Term> {
    let driver = "[a-zA-Z0-9_.]{1,6}(=[a-zA-Z0-9_*?.:]{1,6})?".prop_map(Term::DriverConfig);
    prop_oneof![common_term(), pmu_term(), driver]
}

fn cache_event() -> impl Strategy<Value = CacheEvent> {
    let names: Vec<&str> = cache_event_names().collect();
    (0..names.len()).prop_map(move |i| CacheEvent::from_name(names[i]).expect("a known name"))
}

fn symbol() -> impl Strategy<Value = EventKind> {
    let bp = (any::<u64>(), option::of(any::<u64>()), any::<[bool; 3]>()).prop_map(
        |(address, len, a)| {
            let access = Access { read: a[0], write: a[1], execute: a[2] };
            EventKind::Breakpoint(Breakpoint { address, len, access })
        },
    );
    let tracepoint = (word(), "[a-zA-Z_*][a-zA-Z0-9_*?-]{0,12}")
        .prop_map(|(system, name)| EventKind::Tracepoint { system, name });
    prop_oneof![
        (0..HardwareEvent::ALL.len()).prop_map(|i| EventKind::Hardware(HardwareEvent::ALL[i])),
        (0..SoftwareEvent::ALL.len()).prop_map(|i| EventKind::Software(SoftwareEvent::ALL[i])),
        (0..ToolEvent::ALL.len()).prop_map(|i| EventKind::Tool(ToolEvent::ALL[i])),
        cache_event().prop_map(EventKind::Cache),
        any::<u64>().prop_map(EventKind::Raw),
        (any::<u32>(), any::<u64>())
            .prop_map(|(event_type, config)| EventKind::Numeric { event_type, config }),
        bp,
        tracepoint,
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let with_common = (symbol(), vec(common_term(), 0..4), modifiers());
    let of_pmu = (word().prop_map(EventKind::Pmu), vec(any_term(), 0..6), modifiers());
    let named = (word().prop_map(EventKind::Named), Just(Vec::new()), modifiers());
    prop_oneof![with_common, of_pmu, named].prop_map(|(kind, terms, modifiers)| Event {
        terms,
        modifiers,
        ..Event::new(kind)
    })
}

fn list() -> impl Strategy<Value = EventList> {
    let group = (option::of(word()), vec(event(), 1..4), modifiers())
        .prop_map(|(name, events, modifiers)| Item::Group(Group { name, events, modifiers }));
    let item = prop_oneof![event().prop_map(Item::Event), group];
    vec(item, 1..4).prop_map(|items| EventList { text: String::new(), items })
}

/// Events of the machine, so that most of them resolve.
fn known_event() -> impl Strategy<Value = Event> {
    const KNOWN: &[&str] = &[
        "cycles",
        "cs",
        "duration_time",
        "L1-dcache-loads",
        "r1a8",
        "1:0",
        "mem-loads",
        "mem-loads/ldlat=7/",
        "cas_count_read",
        "cpu/event=0x3c,inv/",
        "cpu/mem-loads/",
        "cpu/cycles/",
        "imc/event=4/",
        "uncore_imc_[01]/cas_count_read/",
        "power/energy-pkg/",
        "hv_24x7/PM_CYC,core=1/",
        "sched:*",
        "*:irq_handler_entry",
        "mem:0x1000/8:w",
    ];
    let terms = vec(prop_oneof![common_term(), Just(Term::Name("n".into()))], 0..3);
    (0..KNOWN.len(), terms, modifiers()).prop_map(|(index, terms, modifiers)| {
        let list = parse(KNOWN[index]).expect("a known event");
        let Some(Item::Event(event)) = list.items.into_iter().next() else { unreachable!() };
        let mut event = Event { modifiers, typed: String::new(), ..event };
        // A bare name takes no terms.
        if !matches!(event.kind, EventKind::Named(_)) {
            event.terms.extend(terms);
        }
        event
    })
}

fn known_list() -> impl Strategy<Value = EventList> {
    let group = (vec(known_event(), 1..4), modifiers())
        .prop_map(|(events, modifiers)| Item::Group(Group { name: None, events, modifiers }));
    let item = prop_oneof![known_event().prop_map(Item::Event), group];
    vec(item, 1..4).prop_map(|items| EventList { text: String::new(), items })
}

static MACHINE: LazyLock<PmuTable> = LazyLock::new(|| support::table(support::INTEL));

/// An event that was not given a name is shown as it was written.
fn without_names(mut groups: Vec<ResolvedGroup>) -> Vec<ResolvedGroup> {
    let events = groups.iter_mut().flat_map(|group| &mut group.events);
    events.filter(|event| !event.name_given).for_each(|event| event.name.clear());
    groups
}

proptest! {
    #[test]
    fn printed_lists_read_back_equal(list in list()) {
        let text = list.to_string();
        let read = parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        prop_assert_eq!(read, list, "{}", text);
    }

    #[test]
    fn printed_lists_mean_the_same(list in known_list()) {
        let resolved = |list: &EventList| {
            resolve(list, &MACHINE, &mut { support::TRACEPOINTS }).map(without_names)
        };
        let read = parse(&list.to_string()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        match (resolved(&list), resolved(&read)) {
            (Ok(before), Ok(after)) => prop_assert_eq!(before, after),
            (Err(before), Err(after)) => {
                prop_assert_eq!(before.kind.to_string(), after.kind.to_string());
            }
            (before, after) => prop_assert!(false, "{:?} {:?}", before, after),
        }
    }

    #[test]
    fn arbitrary_text_is_a_list_or_an_error(text in "[a-z0-9:/,{}='\"\\\\ @.*-]{0,40}|\\PC{0,40}") {
        if let Ok(list) = parse(&text) {
            let printed = list.to_string();
            prop_assert_eq!(parse(&printed), Ok(list), "{}", printed);
        }
    }
}
