//! The cost of a recording inside the kernel: interrupts of the PMU, and the BPF program that counts
//! them. A thread loads the program beside the set-up, so that the recording does not wait for it.
//! If it cannot be loaded, the ledger gives the reason, and the recording is the same.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whit_bpf::BpfError;
use whit_bpf::pmi::{self, PmiMeter, RunStatistics};
use whit_engine_api::open_event::OpenEvent;
use whit_host::roots::Roots;
use whit_perfdata::ledger::{BpfLedger, BpfMeasurement, PmiLedger, PmiMeasurement};
use whit_sys::Errno;

use crate::notice::{Listener, Notice};
use crate::pmi::{any_interrupts, perf_handlers};

/// Name of the thread.
const THREAD: &str = "whit-meter";
/// The part of the result that is missing without a meter, for a notice.
const WHAT: &str = "the time of PMU interrupts in the ledger";

/// The meter: on its way, at work or absent.
#[derive(Debug)]
pub(super) enum Metering {
    /// A thread loads it.
    Loading(JoinHandle<Result<Meter, Failure>>),
    /// It counts.
    Running(Meter),
    /// No meter runs, for this reason.
    Off(PmiMeasurement),
}

/// A meter that counts.
#[derive(Debug)]
pub(super) struct Meter {
    meter: PmiMeter,
    since: Instant,
    /// Addresses of perf's handlers, where they are known.
    handlers: Option<Vec<u64>>,
}

/// Why there is no meter.
#[derive(Debug)]
pub(super) struct Failure {
    reason: PmiMeasurement,
    why: String,
}

/// Where the sums of one output begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MeterSnapshot {
    at: Option<Instant>,
    count: u64,
    time_ns: u64,
    runs: RunStatistics,
    timed: Duration,
}

impl Metering {
    /// Has a meter loaded where one of the events is sampled by interrupts of a PMU.
    pub(super) fn start(events: &[OpenEvent], roots: &Roots) -> Metering {
        if any_interrupts(events.iter().map(|event| &event.event.attr), roots) {
            Metering::load(roots)
        } else {
            Metering::Off(PmiMeasurement::NoPmuEvent)
        }
    }

    fn load(roots: &Roots) -> Metering {
        let roots = roots.clone();
        let thread = std::thread::Builder::new().name(THREAD.to_owned());
        match thread.spawn(move || Meter::start(&roots)) {
            Ok(thread) => Metering::Loading(thread),
            // The readers' threads will report the reason.
            Err(_) => Metering::Off(PmiMeasurement::Refused),
        }
    }

    /// Takes the meter over from the thread once it is there.
    pub(super) fn settle(&mut self, listener: &mut dyn Listener) {
        if !matches!(self, Metering::Loading(thread) if thread.is_finished()) {
            return;
        }
        let now = std::mem::replace(self, Metering::Off(PmiMeasurement::Refused));
        let Metering::Loading(thread) = now else { return };
        let loaded = thread.join().unwrap_or_else(|_| {
            let why = "the thread that loads the BPF program panicked".to_owned();
            Err(Failure { reason: PmiMeasurement::Refused, why })
        });
        *self = match loaded {
            Ok(meter) => Metering::Running(meter),
            Err(Failure { reason, why }) => {
                listener.notice(Notice::Skipped { what: WHAT.to_owned(), why });
                Metering::Off(reason)
            }
        };
    }

    /// The sums so far, for an output that begins.
    pub(super) fn mark(&self) -> MeterSnapshot {
        let Metering::Running(meter) = self else { return MeterSnapshot::default() };
        meter.mark()
    }

    /// The counts from the beginning of an output until `stopped`.
    pub(super) fn since(&self, mark: &MeterSnapshot, stopped: Instant) -> (PmiLedger, BpfLedger) {
        match self {
            Metering::Off(reason) => without(*reason),
            // Nobody waits for it.
            Metering::Loading(_) => without(PmiMeasurement::TooShort),
            Metering::Running(meter) => (meter.pmi(mark, stopped), meter.bpf(mark)),
        }
    }
}

fn without(reason: PmiMeasurement) -> (PmiLedger, BpfLedger) {
    let bpf = BpfLedger { measurement: BpfMeasurement::NoProgram, ..BpfLedger::default() };
    (PmiLedger { measurement: reason, ..PmiLedger::default() }, bpf)
}

