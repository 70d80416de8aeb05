//! Converts the command line to the recorder's options.

use super::{RecordArgs, arch, parse};
use crate::event_args::{EventArgs, Skipped};
use crate::failure::{bail_usage, usage};
use crate::message;
use crate::perf_cache;
use crate::short_options;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;
use whit_capture::branch::BranchFilter;
use whit_capture::event::{EventSpec, Rate};
use whit_capture::notice::{Listener, Notice};
use whit_capture::options::{
    CallGraph, ChainPlan, CountPlan, Engine, EventPlan, ExtraFields, FieldPlan, Files,
    KEPT_FILES_MAX_BYTES, KeptFilesPlan, LoaderPaths, MAPS_TIMEOUT, Output, RatePlan,
    RecordOptions, Streaming, Synthesis, TrackingPlan,
};
use whit_capture::registers;
use whit_host::roots::Roots;
use whit_host::target::Target;

/// Where the recording goes without `-o`.
const DEFAULT_OUTPUT: &str = "perf.data";

/// Where unwind tables are kept; nowhere without a home directory.
fn table_cache() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("whit/unwind"))
}

/// Where the system looks for commands and libraries.
fn loader_paths() -> LoaderPaths {
    let list = |name| {
        let value = std::env::var_os(name).unwrap_or_default();
        std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty()).collect()
    };
    let mut loader = LoaderPaths {
        commands: list("PATH"),
        libraries: list("LD_LIBRARY_PATH"),
        preloaded: list("LD_PRELOAD"),
    };
    // Names without a directory are looked for as libraries are, which is not worth it here.
    loader.preloaded.retain(|path| path.is_absolute());
    loader
}

impl RecordArgs {
    pub(super) fn options(
        &self,
        roots: &Roots,
        listener: &mut dyn Listener,
    ) -> Result<RecordOptions> {
        if let Some(first) = self.command.first().and_then(|name| name.to_str())
            && first.starts_with('-')
        {
            bail_usage!("unknown option '{first}'{}", short_options::similar("record", first));
        }
        self.check_mode_of_g()?;
        self.check_level_of_z()?;
        self.check_off_cpu()?;
        let has_command = !self.command.is_empty();
        let (target, event_args) = self.target(has_command, roots, listener)?;
        let cgroups = self.all_cgroups || (target.covers_cpus() && !self.no_all_cgroups);
        let output = self.output.as_ref().or(self.output_dir.as_ref());
        let output = output.cloned().unwrap_or_else(|| DEFAULT_OUTPUT.into());
        let output = if output.as_os_str() == "-" { Output::Stdout } else { Output::File(output) };
        self.check_embedding(&output)?;
        let by_frame_pointers = if self.g { CallGraph::FramePointer } else { CallGraph::None };
        let specs = self.events(&event_args, listener)?;
        let events = EventPlan {
            target,
            rate: RatePlan {
                by_user: self.rate(roots)?,
                is_strict: self.strict_freq,
                keeps_periods: self.fixed_periods,
            },
            chains: ChainPlan {
                call_graph: self.call_graph.map_or(by_frame_pointers, |chains| chains.mode),
                is_deferred: self.call_graph.is_some_and(|chains| chains.is_deferred),
                kernel_only: self.kernel_callchains,
                user_only: self.user_callchains,
                max_frames: self.call_graph.and_then(|chains| chains.max_stack),
            },
            fields: self.fields()?,
            counts: CountPlan {
                alone: self.no_samples,
                by_thread: self.stat,
                running_time: self.running_time,
            },
            tracking: self.tracking(cgroups),
            inherit: !self.no_inherit,
            per_thread: self.per_thread,
            overwrite: self.overwrite,
            clock: self.clockid,
            skip_unsupported: self.skip_unsupported,
            ..EventPlan::for_command(specs)
        };
        Ok(RecordOptions {
            engine: self.engine_of_waits().unwrap_or(Engine::Unset),
            is_call_graph_given: self.call_graph.is_some(),
            table_cache: table_cache(),
            loader: loader_paths(),
            start: self.delay.clone().unwrap_or_default(),
            ring_size: self.mmap_pages.unwrap_or_default(),
            unbuffered: self.no_buffering,
            max_overhead_ppm: self.max_overhead_ppm()?,
            streaming: self.streaming(),
            files: Files {
                switch: self.switch_output,
                max_files: self.switch_max_files,
                timestamp: self.timestamp_filename,
                max_bytes: self.max_size.map(|bytes| bytes as u64),
            },
            control: self.control.clone(),
            realtime_priority: self.realtime,
            synthesis: self.synthesis(),
            build_ids: !self.no_buildid,
            room_for_names: self.embed_symbols.is_some(),
            java_maps: self.perf_map,
            kept_files: self.kept_files(),
            command_line: command_line(),
            version: format!("whit {}", env!("CARGO_PKG_VERSION")),
            ..RecordOptions::new(events, self.command.clone(), output)
        })
    }

