//! Cgroups that come and go, are many, are deep.

use crate::stat::cgroup::Cgroup;
use crate::stat::engines::ON;
use crate::stat::support::{check, counted, fields, probe};
use crate::stat::table::assert_close;

#[test]
fn a_thousand_cgroups_are_counted_in_short_intervals() {
    check("bpf::a_thousand_cgroups", || {
        probe::bpf_cgroups()?;
        let group = Cgroup::make("thousand", &[])?;
        (0..1000).for_each(|n| drop(group.child(&format!("c{n}"))));
        let work = "for n in 0 1 2 3 4 5 6 7 8 9; do /bin/true; done";
        let worker =
            format!("sh -c 'echo $$ > {}/c$0/cgroup.procs; {work}' $n", group.path.display());
        let script = format!("n=0; while [ $n -lt 1000 ]; do {worker}; n=$((n+20)); done");
        let pattern = format!("{}*", group.name);
        let line = [ON, "-a", "-x;", "-I", "100", "--summary", "--for-each-cgroup", &pattern];
        let line = [&line[..], &["-e", "page-faults", "sh", "-c", &script]].concat();
        let lines = fields(&counted(&line));
        let summary: Vec<_> = lines.iter().filter(|line| line[0] == "summary").collect();
        assert_eq!(summary.len(), 1001);
        let of = |cgroup: &str| {
            let line = summary.iter().find(|line| line[4] == cgroup).expect(cgroup);
            line[1].parse::<f64>().unwrap_or(0.0)
        };
        let working: Vec<f64> =
            (0..1000).step_by(20).map(|n| of(&group.of(&format!("c{n}")))).collect();
        assert!(working.iter().all(|faults| *faults > 100.0), "{working:?}");
        assert_eq!(of(&group.of("c1")), 0.0);
        assert_close("parent", [working.iter().sum(), of(&group.name)], 0.01, 0.0);
        Ok(())
    });
}
