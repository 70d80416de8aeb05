use super::*;
use crate::bench::page;

/// Everything but the speed: the counts must add up.
#[test]
fn sessions_count_their_work() {
    let signal = OverflowSignal::block().unwrap();
    let events = Events::detect();
    for way in Way::ALL {
        let mut guest = Guest::new(way, &events).unwrap();
        let session = guest.sample(20, 1_000_000, &signal);
        assert_eq!(session.lengths_ns.len(), 20);
        assert_eq!(session.failures, 0, "{way:?}");
        assert!(session.calls >= 40, "a look and a new period at least: {}", session.calls);
        if way == Way::Recreate {
            assert!(session.opens >= 20 && session.opens_avoided == 0);
        } else {
            assert!(session.opens_avoided >= 20, "{}", session.opens_avoided);
        }
        let mut guest = Guest::new(way, &events).unwrap();
        let session = guest.count(10);
        let (opens, avoided) = if way == Way::Recreate { (10, 0) } else { (0, 10) };
        assert_eq!((session.opens, session.opens_avoided), (opens, avoided));
        assert_eq!((session.lengths_ns.len(), session.failures), (10, 0));
    }
}

#[test]
fn the_text_has_ratios_and_published_figures() {
    let row = |way, average: f64| Row {
        averages_ns: vec![average],
        summary_ns: [1.0, 2.0, average, 900_000.0],
        opens: 7,
        rotations: 2,
        ..Row::new(way)
    };
    let cold = |way, average| Cold { way, averages_ns: vec![average], starts_ns: vec![5.0] };
    let comparison = Comparison {
        events: "software events: task-clock".into(),
        period: 1000,
        rounds: 1,
        opening: vec![Opening { first_ns: 2e8, next_ns: 1e4 }],
        sampling: vec![row(Way::Recreate, 90_000.0), row(Way::Linger, 30_000.0)],
        counting: vec![],
        cold: vec![cold(Way::Recreate, 2e6), cold(Way::Linger, 1e4)],
    };
    let text = page(None, &Vpmu::Process(comparison));
    assert!(text.contains(" 3.00× |") && text.contains(" 200.0× |"), "{text}");
    assert!(text.contains("104923 → 48393 ns (2.16×)"), "{text}");
    assert!(text.contains("3.5 events opened for each change"), "{text}");
}
