//! `whit record --off-cpu`: waits as samples, made of the recorded switches when recording ends.

use super::RecordArgs;
use crate::failure::bail_usage;
use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use whit_capture::options::{Engine, Output};
use whit_perfdata::append;
use whit_perfdata::off_cpu::{OffCpuSample, is_off_cpu};
use whit_perfdata::reader::{Form, Recording};
use whit_profile::switches::{OffCpuError, OffCpuSamples, OffCpuTotals};
use whit_profile::{ReadOptions, Reading};

/// perf's `--off-cpu-thresh`, in milliseconds.
const DEFAULT_THRESHOLD_MS: u32 = 500;

/// The samples that were written.
#[derive(Debug)]
pub(super) struct Written(OffCpuTotals);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OffCpuTotals { samples, waits, wait_ns, uncertain, without_chain } = self.0;
        let seconds = wait_ns as f64 / 1e9;
        write!(f, "{waits} waits of {seconds:.3} s in {samples} samples of 'offcpu-time'")?;
        if uncertain > 0 {
            write!(
                f,
                "; {uncertain} waits are in none, since a loss touches them or recording began or ended \
                 meanwhile (whit switches shows them)"
            )?;
        }
        if without_chain > 0 {
            write!(
                f,
                "; {without_chain} waits have no call chain: there are too many different ones"
            )?;
        }
        Ok(())
    }
}

impl RecordArgs {
    pub(super) fn off_cpu_threshold(&self) -> Duration {
        Duration::from_millis(self.sideband.off_cpu_thresh.unwrap_or(DEFAULT_THRESHOLD_MS).into())
    }

    /// Only the BPF engine records switches with their call chains.
    pub(super) fn engine_of_waits(&self) -> Option<Engine> {
        let are_recorded = self.sideband.off_cpu || self.sideband.off_cpu_period.is_some();
        if are_recorded { Some(Engine::Bpf) } else { self.chains.engine }
    }

    /// Samples of waits are written behind all others.
    pub(super) fn check_off_cpu(&self) -> Result<()> {
        let is_sampled = self.sideband.off_cpu_period.is_some();
        if (self.sideband.off_cpu || is_sampled) && self.chains.engine == Some(Engine::Ring) {
            let option = if is_sampled { "--off-cpu-period" } else { "--off-cpu" };
            bail_usage!(
                "{option} takes the BPF engine: leave --engine=ring out, or record switches alone with \
                 --switch-events"
            );
        }
        if !self.sideband.off_cpu {
            return Ok(());
        }
        if self.switch_output.is_some() {
            bail_usage!(
                "--off-cpu writes its samples when recording ends: leave --switch-output out, or see \
                 waits with whit switches"
            );
        }
        let output = self.output.as_ref().or(self.output_dir.as_ref());
        if output.is_some_and(|output| is_stream(output)) {
            bail_usage!(
                "--off-cpu writes its samples when recording ends, which takes a file or a directory: \
                 name one with -o"
            );
        }
        Ok(())
    }
}

/// Whether an output cannot be completed after the recording: a pipe or a device.
pub(super) fn is_stream(output: &Path) -> bool {
    output.as_os_str() == "-" || (output.exists() && !output.is_file() && !output.is_dir())
}

/// Appends the samples to a recording that is complete.
pub(super) fn append(output: &Output, threshold: Duration) -> Result<Written> {
    let Output::File(path) = output else { return Ok(Written(OffCpuTotals::default())) };
    append_to(path, threshold).with_context(|| {
        format!(
            "cannot write waits as samples into {}: whit switches -i {0} shows them all the same",
            path.display()
        )
    })
}

fn append_to(path: &Path, threshold: Duration) -> Result<Written> {
    let recording = Recording::open(path)?;
    let event = recording.events.iter().find(|event| is_off_cpu(event));
    let attr = event.map(|event| event.attr.clone()).context("there is no event for them")?;
    let file = match recording.form {
        Form::Directory => path.join("data"),
        Form::File | Form::Pipe => PathBuf::from(path),
    };
    let threshold_ns = u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX);
    let options = ReadOptions::without_names(1);
    let (mut totals, mut failure) = (OffCpuTotals::default(), None);
    append::append(&file, &recording.features, |put| {
        let mut bytes = Vec::new();
        let mut emit = |sample: &OffCpuSample<'_>| {
            bytes.clear();
            sample.push(&attr, &mut bytes);
            put(&bytes)
        };
        let question = OffCpuSamples { threshold_ns, emit: &mut emit };
        match Reading::open(&recording, &options).answer(question) {
            Ok(all) => totals = all,
            Err(OffCpuError::Write(error)) => return Err(error),
            Err(error) => failure = Some(error),
        }
        Ok(())
    })?;
    match failure {
        Some(error) => Err(error.into()),
        None => Ok(Written(totals)),
    }
}
