//! The accepted language, and the errors for the rest.

use whit_events::*;

fn events(text: &str) -> Vec<Event> {
    let list = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let events = list.items.iter().flat_map(|item| match item {
        Item::Event(event) => vec![event.clone()],
        Item::Group(group) => group.events.clone(),
    });
    events.collect()
}

fn event(text: &str) -> Event {
    let mut all = events(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

fn name_term(event: &Event) -> &str {
    let name = event.terms.iter().find_map(|term| match term {
        Term::Name(name) => Some(name.as_str()),
        _ => None,
    });
    name.expect("a name term")
}

fn pmu_term(name: &str, value: u64) -> Term {
    Term::Pmu { name: name.to_owned(), value: TermValue::Number(value) }
}

#[test]
fn the_software_pmu_with_a_name_and_modifiers() {
    let cs = event("software/period=1,name=cs,config=0x3/Duk");
    assert_eq!(cs.kind, EventKind::Pmu("software".into()));
    assert_eq!(cs.terms, [Term::Period(1), Term::Name("cs".into()), Term::Config(3)]);
    assert_eq!(cs.modifiers.to_string(), "ukD");
    assert_eq!(
        events("cycles,instructions,ref-cycles,software/period=1,name=cs,config=0x3/Duk").len(),
        4
    );
}

/// The name as the program sees it after a shell has taken one layer of quoting off, in each of
/// the ways in which people write it, and with the quoting still in place.
#[test]
fn quoted_names_lose_their_quotes_and_nothing_else() {
    let rest = "period=0x3567e0,event=0x3c,cmask=0x1/Duk";
    for quoted in [
        r"'CPU_CLK_UNHALTED.THREAD:cmask=0x1'",
        r#""CPU_CLK_UNHALTED.THREAD:cmask=0x1""#,
        r#"'"CPU_CLK_UNHALTED.THREAD:cmask=0x1"'"#,
        r"\'CPU_CLK_UNHALTED.THREAD:cmask=0x1\'",
        r"\ 'CPU_CLK_UNHALTED.THREAD:cmask=0x1\ '",
        r" CPU_CLK_UNHALTED.THREAD:cmask=0x1\ ",
        r"CPU_CLK_UNHALTED.THREAD:cmask=0x1",
    ] {
        let text = format!("cpu/name={quoted},\n    {rest}");
        let event = event(&text);
        assert_eq!(name_term(&event), "CPU_CLK_UNHALTED.THREAD:cmask=0x1", "{quoted}");
        assert_eq!(
            event.terms[1..],
            [Term::Period(0x3567e0), pmu_term("event", 0x3c), pmu_term("cmask", 1)]
        );
        assert_eq!(event.modifiers.to_string(), "ukD");
    }
    let long = event(
        r"cpu/name=\ 'OFFCORE_RESPONSE:request=DEMAND_RFO:response=L3_HIT.SNOOP_HITM\ ',period=0x3567e0,event=0x3c,cmask=0x1/Duk",
    );
    assert_eq!(name_term(&long), "OFFCORE_RESPONSE:request=DEMAND_RFO:response=L3_HIT.SNOOP_HITM");
}

/// A list that was wrapped inside single quotes keeps `\`, blanks and line ends between events.
#[test]
fn wrapped_lists_keep_their_backslashes() {
    let text = "cpu/period=1,event=0x3c,name=\"CPU_CLK_UNHALTED.THREAD\"/Duk,\\ \\\n\
                cpu/period=1,umask=0x3,name=\"CPU_CLK_UNHALTED.REF_TSC\"/Duk,\\ \\\n\
                cpu/period=1,event=0xc0,name=\"INST_RETIRED.ANY\"/uk";
    let events = events(text);
    let names: Vec<_> = events.iter().map(name_term).collect();
    assert_eq!(names, ["CPU_CLK_UNHALTED.THREAD", "CPU_CLK_UNHALTED.REF_TSC", "INST_RETIRED.ANY"]);
}

#[test]
fn any_character_may_be_inside_quotes() {
    let text = r"cpu/name='a/b, c}: \'d\' \\ é',event=1/";
    assert_eq!(name_term(&event(text)), r"a/b, c}: 'd' \ é");
}

#[test]
fn symbols_and_their_aliases() {
    assert_eq!(event("cpu-cycles"), event("cycles"));
    assert_eq!(event("cs").kind, EventKind::Software(SoftwareEvent::ContextSwitches));
    assert_eq!(event("duration_time").kind, EventKind::Tool(ToolEvent::DurationTime));
    assert_eq!(event("l1d-read-miss"), event("L1-dcache-load-misses"));
    assert_eq!(event("branch-misses").kind, EventKind::Hardware(HardwareEvent::BranchMisses));
    assert!(matches!(event("branch-load-misses").kind, EventKind::Cache(_)));
    assert_eq!(event("mem-loads:pp").kind, EventKind::Named("mem-loads".into()));
    assert_eq!(event("mem-loads:pp").modifiers.precise, 2);
}

#[test]
fn raw_and_numeric_events() {
    assert_eq!(event("r1a8:u").kind, EventKind::Raw(0x1a8));
    assert_eq!(event("r0x1A8").kind, EventKind::Raw(0x1a8));
    assert_eq!(event("1:3:u").kind, EventKind::Numeric { event_type: 1, config: 3 });
    assert_eq!(event("1:0x3").modifiers, Modifiers::default());
}

#[test]
fn tracepoints_with_patterns_terms_and_modifiers() {
    let kind = |system: &str, name: &str| EventKind::Tracepoint {
        system: system.into(),
        name: name.into(),
    };
    assert_eq!(event("sched:sched_switch").kind, kind("sched", "sched_switch"));
    assert_eq!(event("sched:*").kind, kind("sched", "*"));
    assert_eq!(event("sys*:sys_enter_[or]*:u").kind, kind("sys*", "sys_enter_[or]*"));
    let with_terms = event("sched:sched_switch/call-graph=no,max-stack=8/uk");
    assert_eq!(with_terms.terms, [Term::CallGraph(CallGraph::None), Term::MaxStack(8)]);
    assert_eq!(with_terms.modifiers.to_string(), "uk");
}

#[test]
fn breakpoints() {
    let bp = |len, read, write, execute| {
        EventKind::Breakpoint(Breakpoint {
            address: 0x1000,
            len,
            access: Access { read, write, execute },
        })
    };
    assert_eq!(event("mem:0x1000").kind, bp(None, false, false, false));
    assert_eq!(event("mem:0x1000:x").kind, bp(None, false, false, true));
    assert_eq!(event("mem:4096/8:rw:u").kind, bp(Some(8), true, true, false));
    assert_eq!(event("mem:0x1000:u").kind, bp(None, false, false, false));
    assert_eq!(event("mem:0x1000:w/name=watch/u").terms, [Term::Name("watch".into())]);
}

#[test]
fn groups() {
    let list = parse("{cycles:p,instructions}:S, work{cs,faults}").unwrap();
    let Item::Group(first) = &list.items[0] else { panic!("{list:?}") };
    assert_eq!((first.events.len(), first.modifiers.sample_read), (2, true));
    let Item::Group(second) = &list.items[1] else { panic!("{list:?}") };
    assert_eq!(second.name.as_deref(), Some("work"));
}

#[test]
fn every_common_term() {
    let text = "cpu/event=0x3c,umask=0x1,cmask=1,inv,edge,period=5,freq=7,name=x,config=1,config1=2,\
        config2=3,config3=4,call-graph=dwarf,stack-size=8192,time,no-time,time=0,max-stack=3,overwrite,\
        no-overwrite,percore,inherit,no-inherit,nr=2,aux-output,aux-sample-size=9,branch_type=any,\
        metric-id=m,@cfg=1/pp";
    assert_eq!(event(text).terms.len(), 29);
    assert_eq!(event(text).modifiers.precise, 2);
    assert_eq!(event("cpu//u").terms, []);
    assert_eq!(
        event("cpu/mem-loads/").terms,
        [Term::Pmu { name: "mem-loads".into(), value: TermValue::Flag }]
    );
}

#[test]
fn an_event_remembers_how_it_was_written() {
    let all = events(" cs , {cpu/event=0x3C/u,faults:k}:S");
    let typed: Vec<_> = all.iter().map(|e| (e.typed.as_str(), e.offset)).collect();
    assert_eq!(typed, [("cs", 1), ("cpu/event=0x3C/u", 7), ("faults:k", 24)]);
}

#[test]
fn errors_have_place_and_cause() {
    let cases = [
        ("", 0, "an event"),
        ("cycles,", 7, "an event"),
        ("cycles instructions", 7, "`,` or the end of the list"),
        ("cycles:ux", 8, "a modifier"),
        ("cycles:uu", 8, "modifier u only once"),
        ("cycles:pppp", 10, "at most 3 p"),
        ("{cycles,cs", 0, "a closing `}` for the group opened"),
        ("cpu/event=1", 3, "a closing `/` for the terms opened"),
        ("cpu/event=0x1g/", 13, "a decimal or 0x-hexadecimal number"),
        ("cpu/period=99999999999999999999/", 11, "a number of at most 64 bits"),
        ("cpu/name='abc/", 9, "a closing quote"),
        ("cpu/name='abc'x/", 14, "`,` or `/` after the closing quote"),
        ("cpu/name=''/", 9, "not empty"),
        ("cpu/name/", 8, "`=` and a value for `name`"),
        ("cpu/time=2/", 9, "0 or 1 for `time`"),
        ("mem:x", 4, "an address"),
        ("mem:0x10:rr", 10, "each of r, w, x at most once"),
        ("L1-icache-stores", 0, "load or prefetch for L1-icache"),
        ("sched:", 6, "a tracepoint of sched, or modifiers"),
        ("12", 2, "`:` and a config number"),
        ("4294967296:1", 0, "an event type of at most 32 bits"),
    ];
    for (text, position, expected) in cases {
        let error = parse(text).expect_err(text);
        assert_eq!(error.position(), position, "{text}: {error}");
        assert!(error.expected.contains(expected), "{text}: {error}");
    }
}

#[test]
fn errors_suggest_the_nearest_name() {
    let error = parse("cycles/perod=100/").unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("period"));
    let message = error.to_string();
    assert!(message.starts_with("expected a term that this event understands (config, config1"));
    let place =
        "at character 8, found `p`\n  cycles/perod=100/\n         ^\ndid you mean `period`?";
    assert!(message.ends_with(place), "{message}");
    let error = parse("cs,cycles/call-graph=dwraf/").unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("dwarf"));
}

#[test]
fn length_and_terms_are_bounded() {
    assert!(parse(&"a".repeat(MAX_TEXT_BYTES + 1)).is_err());
    let terms = vec!["inv"; MAX_TERMS + 1].join(",");
    assert!(parse(&format!("cpu/{terms}/")).unwrap_err().expected.contains("at most 256 terms"));
}
