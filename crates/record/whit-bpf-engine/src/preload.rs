//! Which binaries a command is going to map first: itself, the interpreters of scripts, the dynamic
//! linker, libraries. Their unwind tables are loaded before the command begins.
//!
//! The search for libraries follows `ld.so(8)`, as far as it concerns files. A library too many costs a
//! table that nobody uses; a missed library gets its table when it is mapped.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use whit_elf::{ElfImage, LinkNeeds};
use whit_engine_api::settings::LoaderPaths;
use whit_sys::Errno;
use whit_sys::process_files::{ids_of_own, open_regular};

use super::ld_cache;
use super::model::Backing;

/// The dynamic linker's list of libraries.
const LD_CACHE: &str = "/etc/ld.so.cache";
/// Much more than any system has.
const LD_CACHE_MAX_BYTES: u64 = 64 << 20;
/// Where libraries are that no list has.
const DEFAULT_DIRECTORIES: [&str; 5] =
    ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];
/// Most binaries of a command.
const BINARIES_MAX: usize = 1024;
/// Scripts may be interpreted by scripts, to a depth.
const INTERPRETERS_MAX: usize = 4;
/// Longest first line of a script that the kernel reads.
const FIRST_LINE_BYTES: u64 = 256;
/// The program that looks for an interpreter in `PATH`.
const ENV: &[u8] = b"env";

/// The first mappings of a command, with the names that mapping records will have.
pub(super) fn backings(command: &OsStr, paths: &LoaderPaths) -> Vec<Backing> {
    let cache =
        open_regular(Path::new(LD_CACHE)).and_then(|file| read_up_to(file, LD_CACHE_MAX_BYTES));
    let cache = cache.unwrap_or_default();
    let found = Search { paths, cache: &cache }.binaries(command);
    // The kernel says how it names these files: by other numbers than `stat` does, on some file systems.
    let addresses: Vec<_> = found.values().map(|image| image.bytes().as_ptr() as u64).collect();
    let files = found.keys().zip(ids_of_own(&addresses)).filter_map(|(path, id)| {
        Some(Backing::File { id: id?, path: path.as_os_str().as_bytes().to_vec() })
    });
    files.chain([Backing::Vdso]).collect()
}

struct Search<'a> {
    paths: &'a LoaderPaths,
    cache: &'a [u8],
}

impl Search<'_> {
    /// Files by their real paths.
    fn binaries(&self, command: &OsStr) -> BTreeMap<PathBuf, ElfImage> {
        let (mut found, mut queue) = (BTreeMap::new(), VecDeque::new());
        queue.extend(self.program(command, INTERPRETERS_MAX));
        queue.extend(self.paths.preloaded.iter().cloned());
        while let Some(path) = queue.pop_front() {
            // A path that is no file, or no ELF file of this machine, is not opened twice either.
            let Ok(path) = path.canonicalize() else { continue };
            if found.len() >= BINARIES_MAX || found.contains_key(&path) {
                continue;
            }
            if let Ok(image) = ElfImage::open(&path) {
                let needs = image.link_needs();
                queue.extend(needs.interpreter.as_deref().map(path_of));
                for library in &needs.libraries {
                    queue.extend(self.library(library, &needs, &path));
                }
                found.insert(path, image);
            }
        }
        found
    }

    /// The program that a command runs in the end, and the scripts' interpreters.
    fn program(&self, command: &OsStr, depth: usize) -> Vec<PathBuf> {
        let Some(path) = self.in_path(command) else { return Vec::new() };
        let mut programs = match first_words(&path) {
            Some(words) if depth > 0 => self.interpreters(&words, depth),
            _ => Vec::new(),
        };
        programs.push(path);
        programs
    }

    /// The interpreter of a script, and the program that `env` looks for.
    fn interpreters(&self, words: &[Vec<u8>], depth: usize) -> Vec<PathBuf> {
        let Some(first) = words.first() else { return Vec::new() };
        let mut programs = self.program(OsStr::from_bytes(first), depth - 1);
        if path_of(first).file_name() == Some(OsStr::from_bytes(ENV)) {
            let is_name = |word: &&Vec<u8>| !word.starts_with(b"-") && !word.contains(&b'=');
            let name = words[1..].iter().find(is_name);
            programs.extend(
                name.into_iter().flat_map(|name| self.program(OsStr::from_bytes(name), depth - 1)),
            );
        }
        programs
    }

    fn in_path(&self, command: &OsStr) -> Option<PathBuf> {
        if command.as_bytes().contains(&b'/') {
            return Some(command.into());
        }
        let candidates = self.paths.commands.iter().map(|directory| directory.join(command));
        candidates.into_iter().find(|path| is_executable(path))
    }

    /// Where a library may be that `user` needs: the first place that has it.
    fn library(&self, name: &[u8], needs: &LinkNeeds, user: &Path) -> Vec<PathBuf> {
        let origin = user.parent().unwrap_or(Path::new("/"));
        let name_path = path_of(&expand(name, origin));
        if name.contains(&b'/') {
            return vec![name_path];
        }
        let own = needs.directories.iter().map(|directory| path_of(&expand(directory, origin)));
        let mut directories = self.paths.libraries.iter().cloned().chain(own);
        let there = |directory: PathBuf| Some(directory.join(&name_path)).filter(|p| p.is_file());
        if let Some(path) = directories.find_map(there) {
            return vec![path];
        }
        let listed = ld_cache::paths(self.cache, name);
        if !listed.is_empty() {
            return listed.into_iter().map(path_of).collect();
        }
        DEFAULT_DIRECTORIES
            .iter()
            .find_map(|directory| there(directory.into()))
            .into_iter()
            .collect()
    }
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from(OsStr::from_bytes(bytes)))
}

