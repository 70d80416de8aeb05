//! The recordings of a comparison of readers: made here, or there already.

use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;
use whit_types::ByteSize;

use crate::args::{WORKLOADS, default_cache, heading, installed_whit};
use crate::bench::Say;
use crate::error::{self, Error};
use crate::recording::{Cache, Recorder, RecorderKind, Recording};
use crate::setup::{require_cache, require_whit};

#[derive(Args, Clone, Debug)]
pub(crate) struct RecordingArgs {
    /// Sizes of the recordings to make: K, M, G, separated by commas [default: 50M,500M,2G; for brief
    /// 50M, for exports and queries 1G; none with --file]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = heading::COMPARED)]
    sizes: Option<Vec<ByteSize>>,

    /// A recording to compare on, as it is; may be repeated
    #[arg(long = "file", value_name = "FILE", help_heading = heading::COMPARED)]
    pub(crate) files: Vec<PathBuf>,

    /// Program to record; it takes --seconds S
    #[arg(long, value_name = "PROGRAM", default_value_os_t = PathBuf::from(WORKLOADS).join("deep"),
          help_heading = heading::SETUP)]
    workload: PathBuf,

    /// Directory in which recordings are kept [default: whit/bench in the user's cache]
    #[arg(long, value_name = "DIR", default_value_os_t = default_cache(), hide_default_value = true,
          help_heading = heading::SETUP)]
    pub(crate) cache: PathBuf,

    /// Event to record [default: the recorder's]
    #[arg(short, long, value_name = "EVENT", help_heading = heading::EVENTS)]
    event: Option<String>,

    /// Another whit to compare [default: the one in the folder of this program]
    #[arg(long, value_name = "PROGRAM", default_value_os_t = installed_whit(),
          hide_default_value = true, help_heading = heading::SETUP)]
    pub(crate) whit: PathBuf,
}

impl RecordingArgs {
    /// The files that are named, and those of the sizes that are named, else of the default ones.
    pub(crate) fn make(
        &self,
        kind: RecorderKind,
        default_sizes: &[ByteSize],
        say: Say<'_>,
    ) -> Result<Vec<Recording>, Error> {
        require_cache(&self.cache, "--cache")?;
        require_whit(&self.whit)?;
        let sizes = match &self.sizes {
            Some(sizes) => sizes,
            None if self.files.is_empty() => default_sizes,
            None => &[],
        };
        ensure!(
            sizes.is_empty() || self.workload.exists(),
            "there is no {} to record: build it with `make -C bench/workloads deep` in whit's repository, \
             or name another program with --workload or recordings with --file",
            self.workload.display()
        );
        let existing = self.files.iter().map(|path| Recording::existing(path));
        let mut recordings: Vec<Recording> = existing.collect::<Result<_, _>>()?;
        std::fs::create_dir_all(&self.cache).map_err(error::file("create", &self.cache))?;
        if !sizes.is_empty() {
            let recorder = Recorder { kind, whit: self.whit.clone(), event: self.event.clone() };
            let cache = Cache::open(&self.cache, &self.workload, recorder)?;
            cache.require_space(sizes)?;
            for size in sizes {
                recordings.push(cache.recording(*size, say)?);
            }
        }
        Ok(recordings)
    }
}
