//! Which cgroups are counted: names, patterns, all.

use std::sync::Arc;

use whit_events::glob_matches;
use whit_host::cgroup::Hierarchy;
use whit_host::roots::Roots;
use whit_types::OutsideText;

use crate::counter::Counter;
use crate::error::StatError;

/// Most counters that cgroups and events may make together.
pub const COUNTERS_MAX: usize = 1 << 18;

/// Cgroups beside those that `-G` gave to single events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CgroupChoice {
    /// No cgroups beside them.
    #[default]
    AsGiven,
    /// Every event in each of these: names, shell patterns, or (with `^`, `$`, `|`, `(`, `+` or
    /// `.*`) regular expressions as perf takes them.
    Each(Vec<String>),
    /// Every event in each cgroup that there is.
    All,
}

/// The counters for all chosen cgroups: for each, all events in order.
pub fn expand(
    counters: Vec<Counter>,
    choice: &CgroupChoice,
    roots: &Roots,
) -> Result<Vec<Counter>, StatError> {
    let names = match choice {
        CgroupChoice::AsGiven => return Ok(counters),
        CgroupChoice::Each(patterns) => chosen(patterns, roots)?,
        CgroupChoice::All => existing(roots)?,
    };
    if names.len() * counters.len() > COUNTERS_MAX {
        let (cgroups, events) = (names.len(), counters.len());
        return Err(StatError::TooManyCgroups { cgroups, events, most: COUNTERS_MAX });
    }
    let in_cgroup = |(number, name): (usize, &Arc<str>)| {
        let offset = number * counters.len();
        let place = |counter: &Counter| Counter {
            leader: counter.leader.map(|leader| leader + offset),
            cgroup: Some(OutsideText::new(name.clone())),
            ..counter.clone()
        };
        counters.iter().map(place).collect::<Vec<_>>()
    };
    Ok(names.iter().enumerate().flat_map(in_cgroup).collect())
}

/// All cgroups as perf names them: without a slash in front, but for the root.
fn existing(roots: &Roots) -> Result<Vec<Arc<str>>, StatError> {
    let name = |path: &str| match path.trim_start_matches('/') {
        "" => Arc::from("/"),
        inside => Arc::from(inside),
    };
    let mut names: Vec<Arc<str>> =
        Hierarchy::find(roots)?.list().all()?.iter().map(|cgroup| name(&cgroup.path)).collect();
    names.sort();
    Ok(names)
}

fn chosen(patterns: &[String], roots: &Roots) -> Result<Vec<Arc<str>>, StatError> {
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut all = None;
    for pattern in patterns {
        let Some(matches) = matcher(pattern)? else {
            push_new(&mut names, pattern.as_str().into());
            continue;
        };
        let all = match &mut all {
            Some(all) => all,
            none => none.insert(existing(roots)?),
        };
        let before = names.len();
        for name in all.iter().filter(|name| matches(name)) {
            push_new(&mut names, name.clone());
        }
        if names.len() == before {
            return Err(StatError::NoSuchCgroups { pattern: pattern.clone() });
        }
    }
    Ok(names)
}

fn push_new(names: &mut Vec<Arc<str>>, name: Arc<str>) {
    if !names.contains(&name) {
        names.push(name);
    }
}

type Matcher<'a> = Box<dyn Fn(&str) -> bool + 'a>;

/// How a pattern matches; `None` for a plain name.
fn matcher(pattern: &str) -> Result<Option<Matcher<'_>>, StatError> {
    let is_expression = pattern.contains(['^', '$', '|', '(', '+']) || pattern.contains(".*");
    if is_expression {
        let error = |source| StatError::CgroupPattern { pattern: pattern.to_owned(), source };
        let expression = regex_lite::Regex::new(pattern).map_err(error)?;
        return Ok(Some(Box::new(move |name| expression.is_match(name))));
    }
    if pattern.contains(['*', '?', '[']) {
        return Ok(Some(Box::new(move |name| glob_matches(pattern, name))));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::tests::counters;

    fn machine(cgroups: &[&str]) -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let mount = dir.path().join("cgroup");
        for cgroup in cgroups {
            std::fs::create_dir_all(mount.join(cgroup)).unwrap();
        }
        std::fs::create_dir_all(dir.path().join("self")).unwrap();
        let line = format!("41 31 0:38 / {} rw - cgroup2 cgroup2 rw\n", mount.display());
        std::fs::write(dir.path().join("self/mountinfo"), line).unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        (dir, roots)
    }

    fn names(patterns: &[&str]) -> Result<Vec<String>, StatError> {
        let (_dir, roots) = machine(&["web/a", "web/b", "batch", "w.b"]);
        let choice = CgroupChoice::Each(patterns.iter().map(|p| (*p).to_owned()).collect());
        let expanded = expand(counters("cs"), &choice, &roots)?;
        Ok(expanded.into_iter().map(|c| c.cgroup.unwrap().to_string()).collect())
    }

    #[test]
    fn names_stay_and_patterns_become_their_matches() {
        assert_eq!(names(&["nobody", "batch"]).unwrap(), ["nobody", "batch"]);
        assert_eq!(names(&["web*"]).unwrap(), ["web", "web/a", "web/b"]);
        assert_eq!(names(&["batch", "*b*"]).unwrap(), ["batch", "w.b", "web", "web/a", "web/b"]);
        assert_eq!(names(&["^w.b$"]).unwrap(), ["w.b", "web"]);
        assert_eq!(names(&["web/.*"]).unwrap(), ["web/a", "web/b"]);
        assert!(names(&["x*"]).unwrap_err().to_string().contains("'x*'"));
        assert!(matches!(names(&["(web"]), Err(StatError::CgroupPattern { .. })));
    }

    #[test]
    fn groups_are_repeated_for_each_cgroup() {
        let (_dir, roots) = machine(&["a"]);
        let all = expand(counters("cs,{cs,faults}"), &CgroupChoice::All, &roots).unwrap();
        let shown: Vec<_> =
            all.iter().map(|c| (c.cgroup.as_ref().unwrap().exact(), c.leader)).collect();
        let wanted = [
            ("/", None),
            ("/", Some(1)),
            ("/", Some(1)),
            ("a", None),
            ("a", Some(4)),
            ("a", Some(4)),
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn more_counters_than_anybody_can_count_are_refused() {
        let (_dir, roots) = machine(&["a"]);
        let many = counters(&vec!["cs"; 1 << 12].join(","));
        let cgroups: Vec<String> = (0..100).map(|n| format!("g{n}")).collect();
        let refused = expand(many, &CgroupChoice::Each(cgroups), &roots);
        assert!(matches!(refused, Err(StatError::TooManyCgroups { .. })));
    }
}