impl Meter {
    fn start(roots: &Roots) -> Result<Meter, Failure> {
        let meter =
            PmiMeter::start(roots.times_bpf_programs()).map_err(|error| Failure::of(&error))?;
        let since = Instant::now();
        // After that: interrupts before the program is there are missed for good.
        Ok(Meter { meter, since, handlers: perf_handlers(roots) })
    }

    /// A failed read counts as zero, as at the beginning of the recording.
    fn mark(&self) -> MeterSnapshot {
        let sum = self.meter.read().map(|reading| reading.sum(self.handlers.as_deref()));
        let sum = sum.unwrap_or_default();
        let runs = self.meter.run_statistics().unwrap_or_default();
        let timed = self.meter.timed();
        MeterSnapshot {
            at: Some(Instant::now()),
            count: sum.calls,
            time_ns: sum.time_ns,
            runs,
            timed,
        }
    }

    fn pmi(&self, mark: &MeterSnapshot, stopped: Instant) -> PmiLedger {
        let Ok(reading) = self.meter.read() else {
            return PmiLedger { measurement: PmiMeasurement::Refused, ..PmiLedger::default() };
        };
        let sum = reading.sum(self.handlers.as_deref());
        let begin = mark.at.map_or(self.since, |at| at.max(self.since));
        PmiLedger {
            measurement: match self.handlers {
                Some(_) => PmiMeasurement::PerfHandlers,
                None => PmiMeasurement::AllHandlers,
            },
            count: sum.calls.saturating_sub(mark.count),
            time_ns: sum.time_ns.saturating_sub(mark.time_ns),
            longest_ns: sum.longest_ns,
            measured_ns: stopped.saturating_duration_since(begin).as_nanos() as u64,
        }
    }

    fn bpf(&self, mark: &MeterSnapshot) -> BpfLedger {
        let programs = BpfLedger { programs: pmi::PROGRAMS, ..BpfLedger::default() };
        match self.meter.run_statistics() {
            Ok(now) => BpfLedger {
                measurement: BpfMeasurement::Statistics,
                runs: now.runs.saturating_sub(mark.runs.runs),
                run_time_ns: now.run_time_ns.saturating_sub(mark.runs.run_time_ns),
                timed_ns: self.meter.timed().saturating_sub(mark.timed).as_nanos() as u64,
                ..programs
            },
            Err(errno) => BpfLedger { measurement: no_statistics(errno), ..programs },
        }
    }
}

impl Failure {
    fn of(error: &BpfError) -> Failure {
        let reason = match error {
            error if error.is_permission() => PmiMeasurement::NotPermitted,
            error if error.is_absent() => PmiMeasurement::NoTracepoint,
            error if error.is_unsupported() => PmiMeasurement::NoBpf,
            _ => PmiMeasurement::Refused,
        };
        let source = std::error::Error::source(error).map(ToString::to_string);
        let why = source.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
        Failure { reason, why }
    }
}

