//! From written files to named ones, in an order that leaves each recording whole or absent whenever the machine stops.

use crate::error::DatasetError;
use crate::layout::{LAST_TABLE, Part};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Most calls that wait for the disk at the same time.
const MAX_CALLS: usize = 16;

/// Where the last file of a recording lies while the others are replaced. It goes with the folder of the export.
const REPLACED: &str = "_replaced";

/// A recording whose files are written, and have no names yet.
pub(crate) struct Addition {
    pub(crate) part: Part,
    pub(crate) digest: String,
    /// The folder in which its files are, each under the name of its table.
    pub(crate) from: PathBuf,
    /// Open files, by their tables: the kernel reports an error of the disk to programs that have the file open.
    pub(crate) files: Vec<(&'static str, File)>,
}

/// Calls in an order that decides which files survive a crash.
pub(crate) trait Disk {
    /// Makes a folder with its parents.
    fn make_folder(&self, path: &Path) -> Result<(), DatasetError>;
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DatasetError>;
    /// Comes back when the content of all these files and folders is on the disk.
    fn sync(&self, files: Vec<(PathBuf, File)>) -> Result<(), DatasetError>;
}

pub(crate) struct FileSystem;

impl Disk for FileSystem {
    fn make_folder(&self, path: &Path) -> Result<(), DatasetError> {
        std::fs::create_dir_all(path).map_err(DatasetError::io(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), DatasetError> {
        std::fs::rename(from, to).map_err(DatasetError::io(to))
    }

    /// File systems write calls that wait at the same time with one commit of their journal. One behind the other, each
    /// would wait for a commit of its own.
    fn sync(&self, files: Vec<(PathBuf, File)>) -> Result<(), DatasetError> {
        let next = AtomicUsize::new(0);
        let call = || -> Result<(), DatasetError> {
            while let Some((path, file)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                file.sync_all().map_err(DatasetError::io(path))?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            // Where no thread can be made, fewer do all of it.
            let spawned = (1..MAX_CALLS.min(files.len()))
                .map_while(|_| thread::Builder::new().spawn_scoped(scope, call).ok());
            let others: Vec<_> = spawned.collect();
            let own = call();
            let ended = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            ended.fold(own, Result::and)
        })
    }
}

/// Gives all files their names, those of `recording` last.
///
/// Three waits are for the disk: for the bytes of all files; for the names of all files but those of `recording`; for
/// these. A name of the last kind is made when everything that it stands for is on the disk. Where a recording is written
/// anew, a fourth one comes first: its last name is taken away before its first file is replaced, so that no reader sees
/// files of two exports as one recording.
pub(crate) fn publish(
    root: &Path,
    additions: Vec<Addition>,
    disk: &dyn Disk,
) -> Result<(), DatasetError> {
    let (mut files, mut names, mut last_names) = (Vec::new(), Vec::new(), Vec::new());
    let mut replaced = Vec::new();
    for Addition { part, from, files: of_addition, .. } in additions {
        for (table, file) in of_addition {
            let (old, new) = (from.join(table), part.path(root, table));
            files.push((old.clone(), file));
            if table == LAST_TABLE {
                if new.exists() {
                    replaced.push((new.clone(), from.join(REPLACED)));
                }
                last_names.push((old, new));
            } else {
                names.push((old, new));
            }
        }
    }
    disk.sync(files)?;
    let old_folders = replaced.iter().filter_map(|(name, _)| name.parent());
    let old_folders = old_folders.map(Path::to_owned).collect();
    for (name, to) in &replaced {
        disk.rename(name, to)?;
    }
    sync_folders(old_folders, disk)?;
    for names in [names, last_names] {
        let mut changed = BTreeSet::new();
        for (old, new) in names {
            make_folders(root, &new, &mut changed, disk)?;
            disk.rename(&old, &new)?;
        }
        sync_folders(changed, disk)?;
    }
    Ok(())
}

fn sync_folders(folders: BTreeSet<PathBuf>, disk: &dyn Disk) -> Result<(), DatasetError> {
    if folders.is_empty() {
        return Ok(());
    }
    let open = |folder: PathBuf| {
        let file = File::open(&folder).map_err(DatasetError::io(&folder))?;
        Ok((folder, file))
    };
    disk.sync(folders.into_iter().map(open).collect::<Result<_, DatasetError>>()?)
}

/// Makes the folders of a file, and notes those that get a new name in them.
fn make_folders(
    root: &Path,
    path: &Path,
    changed: &mut BTreeSet<PathBuf>,
    disk: &dyn Disk,
) -> Result<(), DatasetError> {
    let folder = path.parent().unwrap_or(root);
    if !changed.insert(folder.to_owned()) {
        return Ok(());
    }
    let absent = folder.ancestors().take_while(|folder| *folder != root && !folder.exists());
    changed.extend(absent.filter_map(Path::parent).map(Path::to_owned));
    disk.make_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Place;
    use std::cell::RefCell;

    #[derive(Debug)]
    enum Call {
        MakeFolder(PathBuf),
        Rename(PathBuf, PathBuf),
        Sync(Vec<PathBuf>),
    }

    /// Makes the calls, and notes them.
    #[derive(Default)]
    struct Noting(RefCell<Vec<Call>>);

    impl Disk for Noting {
        fn make_folder(&self, path: &Path) -> Result<(), DatasetError> {
            let absent = path.ancestors().take_while(|folder| !folder.exists());
            let absent: Vec<_> = absent.map(|path| Call::MakeFolder(path.to_owned())).collect();
            self.0.borrow_mut().extend(absent.into_iter().rev());
            FileSystem.make_folder(path)
        }

        fn rename(&self, from: &Path, to: &Path) -> Result<(), DatasetError> {
            self.0.borrow_mut().push(Call::Rename(from.to_owned(), to.to_owned()));
            FileSystem.rename(from, to)
        }

        fn sync(&self, files: Vec<(PathBuf, File)>) -> Result<(), DatasetError> {
            let paths = files.iter().map(|(path, _)| path.clone()).collect();
            self.0.borrow_mut().push(Call::Sync(paths));
            FileSystem.sync(files)
        }
    }

    const TABLES: [&str; 4] = ["sample", "recording", "thread", "wait"];

    fn addition(root: &Path, id: i64, date: &str) -> Addition {
        let from = root.join("_writing").join(id.to_string());
        std::fs::create_dir_all(&from).unwrap();
        let file = |table: &'static str| {
            std::fs::write(from.join(table), format!("{table} {id}")).unwrap();
            (table, File::open(from.join(table)).unwrap())
        };
        let place = Place { host: Some("web".to_owned()), date: date.to_owned() };
        let (part, files) = (Part { place, id }, TABLES.map(file).into());
        Addition { part, digest: String::new(), from, files }
    }

    /// Files and names that are surely on the disk after some calls. A file stands under the name of its writing.
    #[derive(Default)]
    struct Durable {
        synced: BTreeSet<PathBuf>,
        /// Names that are in a folder since it was last synced.
        fresh: Vec<PathBuf>,
        names: BTreeSet<PathBuf>,
    }

    impl Durable {
        fn after(calls: &[Call]) -> Durable {
            let mut durable = Durable::default();
            for call in calls {
                match call {
                    Call::MakeFolder(path) | Call::Rename(_, path) => {
                        durable.fresh.push(path.clone());
                    }
                    Call::Sync(paths) => {
                        durable.synced.extend(paths.iter().cloned());
                        let is_synced =
                            |path: &PathBuf| paths.iter().any(|it| Some(&**it) == path.parent());
                        let (named, fresh): (Vec<_>, Vec<_>) =
                            durable.fresh.drain(..).partition(is_synced);
                        durable.names.extend(named);
                        durable.fresh = fresh;
                    }
                }
            }
            durable
        }

        fn has(&self, root: &Path, path: &Path) -> bool {
            path.ancestors().take_while(|path| *path != root).all(|path| self.names.contains(path))
        }
    }

    /// A crash may keep any name that was made, and is sure to keep those that were synced. So at each moment all other
    /// files of a recording must be surely there when its last name may be.
    #[test]
    fn no_crash_leaves_a_part_of_a_recording() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let disk = Noting::default();
        let days = ["2026-01-01", "2026-01-02", "2026-01-01"];
        let additions = |ids: std::ops::Range<i64>| {
            ids.zip(days).map(|(id, day)| addition(root, id, day)).collect::<Vec<_>>()
        };
        let ends: Vec<_> = [0..3, 3..6]
            .map(|ids| {
                publish(root, additions(ids), &disk).unwrap();
                disk.0.borrow().len()
            })
            .into();
        let calls = disk.0.borrow();
        let mut last_names = 0;
        for (at, call) in calls.iter().enumerate() {
            let Call::Rename(from, last) = call else { continue };
            if !from.ends_with(LAST_TABLE) {
                continue;
            }
            last_names += 1;
            let durable = Durable::after(&calls[..at]);
            for table in TABLES {
                assert!(durable.synced.contains(&from.with_file_name(table)), "{table}: {calls:?}");
                let name = last.strip_prefix(root.join(LAST_TABLE)).unwrap();
                let name = root.join(table).join(name);
                let is_named = table == LAST_TABLE || durable.has(root, &name);
                assert!(is_named, "{}: {calls:?}", name.display());
            }
        }
        assert_eq!(last_names, 6);
        // At the end everything is there, and one wait for the disk is for all recordings.
        for (id, day) in (0..6).zip(days.iter().cycle()) {
            let place = Place { host: Some("web".to_owned()), date: (*day).to_owned() };
            for table in TABLES {
                let path = Part { place: place.clone(), id }.path(root, table);
                assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{table} {id}"));
                assert!(Durable::after(&calls).has(root, &path), "{}", path.display());
            }
        }
        let syncs = calls.iter().filter(|call| matches!(call, Call::Sync(_))).count();
        assert_eq!((syncs, ends.len()), (6, 2));
    }

