use super::*;
use crate::bench::page;
use crate::vpmu::Vpmu;

#[test]
fn lending_costs_least_where_the_guest_profiles() {
    let comparison = compare().unwrap();
    let [emulation, reuse, linux, whit] = comparison.rows.as_slice() else { panic!("four rows") };
    // The handler stops, looks, acknowledges, reads, reloads, unmasks and starts; each exits, and so does the interrupt.
    assert_eq!((emulation.interrupt.exits, reuse.interrupt.exits), (9.0, 9.0));
    assert!(emulation.interrupt.opens >= 4.0 && reuse.interrupt.opens == 0.0, "{comparison:?}");
    // The interrupt and LVTPC.
    assert_eq!((linux.interrupt.exits, whit.interrupt.exits), (2.0, 2.0));
    assert_eq!((whit.interrupt.writes, whit.interrupt.reads), (1.0, 0.0));
    assert!(linux.interrupt.writes > 40.0);
    assert_eq!(whit.exit_idle, Cost::default());
    assert!(linux.exit_idle.writes >= 13.0 && reuse.exit_sampling == Cost::default());
    let text = page(None, &Vpmu::Registers(comparison));
    assert!(text.contains("| mediated, whit") && text.contains("10.45 %"), "{text}");
}
