//! The plan of a recording: the options, turned once into a part for each of those who carry it out.
//!
//! Nothing below the plan reads the options. The choice of the engine ([`crate::session`]) changes the parts that
//! depend on it; after that the plan stays as it is.

use std::ffi::OsString;

use whit_bpf_engine::StackPlan;
use whit_engine_api::event_plan::{BeginPlan, EventPlan, ReadCgroups};
use whit_host::control::ControlSpec;
use whit_host::target::Target;
use whit_sys::clock::ClockId;

#[cfg(test)]
use crate::event::EventSpec;
use crate::kept_files::KeptFilesPlan;
use crate::options::{
    Choices, Engine, Files, Output, RecordOptions, RingSize, Start, Streaming, SwitchOutput,
    Synthesis,
};

/// All parts.
#[derive(Clone, Debug)]
pub(crate) struct RecordPlan {
    pub(crate) events: EventPlan,
    /// The engine that the user asked for.
    pub(crate) engine: EnginePlan,
    pub(crate) rings: RingPlan,
    pub(crate) streams: StreamPlan,
    pub(crate) output: OutputPlan,
    pub(crate) synthesis: SynthesisPlan,
    pub(crate) header: HeaderPlan,
    pub(crate) schedule: SchedulePlan,
    pub(crate) command: CommandPlan,
    /// Millionths of the capacity that the recording may cost.
    pub(crate) budget_ppm: Option<u32>,
}

/// A budget that has no room for every context switch has a sample for so much off-CPU time.
const FALLBACK_OFF_CPU_PERIOD_NS: u64 = 1_000_000;

/// The maker of call chains.
#[derive(Clone, Debug)]
pub(crate) struct EnginePlan {
    pub(crate) wish: Engine,
    pub(crate) choices: Choices,
    /// The part of the BPF engine.
    pub(crate) stacks: StackPlan,
}

/// The rings of the events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPlan {
    pub(crate) size: RingSize,
    pub(crate) choices: Choices,
}

/// From the rings to the disk.
#[derive(Clone, Debug)]
pub(crate) struct StreamPlan {
    pub(crate) streaming: Streaming,
    /// Some records stand for many.
    pub(crate) is_packed: bool,
    /// Readers run as `SCHED_FIFO` with this priority.
    pub(crate) realtime_priority: Option<i32>,
}

/// The files that the recording becomes.
#[derive(Clone, Debug)]
pub(crate) struct OutputPlan {
    pub(crate) output: Output,
    pub(crate) makes_directory: bool,
    pub(crate) files: Files,
    /// perf's cache of binaries, for copies; `None` makes none.
    pub(crate) kept_files: Option<KeptFilesPlan>,
    /// The zstd level that the header states.
    pub(crate) compression_level: Option<i32>,
    pub(crate) choices: Choices,
}

/// Records for processes and code that existed before the recording.
#[derive(Clone, Debug)]
pub(crate) struct SynthesisPlan {
    pub(crate) what: Synthesis,
    pub(crate) target: Target,
    pub(crate) cgroups: bool,
    /// Those that the engine reads.
    pub(crate) read_cgroups: Option<ReadCgroups>,
    pub(crate) namespaces: bool,
    pub(crate) choices: Choices,
}

/// The part of the header that is known before anything is recorded.
#[derive(Clone, Debug)]
pub(crate) struct HeaderPlan {
    pub(crate) version: String,
    pub(crate) command_line: Vec<String>,
    pub(crate) wait_reasons: Vec<String>,
    pub(crate) choices: Choices,
    /// The clock of the time stamps, where it is not the kernel's own.
    pub(crate) clock: Option<ClockId>,
    pub(crate) wakeups: bool,
    pub(crate) compression_level: Option<i32>,
}

/// Steps at certain times, and steps on demand.
#[derive(Clone, Debug)]
pub(crate) struct SchedulePlan {
    pub(crate) start: Start,
    pub(crate) switch: Option<SwitchOutput>,
    /// The channel for commands of other programs.
    pub(crate) control: Option<ControlSpec>,
}

/// The command that is run; empty for none.
#[derive(Clone, Debug)]
pub(crate) struct CommandPlan {
    pub(crate) arguments: Vec<OsString>,
    /// Standard output is the recording's.
    pub(crate) stdout_to_stderr: bool,
}

impl RecordPlan {
    /// The plan for these options.
    pub(crate) fn new(options: &RecordOptions) -> RecordPlan {
        let events = events(options);
        let is_recorded = events.target == Target::Command;
        RecordPlan {
            budget_ppm: options.max_overhead_ppm,
            engine: EnginePlan {
                wish: options.engine,
                choices: options.choices,
                stacks: StackPlan {
                    ring_size: options.ring_size,
                    table_cache: options.table_cache.clone(),
                    program: options.command.first().filter(|_| is_recorded).cloned(),
                    loader: options.loader.clone(),
                },
            },
            rings: RingPlan { size: options.ring_size, choices: options.choices },
            streams: StreamPlan {
                streaming: options.streaming.clone(),
                is_packed: false,
                realtime_priority: options.realtime_priority,
            },
            output: OutputPlan {
                output: options.output.clone(),
                makes_directory: options.streaming.makes_directory(),
                files: options.files,
                kept_files: options.kept_files.clone(),
                compression_level: options.streaming.compression_level,
                choices: options.choices,
            },
            synthesis: SynthesisPlan {
                what: options.synthesis,
                target: events.target.clone(),
                cgroups: events.tracking.cgroups && options.synthesis.cgroups,
                read_cgroups: None,
                namespaces: events.tracking.namespaces,
                choices: options.choices,
            },
            header: HeaderPlan {
                version: options.version.clone(),
                wait_reasons: options.wait_reasons.clone(),
                command_line: options.command_line.clone(),
                choices: options.choices,
                clock: events.clock,
                wakeups: events.tracking.wakeups,
                compression_level: options.streaming.compression_level,
            },
            schedule: SchedulePlan {
                start: options.start.clone(),
                switch: options.files.switch,
                control: options.control.clone(),
            },
            command: CommandPlan {
                arguments: options.command.clone(),
                stdout_to_stderr: options.output == Output::Stdout,
            },
            events,
        }
    }

    /// That of a recording of a command with every default.
    #[cfg(test)]
    pub(crate) fn for_command(events: Vec<EventSpec>, output: Output) -> RecordPlan {
        let events = EventPlan::for_command(events);
        RecordPlan::new(&RecordOptions::new(events, vec!["true".into()], output))
    }

    /// Changes the parts that depend on the engine: events, ring size, packing and clock.
    pub(crate) fn adapt_to(&mut self, engine: &dyn whit_engine_api::Engine) {
        engine.adapt(&mut self.events, &mut self.rings.size);
        self.streams.is_packed = engine.capabilities().packs_switches;
        self.header.clock = self.events.clock;
        self.synthesis.read_cgroups = self.events.read_cgroups.clone();
    }
}

fn events(options: &RecordOptions) -> EventPlan {
    let mut events = EventPlan {
        begin: BeginPlan {
            at_once: options.start == Start::AtOnce,
            is_controlled: options.control.is_some(),
        },
        ..options.events.clone()
    };
    if options.max_overhead_ppm.is_some() {
        // Samples say their event and their period, at the same place in all of them.
        events.fields.periods = true;
        events.fields.extra.identifier = true;
        events.tracking.fallback_off_cpu_period_ns = FALLBACK_OFF_CPU_PERIOD_NS;
        // Changes of settings are stamped by a clock that this process reads, too.
        events.clock = events.clock.or(Some(ClockId::MONOTONIC));
    }
    events
}