    /// The old last name is surely gone before a new file has its name, and comes back when all of them are surely there.
    #[test]
    fn no_crash_leaves_files_of_two_exports_under_one_last_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let additions = || vec![addition(root, 1, "2026-01-01"), addition(root, 2, "2026-01-01")];
        publish(root, additions(), &FileSystem).unwrap();
        let disk = Noting::default();
        publish(root, additions(), &disk).unwrap();
        let calls = disk.0.borrow();
        let last_name = |call: &Call, id: i64| {
            let place = Place { host: Some("web".to_owned()), date: "2026-01-01".to_owned() };
            let last = Part { place, id }.path(root, LAST_TABLE);
            match call {
                Call::Rename(from, _) if *from == last => Some(false),
                Call::Rename(_, to) if *to == last => Some(true),
                _ => None,
            }
        };
        for id in [1, 2] {
            let gone = calls.iter().position(|call| last_name(call, id) == Some(false)).unwrap();
            let back = calls.iter().position(|call| last_name(call, id) == Some(true)).unwrap();
            let syncs = |range: std::ops::Range<usize>| {
                calls[range].iter().filter(|call| matches!(call, Call::Sync(_))).count()
            };
            let of_files = |(at, call): (usize, &Call)| {
                let Call::Rename(from, to) = call else { return None };
                let is_own = from.parent().is_some_and(|folder| folder.ends_with(id.to_string()));
                (is_own && !to.starts_with(root.join(LAST_TABLE))).then_some(at)
            };
            let renames: Vec<_> = calls.iter().enumerate().filter_map(of_files).collect();
            assert_eq!(renames.len(), TABLES.len() - 1, "{calls:?}");
            for at in renames {
                assert!(gone < at && syncs(gone..at) == 1, "{id}: {calls:?}");
                assert!(at < back && syncs(at..back) == 1, "{id}: {calls:?}");
            }
        }
        let path = |table| format!("{table}/host=web/date=2026-01-01/part-0000000001.parquet");
        for table in TABLES {
            assert_eq!(
                std::fs::read_to_string(root.join(path(table))).unwrap(),
                format!("{table} 1")
            );
        }
    }

