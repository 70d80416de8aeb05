//! Files of cgroups, in whichever hierarchy has them.

use std::path::PathBuf;
use whit_host::cgroup::Hierarchy;
use whit_host::roots::Roots;

/// The file of a cgroup that has these words: several hierarchies may have such a file. The cgroup is called by its path
/// in a hierarchy, by its directory, or by its own name: then it is the outermost one of this name.
pub(crate) fn file_of(
    roots: &Roots,
    cgroup: &str,
    (file, words): (&str, &str),
) -> Result<PathBuf, String> {
    let hierarchies = Hierarchy::mounted(roots).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> =
        hierarchies.iter().map(|it| it.hierarchy.path(cgroup).join(file)).collect();
    for hierarchy in hierarchies.iter().filter(|_| !cgroup.contains('/')) {
        let mut listed = hierarchy.hierarchy.list().listed;
        listed.retain(|it| it.path.rsplit('/').next() == Some(cgroup));
        listed.sort_by_key(|it| it.path.split('/').count());
        files.extend(listed.iter().map(|it| hierarchy.hierarchy.path(&it.path).join(file)));
    }
    files.retain(|path| path.is_file());
    let has_words =
        |path: &&PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains(words));
    match (files.iter().find(has_words), files.first()) {
        (Some(found), _) => Ok(found.clone()),
        (None, Some(file)) => Err(format!("{} has no {words} now", file.display())),
        (None, None) => Err(format!("no hierarchy has a cgroup {cgroup} with a file {file} now")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    /// A machine with these mounts: kind (`cgroup` or `cgroup2`) and controllers.
    pub(crate) fn machine(mounts: &[(&str, &str)]) -> (TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().join("proc"), ..Roots::default() };
        fs::create_dir_all(roots.proc.join("self")).unwrap();
        let mut lines = String::new();
        for (kind, controllers) in mounts {
            let point = dir.path().join("cgroup").join(if *kind == "cgroup2" {
                "unified"
            } else {
                controllers
            });
            fs::create_dir_all(&point).unwrap();
            let point = point.display();
            lines.push_str(&format!("30 1 0:1 / {point} rw - {kind} none rw,{controllers}\n"));
        }
        fs::write(roots.proc.join("self/mountinfo"), lines).unwrap();
        (dir, roots)
    }

    /// Writes a file of a cgroup.
    pub(crate) fn put(dir: &TempDir, mount: &str, cgroup: &str, file: &str, text: &str) {
        let directory = dir.path().join("cgroup").join(mount).join(cgroup);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(file), text).unwrap();
    }

    #[test]
    fn the_hierarchy_is_the_one_that_has_the_file() {
        let (dir, roots) = machine(&[("cgroup", "cpu"), ("cgroup2", "")]);
        put(&dir, "unified", "web/one", "cpu.pressure", "some");
        put(&dir, "unified", "web/one", "cgroup.procs", "");
        put(&dir, "unified", "web/one", "cpu.stat", "usage_usec 5");
        put(&dir, "cpu", "web/one", "cpu.stat", "nr_throttled 0");
        let found = |cgroup: &str, file: &str| {
            let words = if file == "cpu.stat" { "nr_throttled" } else { "some" };
            let found = file_of(&roots, cgroup, (file, words))?;
            Ok(found.strip_prefix(dir.path()).unwrap().display().to_string())
        };
        let ok = |text: &str| Ok::<String, String>(text.to_owned());
        let pressure = ok("cgroup/unified/web/one/cpu.pressure");
        assert_eq!(found("web/one", "cpu.pressure"), pressure);
        assert_eq!(found("/web/one", "cpu.pressure"), pressure);
        assert_eq!(found("one", "cpu.pressure"), pressure);
        let path = dir.path().join("cgroup/unified/web/one").display().to_string();
        assert_eq!(found(&path, "cpu.pressure"), pressure);
        assert_eq!(found("one", "cpu.stat"), ok("cgroup/cpu/web/one/cpu.stat"));
        assert!(found("two", "cpu.stat").unwrap_err().contains("two"));
        assert!(found("web", "cpu.stat").is_err());
        put(&dir, "unified", "three", "cpu.stat", "usage_usec 5");
        assert!(found("three", "cpu.stat").unwrap_err().contains("no nr_throttled"));
        let (_nothing, none) = machine(&[]);
        assert!(file_of(&none, "one", ("cpu.stat", "")).is_err());
    }
}
