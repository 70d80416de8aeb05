//! Which watched cgroup is below which.
//!
//! The kernel's program keeps one account for each watched cgroup, of everything that is below it
//! and below no other watched one in between. A cgroup's count is its account and those of all
//! watched cgroups below it. Which these are never changes: a cgroup cannot be moved to another
//! parent, and its id is not given to another one.

use super::counts::Table;

/// A cgroup to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup {
    /// Its id: the inode of its directory.
    pub id: u64,
    /// Its path in the hierarchy, of names between slashes; that of the root is `/`.
    pub path: String,
}

/// The accounts of the watched cgroups, by their index; account 0 is of everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    /// For each watched cgroup, its account. The same cgroup may be watched more than once.
    accounts: Vec<usize>,
    /// For each account, that of the nearest watched cgroup above.
    parents: Vec<Option<usize>>,
    /// All accounts but 0, deeper ones first.
    upwards: Vec<usize>,
    ids: Vec<u64>,
}

fn names(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".").collect()
}

impl Tree {
    pub(crate) fn new(cgroups: &[Cgroup]) -> Tree {
        let mut tree =
            Tree { accounts: Vec::new(), parents: vec![None], upwards: Vec::new(), ids: vec![0] };
        let mut by_id = std::collections::HashMap::new();
        let mut by_path = std::collections::HashMap::new();
        let mut paths = vec![Vec::new()];
        for cgroup in cgroups {
            let account = *by_id.entry(cgroup.id).or_insert_with(|| {
                let path = names(&cgroup.path);
                by_path.insert(path.clone(), paths.len());
                paths.push(path);
                tree.ids.push(cgroup.id);
                paths.len() - 1
            });
            tree.accounts.push(account);
        }
        for path in &paths[1..] {
            let above = (0..path.len()).rev();
            tree.parents.push(above.into_iter().find_map(|n| by_path.get(&path[..n]).copied()));
        }
        tree.upwards = (1..paths.len()).collect();
        tree.upwards.sort_by_key(|&account| std::cmp::Reverse(paths[account].len()));
        tree
    }

    /// How many accounts there are, with that of everything else.
    pub(crate) fn accounts(&self) -> usize {
        self.parents.len()
    }

    /// The watched cgroups' ids with their accounts.
    pub(crate) fn ids(&self) -> impl Iterator<Item = (u64, usize)> {
        self.ids.iter().copied().zip(0..).skip(1)
    }

    /// The account of the watched cgroup with this index.
    pub(crate) fn account(&self, watched: usize) -> usize {
        self.accounts[watched]
    }

    /// Adds the accounts of lower cgroups to those above them.
    pub(crate) fn add_up(&self, table: &mut Table) {
        for &account in &self.upwards {
            if let Some(parent) = self.parents[account] {
                table.add_row(account, parent);
            }
        }
    }

    /// Accounts that are below no other; together with account 0 they are everything.
    pub(crate) fn tops(&self) -> impl Iterator<Item = usize> {
        self.upwards.iter().copied().filter(|&account| self.parents[account].is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(paths: &[&str]) -> Tree {
        let cgroups: Vec<_> = paths
            .iter()
            .zip(10..)
            .map(|(path, id)| Cgroup { id, path: path.to_string() })
            .collect();
        Tree::new(&cgroups)
    }

    #[test]
    fn the_nearest_watched_cgroup_above_is_found() {
        let tree = tree(&["/a/b/c", "a", "/a/b2", "/x/y", "/ab"]);
        assert_eq!(tree.parents, [None, Some(2), None, Some(2), None, None]);
        assert_eq!(tree.ids().collect::<Vec<_>>()[..2], [(10, 1), (11, 2)]);
        assert_eq!(tree.account(3), 4);
    }

    #[test]
    fn the_root_is_above_all() {
        let tree = tree(&["a", "/", "a/b"]);
        assert_eq!(tree.parents, [None, Some(2), None, Some(1)]);
        assert_eq!(tree.tops().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn a_cgroup_that_is_named_twice_has_one_account() {
        let twice = Cgroup { id: 7, path: "/a".into() };
        let tree = Tree::new(&[twice.clone(), Cgroup { id: 8, path: "/b".into() }, twice]);
        assert_eq!((tree.accounts(), tree.account(0), tree.account(2)), (3, 1, 1));
    }

    proptest! {
        #[test]
        fn each_sum_is_that_of_the_subtree(
            paths in prop::collection::hash_set("(/[ab]){1,5}", 1..20),
            values in prop::collection::vec(0u64..1000, 21),
        ) {
            let paths: Vec<_> = paths.into_iter().collect();
            let tree = tree(&paths.iter().map(String::as_str).collect::<Vec<_>>());
            let mut table = Table::new(tree.accounts(), 1, 1);
            for (account, value) in values.iter().enumerate().take(tree.accounts()) {
                table.cell_mut(account, 0, 0).value = *value;
            }
            tree.add_up(&mut table);
            for (watched, path) in paths.iter().enumerate() {
                let is_below = |other: &&String| {
                    **other == *path || other.starts_with(&format!("{path}/"))
                };
                let below = paths.iter().zip(&values[1..]).filter(|(other, _)| is_below(other));
                let sum: u64 = below.map(|(_, value)| value).sum();
                prop_assert_eq!(table.cell(tree.account(watched), 0, 0).value, sum);
            }
            let tops: u64 = tree.tops().map(|account| table.cell(account, 0, 0).value).sum();
            prop_assert_eq!(tops + values[0], values[..tree.accounts()].iter().sum::<u64>());
        }
    }
}