/// `$ORIGIN`, or `${ORIGIN}`, at the beginning is the directory of the file that says it.
fn expand(text: &[u8], origin: &Path) -> Vec<u8> {
    let rest = text.strip_prefix(b"$ORIGIN").or_else(|| text.strip_prefix(b"${ORIGIN}"));
    match rest {
        Some(rest) => [origin.as_os_str().as_bytes(), rest].concat(),
        None => text.to_vec(),
    }
}

fn is_executable(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0)
}

/// The words of a script's first line; `None` where it is none.
fn first_words(path: &Path) -> Option<Vec<Vec<u8>>> {
    let line = read_up_to(open_regular(path).ok()?, FIRST_LINE_BYTES).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let words = line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    Some(words.map(<[u8]>::to_vec).collect())
}

fn read_up_to(file: File, limit_bytes: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    let read = file.take(limit_bytes).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn names(found: &BTreeMap<PathBuf, ElfImage>) -> Vec<String> {
        found.keys().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    fn search(command: &OsStr, paths: &LoaderPaths) -> Vec<String> {
        let cache = std::fs::read(LD_CACHE).unwrap_or_default();
        names(&Search { paths, cache: &cache }.binaries(command))
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn a_program_comes_with_its_linker_and_its_libraries() {
        let exe = std::env::current_exe().unwrap();
        let found = search(exe.as_os_str(), &LoaderPaths::default());
        let own = exe.file_name().unwrap().to_string_lossy().into_owned();
        let has = |start: &str| found.iter().any(|name| name.starts_with(start));
        assert!(found.contains(&own) && has("ld-linux") && has("libc"), "{found:?}");
        // As mappings name them.
        let backings = backings(exe.as_os_str(), &LoaderPaths::default());
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let libc = maps.lines().find(|line| line.contains("/libc")).unwrap();
        let is_libc = |backing: &Backing| match backing {
            Backing::File { path, .. } => libc.as_bytes().ends_with(path),
            _ => false,
        };
        assert!(backings.iter().any(is_libc), "{backings:?}: {libc}");
        assert!(backings.contains(&Backing::Vdso));
    }

    #[test]
    fn scripts_lead_to_their_interpreters() {
        let place = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = place.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let commands = vec![place.path().to_owned(), "/usr/bin".into(), "/bin".into()];
        let paths = LoaderPaths { commands, ..LoaderPaths::default() };
        let real = std::fs::canonicalize("/bin/sh").unwrap();
        let shell = real.file_name().unwrap().to_string_lossy().into_owned();
        script("direct", "#! /bin/sh -e\nexit\n");
        script("by-env", "#!/usr/bin/env -S A=1 sh\n");
        script("by-script", &format!("#!{}\n", place.path().join("direct").display()));
        for name in ["direct", "by-env", "by-script", "sh"] {
            let found = search(OsStr::new(name), &paths);
            assert!(found.contains(&shell), "{name}: {found:?}");
        }
        // A script that is its own interpreter, nothing, and a directory.
        let own = place.path().join("own");
        script("own", &format!("#!{}\n", own.display()));
        assert!(search(OsStr::new("own"), &paths).is_empty());
        assert!(search(OsStr::new("not-there"), &paths).is_empty());
        assert!(search(place.path().as_os_str(), &paths).is_empty());
    }

    #[test]
    fn libraries_are_looked_for_in_the_order_of_the_linker() {
        let place = tempfile::tempdir().unwrap();
        let [first, own, user] = ["first", "own", "bin/user"].map(|name| place.path().join(name));
        for directory in [&first, &own] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("libx.so"), "").unwrap();
        }
        let needs =
            LinkNeeds { directories: vec![b"$ORIGIN/../own".to_vec()], ..LinkNeeds::default() };
        let at = |libraries: Vec<PathBuf>, name: &[u8]| {
            let paths = LoaderPaths { libraries, ..LoaderPaths::default() };
            Search { paths: &paths, cache: &[] }.library(name, &needs, &user)
        };
        assert_eq!(at(vec![first.clone()], b"libx.so"), [first.join("libx.so")]);
        std::fs::create_dir(place.path().join("bin")).unwrap();
        assert_eq!(at(vec![], b"libx.so"), [place.path().join("bin/../own/libx.so")]);
        assert_eq!(at(vec![], b"${ORIGIN}/y.so"), [place.path().join("bin/y.so")]);
        assert!(at(vec![], b"libx-is-not-anywhere.so").is_empty());
    }
}
