//! Things that are no files to read, and files that are not what their path says.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{CWD, FileType, Mode, OFlags, makedev, mknodat, open};

/// Kind of thing at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    /// To open it waits for a writer.
    Pipe,
    /// It never ends.
    Device,
    LinkToDevice,
    /// A file of procfs states that it is a regular one, but a read can have effects.
    LinkToKernelFile,
    Directory,
    LinkLoop,
    Socket,
    /// A hole of 1 TiB.
    Sparse,
    Empty,
    /// A file of the right form with wrong contents.
    Damaged,
    /// Such a file and a pipe in turn, while whit looks.
    Changing,
}

pub(super) const ALL: [Thing; 11] = [
    Thing::Pipe,
    Thing::Device,
    Thing::LinkToDevice,
    Thing::LinkToKernelFile,
    Thing::Directory,
    Thing::LinkLoop,
    Thing::Socket,
    Thing::Sparse,
    Thing::Empty,
    Thing::Damaged,
    Thing::Changing,
];

const SPARSE_BYTES: u64 = 1 << 40;
const CHANGE_AFTER: Duration = Duration::from_micros(50);

/// A thing at its path, for as long as this lives.
pub(super) struct Placed {
    watch: Option<Watch>,
    _changer: Option<Changer>,
}

impl Thing {
    /// Puts the thing at a path, in place of any other. `damaged` are the contents of a damaged file.
    pub(super) fn place(self, path: &Path, damaged: Vec<u8>) -> Result<Placed> {
        remove(path);
        fs::create_dir_all(path.parent().context("a path in a directory")?)?;
        let mut watched = None;
        let mut changer = None;
        match self {
            Thing::Pipe => {
                pipe(path)?;
                watched = Some(path.to_owned());
            }
            Thing::Device => watched = device(path)?.then(|| path.to_owned()),
            Thing::LinkToDevice => {
                let device_path = path.with_extension("device");
                remove(&device_path);
                let is_own = device(&device_path)?;
                symlink(&device_path, path)?;
                watched = is_own.then_some(device_path);
            }
            Thing::LinkToKernelFile => {
                let file = PathBuf::from(format!("/proc/{}/timerslack_ns", std::process::id()));
                symlink(&file, path)?;
                watched = Some(file);
            }
            Thing::Directory => fs::create_dir(path)?,
            Thing::LinkLoop => symlink(path, path)?,
            Thing::Socket => drop(UnixListener::bind(path)?),
            Thing::Sparse => sparse(path, &damaged)?,
            Thing::Empty => fs::write(path, "")?,
            Thing::Damaged => fs::write(path, damaged)?,
            Thing::Changing => changer = Some(Changer::start(path, damaged)?),
        }
        let watch = watched.as_deref().map(Watch::of).transpose()?;
        Ok(Placed { watch, _changer: changer })
    }
}

impl Placed {
    /// Whether anybody opened the thing for more than to look at it.
    pub(super) fn was_opened(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::was_opened)
    }
}

fn remove(path: &Path) {
    let _ = fs::remove_file(path).or_else(|_| fs::remove_dir_all(path));
}

fn pipe(path: &Path) -> Result<()> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).context("cannot make a pipe")
}

/// Endless zeros. Whether the device is one of our own: others open that of the machine too.
fn device(path: &Path) -> Result<bool> {
    let mode = Mode::RUSR | Mode::WUSR;
    let is_own = mknodat(CWD, path, FileType::CharacterDevice, mode, makedev(1, 5)).is_ok();
    if !is_own {
        symlink("/dev/zero", path)?;
    }
    Ok(is_own)
}

/// With a right beginning and a right end.
fn sparse(path: &Path, bytes: &[u8]) -> Result<()> {
    let file = File::create(path)?;
    file.set_len(SPARSE_BYTES).context("cannot make a file of 1 TiB")?;
    let part = &bytes[..bytes.len().min(1 << 16)];
    file.write_all_at(part, 0)?;
    Ok(file.write_all_at(part, SPARSE_BYTES - part.len() as u64)?)
}

/// Sees from outside who opens a file. To look at it without opening it does not count.
struct Watch {
    events: OwnedFd,
    /// The kernel forgets files of procfs that are not in use.
    _pinned: OwnedFd,
}

impl Watch {
    fn of(path: &Path) -> Result<Watch> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let pinned = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        inotify::add_watch(&events, path, WatchFlags::OPEN).context("cannot watch a file")?;
        Ok(Watch { events, _pinned: pinned })
    }

    fn was_opened(&self) -> bool {
        rustix::io::read(&self.events, &mut [0u8; 4096]).is_ok_and(|size| size > 0)
    }
}

/// Replaces a file again and again.
struct Changer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Changer {
    fn start(path: &Path, bytes: Vec<u8>) -> Result<Changer> {
        fs::write(path, &bytes)?;
        let (path, next) = (path.to_owned(), path.with_extension("next"));
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut number = 0;
            while !is_stopped.load(Ordering::Relaxed) {
                // Nothing is left to do where the directory is removed meanwhile.
                let _ = change(&path, &next, &bytes, number);
                number += 1;
                std::thread::sleep(CHANGE_AFTER);
            }
        });
        Ok(Changer { stop, thread: Some(thread) })
    }
}

/// Other bytes in the same file, another file, a pipe, or the file cut and written anew in its place.
fn change(path: &Path, next: &Path, bytes: &[u8], number: u64) -> Result<()> {
    const PAGE_BYTES: usize = 4096;
    match number % 16 {
        0 => File::create(path)?.write_all(&bytes[..bytes.len() / 2])?,
        9 => {
            remove(next);
            fs::write(next, bytes)?;
            fs::rename(next, path)?;
        }
        8 => {
            remove(next);
            pipe(next)?;
            fs::rename(next, path)?;
        }
        _ => {
            // A reader that looks twice sees one page or the other.
            let mut random = fastrand::Rng::with_seed(number);
            let at = random.usize(0..=bytes.len() / PAGE_BYTES) * PAGE_BYTES;
            let page = &bytes[at..bytes.len().min(at + PAGE_BYTES)];
            let other: Vec<u8> = match random.bool() {
                true => page.to_vec(),
                false => {
                    page.iter().map(|byte| byte ^ (u8::from(random.u8(..) < 8) << 7)).collect()
                }
            };
            // Not opened where a pipe is.
            if path.is_file() {
                File::options().write(true).open(path)?.write_all_at(&other, at as u64)?;
            }
        }
    }
    Ok(())
}

impl Drop for Changer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_sees_who_opens_and_not_who_looks() {
        let scratch = tempfile::tempdir().unwrap();
        for thing in [Thing::Pipe, Thing::LinkToKernelFile] {
            let path = scratch.path().join("thing");
            let placed = thing.place(&path, Vec::new()).unwrap();
            let look = open(&path, OFlags::PATH, Mode::empty()).unwrap();
            assert!(rustix::fs::fstat(&look).is_ok() && !placed.was_opened(), "{thing:?}");
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            open(&path, flags, Mode::empty()).unwrap();
            assert!(placed.was_opened(), "{thing:?}");
        }
    }
}
