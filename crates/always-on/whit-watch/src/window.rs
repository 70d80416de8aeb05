//! A window: the records of a stretch of time.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use whit_live::Lost;
use whit_perfdata::feature::Feature;
use whit_perfdata::reader::{OpenError, Recording};
use whit_profile::companions::Companions;
use whit_profile::model::Profile;
use whit_profile::{
    KeptSymbols, NameSources, ReadOptions, Reading, Samples, Selection, ThisMachine, WantedFacets,
};
use whit_symbolize::{DebugDirs, SymbolizerConfig};
use whit_sys::system::{memory_file, uname};

/// In messages, the recording is called so.
const NAME: &str = "window";
/// Frames of a call chain, as in reports.
const MAX_STACK: usize = 127;

/// Bytes of windows that sinks still hold.
#[derive(Clone, Debug, Default)]
pub struct HeldBytes(Arc<AtomicU64>);

impl HeldBytes {
    /// The sum.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A stretch of time, whole and without overlap with the next one.
#[derive(Debug)]
pub struct Window {
    /// Counts windows of this process.
    pub number: u64,
    /// By the clock of the machine, when the window ended less its length.
    pub start: SystemTime,
    /// By the clock of the machine.
    pub end: SystemTime,
    /// Time within it without a recorder.
    pub gap: Duration,
    /// Records that the bound of memory took (`window-bytes`); the recording says so, too.
    pub lost: Lost,
    bytes: u64,
    file: File,
    held: HeldBytes,
    symbols: KeptSymbols,
    profile: OnceLock<Result<Arc<Profile>, String>>,
}

impl Window {
    /// Takes what `write` writes, into memory.
    ///
    /// # Errors
    /// There is no memory, or there are no descriptors.
    pub fn make(
        number: u64,
        (start, end): (SystemTime, SystemTime),
        (held, symbols): (&HeldBytes, &KeptSymbols),
        write: impl FnOnce(&mut dyn Write) -> io::Result<Lost>,
    ) -> io::Result<Window> {
        let fd: OwnedFd = memory_file("whit-watch")?;
        let mut out = io::BufWriter::with_capacity(1 << 16, File::from(fd));
        let lost = write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let bytes = file.metadata()?.len();
        held.0.fetch_add(bytes, Ordering::Relaxed);
        let (held, symbols) = (held.clone(), symbols.clone());
        let profile = OnceLock::new();
        let gap = Duration::ZERO;
        Ok(Window { number, start, end, gap, lost, bytes, file, held, symbols, profile })
    }

    /// With this time without a recorder.
    pub fn with_gap(mut self, gap: Duration) -> Window {
        self.gap = gap;
        self
    }

    /// Size of the recording.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of the recording, from their beginning. Several can read at a time.
    pub fn reader(&self) -> impl Read + '_ {
        Bytes { file: &self.file, at: 0 }
    }

    /// The recording, opened.
    ///
    /// # Errors
    /// The recorder's stream was none.
    pub fn recording(&self) -> Result<Recording, OpenError> {
        let file = self.file.try_clone();
        let file = file.map_err(|source| OpenError::Io { path: NAME.into(), source })?;
        Recording::from_file(Path::new(NAME), file)
    }

    /// How it is read: by one thread, with symbols that stay from window to window.
    pub fn read_options(&self, recording: &Recording) -> ReadOptions {
        let mut symbols = SymbolizerConfig::new(DebugDirs::with_cache(cache()));
        let recorded = recording.features.string(Feature::OSRELEASE);
        let machine = uname();
        symbols.kernel.other_release =
            recorded.filter(|release| !release.is_empty() && *release != machine.release);
        if symbols.kernel.other_release.is_none() {
            symbols.vdso = whit_elf::own_vdso().ok();
        }
        let names = NameSources {
            symbols,
            machine: Some(ThisMachine { hostname: machine.hostname, is_live: true }),
            kept_symbols: Some(self.symbols.clone()),
            // A window waits for no server.
            companions: Companions::Off,
        };
        ReadOptions { selection: Selection::default(), names, threads: 1, max_stack: MAX_STACK }
    }

    /// The profile, which is loaded once for all sinks that ask.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn profile(&self) -> Result<Arc<Profile>, String> {
        let load = || {
            let recording = self.recording().map_err(|error| error.to_string())?;
            let facets = WantedFacets { cgroup: true, ..WantedFacets::default() };
            let samples = Samples { facets, ..Samples::default() };
            let options = self.read_options(&recording);
            let profile = Reading::open(&recording, &options).answer(samples);
            profile.map(Arc::new).map_err(|error| error.to_string())
        };
        self.profile.get_or_init(load).clone()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.held.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// perf's cache of binaries, by this process's environment.
fn cache() -> Option<std::path::PathBuf> {
    whit_host::perf_cache::CacheEnvironment {
        home: std::env::home_dir(),
        buildid_dir: std::env::var_os("PERF_BUILDID_DIR"),
        config: std::env::var_os("PERF_CONFIG"),
    }
    .directory()
}

struct Bytes<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Bytes<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(out, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_a_recording_and_its_bytes_are_held_until_it_is_dropped() {
        let golden = "../../../tests/recordings/golden/perf-pipe/recording.data";
        let stream = std::fs::read(golden).unwrap();
        let (held, symbols) = (HeldBytes::default(), KeptSymbols::default());
        let now = SystemTime::now();
        let window = Window::make(7, (now, now), (&held, &symbols), |out| {
            out.write_all(&stream).map(|()| Lost::default())
        });
        let window = window.unwrap();
        let mut read = Vec::new();
        window.reader().read_to_end(&mut read).unwrap();
        assert!(read == stream && held.get() == stream.len() as u64);
        let profile = window.profile().unwrap();
        assert!(profile.events[0].samples > 0);
        assert!(Arc::ptr_eq(&profile, &window.profile().unwrap()));
        drop(window);
        assert_eq!(held.get(), 0);
    }
}