    /// The target, and the options of events that are left for the events.
    fn target(
        &self,
        has_command: bool,
        roots: &Roots,
        listener: &mut dyn Listener,
    ) -> Result<(Target, EventArgs)> {
        // With -a or -C cgroups are dealt to single events, as by perf.
        let (events, cgroups) = match self.target.covers_cpus() {
            true => (self.events.clone(), Vec::new()),
            false => self.events.without_cgroups(),
        };
        let (names, user) = (self.names.with_cgroups(cgroups), self.uid.as_deref());
        let are_given =
            self.names.are_given() || (self.events.has_cgroups() && !self.target.covers_cpus());
        if are_given && names.is_empty() {
            bail_usage!("--cgroup, --container, --unit and --comm take names: none is given");
        }
        if names.is_empty() {
            let (target, overridden) = self.target.choose(user, has_command, roots)?;
            for what in overridden.into_iter().filter(|_| !self.quiet) {
                message::warning(what);
            }
            return Ok((target, events));
        }
        let (target, notes) = self.target.choose_by_name(user, &names, roots)?;
        notes.into_iter().for_each(|note| listener.notice(Notice::Name(note)));
        Ok((target, events))
    }

    /// Rings that are overwritten hold samples of before and after a change.
    fn max_overhead_ppm(&self) -> Result<Option<u32>> {
        if self.max_overhead.is_some() && self.overwrite {
            bail_usage!(
                "--max-overhead changes the time between samples, and --overwrite keeps samples of before and after \
                 in one ring: leave one of them out"
            );
        }
        Ok(self.max_overhead)
    }

    /// perf's cache of binaries.
    fn kept_files(&self) -> Option<KeptFilesPlan> {
        let directory =
            perf_cache::directory().filter(|_| !self.no_buildid && !self.no_buildid_cache)?;
        let max_bytes = self.buildid_cache_size.map_or(KEPT_FILES_MAX_BYTES, |bytes| bytes as u64);
        (max_bytes > 0).then_some(KeptFilesPlan { directory, max_bytes })
    }

    /// `-g` takes no mode; the word behind it is the command. It is refused if it is a mode, as in `-g
    /// dwarf PROGRAM`, which older perfs took.
    fn check_mode_of_g(&self) -> Result<()> {
        let mode = self.command.first().and_then(|name| name.to_str()).unwrap_or_default();
        if self.g && parse::call_graph(mode).is_ok() && !has_separator(self.command.len()) {
            bail_usage!(
                "-g takes no mode: did you mean --call-graph {mode}? (to run a program called \
                 '{mode}', write -- before it)"
            );
        }
        Ok(())
    }

    /// `-z` takes its level with '='; a number behind it would be the command.
    fn check_level_of_z(&self) -> Result<()> {
        let level = self.command.first().and_then(|word| word.to_str()).unwrap_or_default();
        let is_level = level.parse::<u32>().is_ok() && !has_separator(self.command.len());
        if self.compression_level.is_some() && is_level {
            bail_usage!(
                "-z takes its level with '=': did you mean --compression-level={level}? (to run a program called \
                 '{level}', write -- before it)"
            );
        }
        Ok(())
    }