/// Why the kernel keeps no statistics of our program.
fn no_statistics(errno: Errno) -> BpfMeasurement {
    match errno {
        Errno::PERM | Errno::ACCESS => BpfMeasurement::NotPermitted,
        // BPF_ENABLE_STATS is not known; the structure has no such field.
        Errno::INVAL | Errno::OPNOTSUPP => BpfMeasurement::NoStatistics,
        _ => BpfMeasurement::Refused,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn refused(errno: i32) -> BpfError {
        BpfError::Refused {
            attempt: "load a program",
            source: io::Error::from_raw_os_error(errno).into(),
            messages: whit_bpf::Messages::default(),
        }
    }

    #[test]
    fn every_refusal_has_its_reason() {
        for (errno, reason) in [
            (Errno::PERM, PmiMeasurement::NotPermitted),
            (Errno::ACCESS, PmiMeasurement::NotPermitted),
            (Errno::NOENT, PmiMeasurement::NoTracepoint),
            (Errno::NOSYS, PmiMeasurement::NoBpf),
            (Errno::INVAL, PmiMeasurement::Refused),
        ] {
            let failure = Failure::of(&refused(errno.raw_os_error()));
            assert_eq!(failure.reason, reason, "{errno}");
            assert!(failure.why.contains("cannot load a program"), "{}", failure.why);
        }
        assert_eq!(no_statistics(Errno::PERM), BpfMeasurement::NotPermitted);
        assert_eq!(no_statistics(Errno::INVAL), BpfMeasurement::NoStatistics);
        assert_eq!(no_statistics(Errno::BUSY), BpfMeasurement::Refused);
    }

    #[test]
    fn without_an_event_of_the_pmu_nothing_is_loaded() {
        let mut metering = Metering::start(&[], &Roots::default());
        assert!(matches!(metering, Metering::Off(PmiMeasurement::NoPmuEvent)));
        metering.settle(&mut |notice| panic!("{notice}"));
        let (pmi, bpf) = metering.since(&metering.mark(), Instant::now());
        assert_eq!(pmi.measurement, PmiMeasurement::NoPmuEvent);
        assert_eq!((bpf.measurement, bpf.programs), (BpfMeasurement::NoProgram, 0));
    }

    #[test]
    fn a_recording_that_ends_before_the_meter_is_there_does_not_wait() {
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = wait.recv();
            Err(Failure::of(&refused(Errno::NOENT.raw_os_error())))
        });
        let mut metering = Metering::Loading(thread);
        metering.settle(&mut |notice| panic!("{notice}"));
        let (pmi, bpf) = metering.since(&MeterSnapshot::default(), Instant::now());
        assert_eq!(pmi.measurement, PmiMeasurement::TooShort);
        assert_eq!(bpf.measurement, BpfMeasurement::NoProgram);
        drop(go);
        let mut said = Vec::new();
        while matches!(metering, Metering::Loading(_)) {
            metering.settle(&mut |notice: Notice| said.push(notice));
            std::thread::yield_now();
        }
        let (pmi, _) = metering.since(&MeterSnapshot::default(), Instant::now());
        assert_eq!(pmi.measurement, PmiMeasurement::NoTracepoint);
        // Told to those who ask with -v, and to nobody else.
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].level(), whit_host::level::Level::Verbose);
    }

    /// Loads it as an event of a PMU would have it loaded, whether this machine has one or not.
    fn loaded() -> Metering {
        let mut metering = Metering::load(&Roots::default());
        while matches!(metering, Metering::Loading(_)) {
            metering.settle(&mut |_: Notice| {});
            std::thread::yield_now();
        }
        metering
    }

    #[test]
    fn each_output_has_its_own_sums() {
        let metering = loaded();
        let Metering::Running(meter) = &metering else {
            let (pmi, bpf) = metering.since(&MeterSnapshot::default(), Instant::now());
            let lacks = whit_testing::probe::bpf_interrupts();
            let Err(whit_testing::Skip(reason)) = lacks else { panic!("{:?}", pmi.measurement) };
            whit_testing::skip("each_output_has_its_own_sums", &reason);
            assert!(pmi.measurement.reason().is_some());
            assert_eq!(bpf.measurement, BpfMeasurement::NoProgram);
            return;
        };
        // A handler that perf has; where addresses are hidden, any will do.
        let handler = meter.handlers.as_ref().map_or(0x1000, |handlers| handlers[0]);
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
        let cpu: u32 = online.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
        let pretend = |handler, time_ns| meter.meter.pretend(cpu, handler, time_ns, 1).unwrap();
        pretend(handler, 1_000);
        pretend(handler, 3_000);
        let (first, first_bpf) = metering.since(&MeterSnapshot::default(), Instant::now());
        let mark = metering.mark();
        pretend(handler, 500);
        // Not perf's.
        pretend(0x2000, 1 << 40);
        let stopped = Instant::now();
        let (second, second_bpf) = metering.since(&mark, stopped);
        match meter.handlers {
            Some(_) => assert_eq!(first.measurement, PmiMeasurement::PerfHandlers),
            None => return assert_eq!(first.measurement, PmiMeasurement::AllHandlers),
        }
        // A PMU of this machine may interrupt meanwhile.
        assert!(first.count >= 2 && first.time_ns >= 4_000 && first.longest_ns >= 3_000);
        assert!(second.count >= 1 && second.time_ns >= 500 && second.longest_ns >= 3_000);
        assert!(second.time_ns < 1 << 40, "{second:?}");
        assert_eq!(second.measured_ns, (stopped - mark.at.unwrap()).as_nanos() as u64);
        assert!(first.measured_ns > 0);
        assert_eq!((first_bpf.programs, second_bpf.programs), (1, 1));
        if first_bpf.measurement == BpfMeasurement::Statistics {
            // Runs are timed for a part of the time: the second output may have none of it.
            assert!(first_bpf.timed_ns > 0, "{first_bpf:?}");
            let timed = meter.meter.timed().as_nanos();
            assert!(u128::from(second_bpf.timed_ns) <= timed, "{second_bpf:?}");
            assert!(second_bpf.runs == 0 || second_bpf.run_time_ns > 0, "{second_bpf:?}");
        } else {
            assert!(first_bpf.measurement.reason().is_some());
        }
    }
}
