//! The cgroups of an event's samples as the tree that their paths are, with sums over each subtree.

use std::collections::BTreeMap;
use std::io::{self, Write};

use whit_profile::model::{EventId, Profile};
use whit_types::{OutsideText, pad};

use crate::hists::{self, ChainMode, ChainOptions, HistsOptions, SortKey};

/// Spaces by which a cgroup stands further right than the one around it.
const INDENT: usize = 2;

/// A cgroup with the sums over it and all below.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CgroupNode {
    /// Path from the root of the hierarchy; `[cgroup NUMBER]` without a recorded one, and `N/A` for samples without
    /// a cgroup.
    pub path: OutsideText,
    /// Cgroups around it.
    pub depth: usize,
    /// Period of samples in the cgroup itself.
    pub self_period: u64,
    /// Number of samples in the cgroup itself.
    pub self_samples: u64,
    /// The same with all cgroups below.
    pub total_period: u64,
    /// The same with all cgroups below.
    pub total_samples: u64,
}

/// The tree in depth-first order, heavier siblings first.
#[derive(Clone, Debug, Default)]
pub struct CgroupTree {
    /// The root first.
    pub nodes: Vec<CgroupNode>,
    /// Period of the event's samples, which shares refer to.
    pub event_period: u64,
}

#[derive(Default)]
struct Branch {
    self_sums: (u64, u64),
    below: BTreeMap<String, Branch>,
}

impl Branch {
    fn total(&self) -> (u64, u64) {
        self.below.values().map(Branch::total).fold(self.self_sums, |sum, more| {
            (sum.0.saturating_add(more.0), sum.1.saturating_add(more.1))
        })
    }

    fn add(&mut self, names: &mut dyn Iterator<Item = &str>, sums: (u64, u64)) {
        match names.next() {
            Some(name) => self.below.entry(name.to_owned()).or_default().add(names, sums),
            None => {
                self.self_sums.0 = self.self_sums.0.saturating_add(sums.0);
                self.self_sums.1 = self.self_sums.1.saturating_add(sums.1);
            }
        }
    }

    fn list(&self, path: &str, depth: usize, out: &mut Vec<CgroupNode>) {
        let (total_period, total_samples) = self.total();
        let (self_period, self_samples) = self.self_sums;
        let shown = if path.is_empty() { "/" } else { path };
        out.push(CgroupNode {
            path: shown.into(),
            depth,
            self_period,
            self_samples,
            total_period,
            total_samples,
        });
        for (name, branch) in heaviest_first(&self.below) {
            branch.list(&format!("{path}/{name}"), depth + 1, out);
        }
    }
}

fn heaviest_first(branches: &BTreeMap<String, Branch>) -> Vec<(&String, &Branch)> {
    let mut branches: Vec<_> = branches.iter().collect();
    // Equally heavy ones keep the order of their names.
    branches.sort_by_key(|(_, branch)| std::cmp::Reverse(branch.total()));
    branches
}

impl CgroupTree {
    /// The tree of the samples that pass the filters.
    pub fn new(profile: &Profile, event: EventId, options: &HistsOptions) -> CgroupTree {
        let flat = HistsOptions {
            sort: vec![SortKey::Cgroup],
            children: false,
            intervals: false,
            chains: ChainOptions { mode: ChainMode::None, ..options.chains },
            ..options.clone()
        };
        let hists = hists::hists(profile, event, &flat);
        // The root has a path of no name; samples without a path stand beside it.
        let mut tops: BTreeMap<String, Branch> = BTreeMap::new();
        for row in &hists.rows {
            let path = row.context.cgroup_name(profile, SortKey::Cgroup).unwrap_or("N/A");
            let (top, below) = if path.starts_with('/') { ("", path) } else { (path, "") };
            let mut names = below.split('/').filter(|name| !name.is_empty());
            let sums = (row.self_period, row.self_samples);
            tops.entry(top.to_owned()).or_default().add(&mut names, sums);
        }
        let mut nodes = Vec::new();
        for (top, branch) in heaviest_first(&tops) {
            branch.list(top, 0, &mut nodes);
        }
        CgroupTree { nodes, event_period: hists.total_period }
    }

    /// The cgroups at or above a share of the event, in percent.
    pub fn shown(&self, percent_limit: f64) -> impl Iterator<Item = &CgroupNode> {
        self.nodes.iter().filter(move |node| {
            hists::percent(node.total_period, self.event_period) >= percent_limit
        })
    }

    /// Prints the table.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(
        &self,
        out: &mut impl Write,
        percent_limit: f64,
        with_heading: bool,
    ) -> io::Result<()> {
        if with_heading {
            writeln!(out, "#\n#    Total      Self  Cgroup\n# ........  ........  ......\n#")?;
        }
        for node in self.shown(percent_limit) {
            let [total, own] = [node.total_period, node.self_period]
                .map(|period| hists::percent(period, self.event_period));
            let name = if node.depth == 0 {
                node.path.clone()
            } else {
                node.path.base_name().exact().into()
            };
            let indent = pad::blanks(INDENT * node.depth);
            writeln!(out, "  {total:>7.2}%  {own:>7.2}%  {indent}{name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};
    use whit_profile::model::{CgroupId, CgroupInfo};

    const MAIN: Who<'static> = Who { comm: "app", pid: 7, tid: 7, cpu: None };

    fn text(profile: &Profile, limit: f64) -> String {
        let mut out = Vec::new();
        let tree = CgroupTree::new(profile, EventId(0), &HistsOptions::default());
        tree.write(&mut out, limit, true).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_cgroup_has_the_sums_of_those_below() {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        let paths = ["/", "/a.slice/one.service", "/a.slice/two.service", "[cgroup 9]", "/b\x1b"];
        for path in paths {
            let known = path.starts_with('/');
            builder.profile.cgroups.push(CgroupInfo { path: path.into(), known });
        }
        let cgroups = (0..5).map(|i| Some(CgroupId(i))).chain([None]);
        for (cgroup, period) in cgroups.zip([5, 20, 40, 10, 20, 5]) {
            builder.next_facets.cgroup = cgroup;
            builder.sample(event, MAIN, &[at("main", "/bin/app", 1)], period);
        }
        let wanted = [
            "    85.00%     5.00%  /",
            "    60.00%     0.00%    a.slice",
            "    40.00%    40.00%      two.service",
            "    20.00%    20.00%      one.service",
            "    20.00%    20.00%    b\\x1b",
            "    10.00%    10.00%  [cgroup 9]",
            "     5.00%     5.00%  N/A",
        ];
        let all = text(&builder.profile, 0.0);
        assert_eq!(all.lines().skip(4).collect::<Vec<_>>(), wanted, "{all}");
        let heavy = text(&builder.profile, 30.0);
        assert_eq!(heavy.lines().skip(4).collect::<Vec<_>>(), wanted[..3]);
    }
}