    #[test]
    fn a_file_that_does_not_reach_the_disk_gets_no_name() {
        struct Full(Noting);
        impl Disk for Full {
            fn make_folder(&self, path: &Path) -> Result<(), DatasetError> {
                self.0.make_folder(path)
            }

            fn rename(&self, from: &Path, to: &Path) -> Result<(), DatasetError> {
                self.0.rename(from, to)
            }

            fn sync(&self, files: Vec<(PathBuf, File)>) -> Result<(), DatasetError> {
                let full = std::io::ErrorKind::StorageFull;
                Err(DatasetError::io(&files[0].0)(full.into()))
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let disk = Full(Noting::default());
        let failed = publish(folder.path(), vec![addition(folder.path(), 1, "2026-01-01")], &disk);
        assert!(failed.unwrap_err().to_string().contains("make room"));
        assert!(disk.0.0.borrow().is_empty());
    }

    /// More files than calls, and files on which the system refuses the call.
    #[test]
    fn all_files_are_synced_and_an_error_names_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = |at: usize| {
            let path = folder.path().join(at.to_string());
            (path.clone(), File::create(path).unwrap())
        };
        let mut files: Vec<_> = (0..3 * MAX_CALLS).map(file).collect();
        FileSystem
            .sync(files.iter().map(|(p, f)| (p.clone(), f.try_clone().unwrap())).collect())
            .unwrap();
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        let socket = File::from(std::os::fd::OwnedFd::from(socket));
        files.push((PathBuf::from("refusing"), socket));
        let error = FileSystem.sync(files).unwrap_err();
        assert!(error.to_string().starts_with("refusing: "), "{error}");
        FileSystem.sync(Vec::new()).unwrap();
    }
}