    fn streaming(&self) -> Streaming {
        Streaming {
            async_blocks: self.aio.unwrap_or(0),
            affinity: self.affinity.unwrap_or_default(),
            compression_level: self.compression_level.and_then(|level| level.0),
            flush_bytes: self.mmap_flush.unwrap_or(1),
            threads: self.threads.clone(),
            directory: self.dir || self.output_dir.is_some(),
        }
    }

    fn rate(&self, roots: &Roots) -> Result<Option<Rate>> {
        Ok(match (self.count, self.freq) {
            (Some(count), _) => Some(Rate::Period(count)),
            (None, Some(parse::Frequency::Hz(hz))) => Some(Rate::FrequencyHz(hz)),
            (None, Some(parse::Frequency::Max)) => {
                let hz = whit_capture::configure::max_frequency_hz(roots)
                    .context("cannot read /proc/sys/kernel/perf_event_max_sample_rate")?;
                Some(Rate::FrequencyHz(hz))
            }
            (None, None) => None,
        })
    }

    fn fields(&self) -> Result<FieldPlan> {
        Ok(FieldPlan {
            branches: self.branch_filter.or(self.branch_any.then_some(BranchFilter::ANY)),
            user_registers: registers(self.user_regs.as_deref())?,
            interrupt_registers: registers(self.intr_regs.as_deref())?,
            data_addresses: self.data,
            periods: self.period,
            cpus: self.sample_cpu,
            raw: self.raw_samples,
            extra: self.extra_fields(),
        })
    }

    fn tracking(&self, cgroups: bool) -> TrackingPlan {
        TrackingPlan {
            switches: self.switch_events || self.wakeups || self.off_cpu,
            packs_switches: !self.no_pack,
            off_cpu: self.off_cpu,
            off_cpu_period_ns: self.off_cpu_period.unwrap_or(0),
            fallback_off_cpu_period_ns: 0,
            wakeups: self.wakeups,
            cgroups,
            namespaces: self.namespaces,
            bpf_events: !self.no_bpf_event,
            kernel_build_ids: self.buildid_mmap && !self.no_buildid,
        }
    }

    fn extra_fields(&self) -> ExtraFields {
        ExtraFields {
            physical_addresses: self.phys_data,
            data_page_sizes: self.data_page_size,
            code_page_sizes: self.code_page_size,
            weights: self.weight,
            transactions: self.transaction,
            identifier: self.sample_identifier,
        }
    }

    fn synthesis(&self) -> Synthesis {
        let what = self.synth.map_or_else(Synthesis::default, |synth| synth.0);
        Synthesis {
            at_end: self.tail_synthesize,
            threads: self.num_thread_synthesize,
            maps_timeout: self.proc_map_timeout.map_or(MAPS_TIMEOUT, Duration::from_millis),
            ..what
        }
    }

    fn events(&self, args: &EventArgs, listener: &mut dyn Listener) -> Result<Vec<EventSpec>> {
        let mut skipped = |event, why| listener.notice(Notice::EventLeftOut { event, why });
        let skipped: Option<Skipped<'_>> =
            if self.skip_unsupported { Some(&mut skipped) } else { None };
        let mut events: Vec<EventSpec> =
            args.resolve(self.tables.pmus()?, super::events::DEFAULT, skipped)?;
        let is_group = self.group && events.len() > 1;
        for event in &mut events {
            self.all_events.apply(event);
            if is_group {
                event.leader = Some(0);
            }
        }
        Ok(events)
    }
}

/// Whether `--` stands before a command of so many words.
fn has_separator(words: usize) -> bool {
    let own = std::env::args_os().len() - words;
    own.checked_sub(1).and_then(|last| std::env::args_os().nth(last)).is_some_and(|arg| arg == "--")
}

/// A mask from names; without names, every register.
fn registers(names: Option<&str>) -> Result<u64> {
    match names {
        None => Ok(0),
        Some("") => Ok(registers::all(arch()?)),
        Some(names) => registers::parse(arch()?, names).map_err(usage),
    }
}

/// As recordings keep it: the program's full path, then the arguments.
fn command_line() -> Vec<String> {
    let program = std::env::current_exe().map(|path| path.to_string_lossy().into_owned());
    let arguments = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned());
    program.into_iter().chain(arguments).collect()
}
