//! Cgroups that come and go, are many, are deep.

use crate::cgroup::Cgroup;
use crate::engines::{ON, need_bpf};
use crate::support::{check, counted, fields, values};
use crate::table::{assert_close, assert_same_work, count, rows};

#[test]
fn a_cgroup_that_is_removed_keeps_its_count_and_another_of_its_name_is_another() {
    check("bpf::a_cgroup_that_is_removed_keeps_its_count", || {
        need_bpf()?;
        assert_same_work(|| {
            let group = Cgroup::make("removed", &["a"])?;
            let work = group.work_in("a");
            let a = group.path.join("a");
            // The kernel takes a moment to let go of tasks that have ended.
            let again = format!("until rmdir {0} 2>/dev/null; do :; done; mkdir {0}", a.display());
            let script = format!("{work}; {again}; {work}");
            let cgroups = format!("{},{}", group.of("a"), group.name);
            let line = [ON, "-a", "-x;", "-I", "10", "--summary", "--for-each-cgroup", &cgroups];
            let line = [&line[..], &["-e", "page-faults", "sh", "-c", &script]].concat();
            let lines = fields(&counted(&line));
            let summary: Vec<_> = lines.iter().filter(|line| line[0] == "summary").collect();
            let of = |index: usize| summary[index][1].parse::<f64>().unwrap();
            let (first, both) = (of(0), of(1));
            assert!(first > 100.0);
            let parts: f64 = values(&lines[..lines.len() - 2], "page-faults", 1).iter().sum();
            assert_eq!(parts, first + both, "intervals add up to the total");
            Ok([2.0 * first, both])
        })
    });
}

#[test]
fn cgroups_that_are_made_while_counting_count_for_their_parent() {
    check("bpf::cgroups_made_while_counting", || {
        need_bpf()?;
        assert_same_work(|| {
            let group = Cgroup::make("made", &["old"])?;
            let new = group.path.join("new");
            let script = format!(
                "mkdir -p {0}/deep; {1}; {2}",
                new.display(),
                group.work_in("new/deep"),
                group.work_in("old")
            );
            let cgroups = format!("{},{}", group.of("old"), group.name);
            let line = [ON, "-a", "--for-each-cgroup", &cgroups, "-e", "page-faults"];
            let text = counted(&[&line[..], &["sh", "-c", &script]].concat());
            let rows = rows(&text);
            let [old, all] =
                [&group.of("old"), &group.name].map(|g| count(&rows, "page-faults", g));
            Ok([2.0 * old, all])
        })
    });
}

#[test]
fn twenty_levels_count_what_is_below_them() {
    check("bpf::twenty_levels", || {
        need_bpf()?;
        assert_same_work(|| {
            let group = Cgroup::make("deep", &[])?;
            let levels: Vec<String> = (1..=20).map(|depth| vec!["n"; depth].join("/")).collect();
            let names: Vec<String> = levels.iter().map(|level| group.child(level)).collect();
            let (middle, deepest) = (&names[9], &names[19]);
            let script = format!("{}; {}", group.work_in(&levels[19]), group.work_in(&levels[14]));
            let cgroups = format!("{deepest},{middle},{}", group.name);
            let line = [ON, "-a", "--for-each-cgroup", &cgroups, "-e", "page-faults"];
            let text = counted(&[&line[..], &["sh", "-c", &script]].concat());
            let rows = rows(&text);
            let of = |name: &str| count(&rows, "page-faults", name);
            assert_eq!(of(middle), of(&group.name), "{text}");
            Ok([2.0 * of(deepest), of(middle)])
        })
    });
}

#[test]
fn a_thousand_cgroups_are_counted_in_short_intervals() {
    check("bpf::a_thousand_cgroups", || {
        need_bpf()?;
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
