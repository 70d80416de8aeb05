//! Opening events, and bearing the kernel's refusals.
//!
//! [`open_everywhere`] opens one event for each of its targets, and leaves out those that have gone. On a
//! refusal, the owner of the event ([`Opening`]) decides: open it with less, or give a verdict.

use std::os::fd::{AsRawFd, BorrowedFd};

use whit_sys::limit::Limit;
use whit_sys::{Errno, OpenFlags, PerfEventFd};
use whit_types::{CpuId, Tid};

use crate::cpus;
use crate::rights::Rights;
use crate::roots::Roots;

/// "Any" and "all" as `perf_event_open(2)` writes them.
const ANY: i32 = -1;
/// The calling thread as `perf_event_open(2)` writes it.
const OWN: i32 = 0;

/// Descriptors that are needed besides events: standard streams, output, epoll, signals, pipes.
pub const SPARE_DESCRIPTORS: usize = 24;

/// The threads for which an event is opened.
#[derive(Clone, Copy, Debug)]
pub enum Tasks<'a> {
    /// Any thread that runs.
    All,
    /// The calling thread.
    Own,
    /// One thread, on any CPU or on one.
    Thread(Tid),
    /// The tasks of the cgroup of this directory.
    Cgroup(BorrowedFd<'a>),
}

impl From<Option<Tid>> for Tasks<'_> {
    fn from(tid: Option<Tid>) -> Self {
        tid.map_or(Tasks::All, Tasks::Thread)
    }
}

/// Where one instance of an event is opened.
#[derive(Clone, Copy, Debug)]
pub struct EventTarget<'a> {
    /// The CPU; `None` is any.
    pub cpu: Option<CpuId>,
    /// The threads of the event.
    pub tasks: Tasks<'a>,
}

/// A target that there is not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The thread has ended.
    Thread(Tid),
    /// The CPU is offline.
    Cpu(CpuId),
}

impl EventTarget<'_> {
    /// Whether a refusal means that the target has gone.
    pub fn gone(&self, errno: Errno, roots: &Roots) -> Option<Gone> {
        match (errno, self.tasks, self.cpu) {
            (Errno::SRCH, Tasks::Thread(tid), _) => Some(Gone::Thread(tid)),
            (Errno::NODEV, _, Some(cpu)) if cpus::is_offline(roots, cpu) => Some(Gone::Cpu(cpu)),
            _ => None,
        }
    }
}

/// Opens an event.
///
/// # Errors
///
/// The kernel's refusal.
pub fn open(
    attr: &[u8],
    target: EventTarget<'_>,
    leader: Option<&PerfEventFd>,
) -> Result<PerfEventFd, Errno> {
    let cpu = match target.cpu {
        Some(CpuId(cpu)) => i32::try_from(cpu).map_err(|_| Errno::INVAL)?,
        None => ANY,
    };
    let (pid, pid_is_cgroup) = match target.tasks {
        Tasks::All => (ANY, false),
        Tasks::Own => (OWN, false),
        Tasks::Thread(Tid(tid)) => (tid, false),
        Tasks::Cgroup(directory) => (directory.as_raw_fd(), true),
    };
    PerfEventFd::open(attr, pid, cpu, leader, OpenFlags { pid_is_cgroup })
}

/// A refusal, and the CPU of the target that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The kernel's error.
    pub errno: Errno,
    /// The CPU; `None` is any.
    pub cpu: Option<CpuId>,
}

/// Opens an event for one target after the other, each with the leader of its group. `gone` gets each target
/// that has ended, and `None` takes its place.
///
/// # Errors
///
/// The first refusal of a target that is there.
pub fn open_everywhere<'a>(
    attr: &[u8],
    targets: impl IntoIterator<Item = (EventTarget<'a>, Option<&'a PerfEventFd>)>,
    roots: &Roots,
    gone: &mut dyn FnMut(Gone),
) -> Result<Vec<Option<PerfEventFd>>, Refused> {
    let one = |(target, leader): (EventTarget<'a>, Option<&'a PerfEventFd>)| {
        let errno = match open(attr, target, leader) {
            Ok(fd) => return Ok(Some(fd)),
            Err(errno) => errno,
        };
        match target.gone(errno, roots) {
            Some(who) => {
                gone(who);
                Ok(None)
            }
            None => Err(Refused { errno, cpu: target.cpu }),
        }
    };
    targets.into_iter().map(one).collect()
}

/// An event on its way to be open.
pub trait Opening {
    /// The open event.
    type Opened;
    /// The outcome for an event that stays refused.
    type Verdict;

    /// Tries to open it everywhere.
    ///
    /// # Errors
    ///
    /// The first refusal.
    fn open(&mut self) -> Result<Self::Opened, Refused>;

    /// Answers a refusal with something that the kernel may take: the event is tried again.
    ///
    /// # Errors
    ///
    /// The verdict, where there is nothing left to try.
    fn fall_back(&mut self, refused: Refused) -> Result<(), Self::Verdict>;
}

/// Opens an event, with as many fallbacks as it takes.
///
/// # Errors
///
/// The verdict.
pub fn open_with_fallbacks<O: Opening>(mut opening: O) -> Result<O::Opened, O::Verdict> {
    loop {
        match opening.open() {
            Ok(opened) => return Ok(opened),
            Err(refused) => opening.fall_back(refused)?,
        }
    }
}

/// An event that can count less: without kernel mode, or with guests.
pub trait Reducible {
    /// Whether the kernel's software counts it.
    fn is_software(&self) -> bool;
    /// Whether it leaves guests out.
    fn leaves_guests_out(&self) -> bool;
    /// Whether it covers both kernel mode and user mode.
    fn covers_both_modes(&self) -> bool;
    /// Stops the exclusion of guests, for PMUs that cannot exclude them.
    fn take_guests_in(&mut self);
    /// Leaves kernel mode out.
    fn leave_kernel_out(&mut self);
}

/// Not every PMU can tell guests from the host: where that may be the reason for a refusal, takes them in.
pub fn give_up_guests(event: &mut impl Reducible, errno: Errno) -> bool {
    let may_help = matches!(errno, Errno::INVAL | Errno::OPNOTSUPP)
        && !event.is_software()
        && event.leaves_guests_out();
    if may_help {
        event.take_guests_in();
    }
    may_help
}

/// User mode of one's own processes is free up to level 2; all of a CPU is not. Excludes kernel mode where that
/// may be the refused part.
pub fn give_up_kernel_mode(
    event: &mut impl Reducible,
    rights: Rights,
    is_system_wide: bool,
) -> bool {
    let may_help = event.covers_both_modes() && rights.paranoid > 1 && !is_system_wide;
    if may_help {
        event.leave_kernel_out();
    }
    may_help
}

/// The limit of open files, raised where more were needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// How many there may be now; `None` for any number.
    pub limit: Option<u64>,
    /// The former limit, where it was raised.
    pub raised_from: Option<u64>,
}

impl OpenFiles {
    /// Makes room for so many events, as far as this process may.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses to raise the soft limit to the hard one.
    pub fn make_room(events: usize) -> Result<OpenFiles, Errno> {
        let limit = Limit::OpenFiles.get().soft;
        let as_it_is = OpenFiles { limit, raised_from: None };
        if as_it_is.fits(events) { Ok(as_it_is) } else { OpenFiles::raise() }
    }

    /// Raises the soft limit to the hard one.
    ///
    /// # Errors
    ///
    /// Where the kernel refuses that.
    pub fn raise() -> Result<OpenFiles, Errno> {
        let from = Limit::OpenFiles.get().soft;
        let limit = Limit::OpenFiles.raise()?;
        Ok(OpenFiles { limit, raised_from: from.filter(|from| Some(*from) != limit) })
    }

    /// Whether so many events can be open.
    pub fn fits(&self, events: usize) -> bool {
        self.limit.is_none_or(|limit| needed(events) as u64 <= limit)
    }
}

/// The descriptors that so many events take, with all others.
pub fn needed(events: usize) -> usize {
    events + SPARE_DESCRIPTORS
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::attr::{Attr, AttrFlags, pmu_type};
    use whit_types::SoftwareEvent;

    fn clock(config: u64) -> Vec<u8> {
        let flags = AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
        Attr { pmu_type: pmu_type::SOFTWARE, config, flags, ..Attr::default() }.to_bytes()
    }

    fn target(tasks: Tasks<'static>) -> EventTarget<'static> {
        EventTarget { cpu: None, tasks }
    }

    #[test]
    fn threads_that_have_ended_are_left_out_and_reported() {
        let attr = clock(SoftwareEvent::TaskClock.config());
        let missing = Tid(i32::MAX);
        let own = Tid(whit_sys::system::thread_id());
        let targets = [Tasks::Own, Tasks::Thread(missing), Tasks::Thread(own)];
        let targets = targets.map(|tasks| (target(tasks), None));
        let mut reported = Vec::new();
        let open =
            open_everywhere(&attr, targets, &Roots::default(), &mut |gone| reported.push(gone));
        let open: Vec<_> = open.unwrap().iter().map(Option::is_some).collect();
        assert_eq!((open, reported), (vec![true, false, true], vec![Gone::Thread(missing)]));
    }

    #[test]
    fn the_first_refusal_is_given_with_its_cpu() {
        let cpu = cpus::online(&Roots::default()).unwrap()[0];
        let targets = [EventTarget { cpu: Some(cpu), tasks: Tasks::Own }].map(|one| (one, None));
        let refused =
            open_everywhere(&clock(12_345), targets, &Roots::default(), &mut |_| panic!());
        assert_eq!(refused.unwrap_err(), Refused { errno: Errno::NOENT, cpu: Some(cpu) });
    }

    #[test]
    fn a_cpu_that_is_offline_has_gone_and_one_that_is_online_refuses() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { sys: dir.path().to_owned(), ..Roots::default() };
        let directory = dir.path().join("devices/system/cpu");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("online"), "0\n").unwrap();
        let gone = |cpu, errno| {
            EventTarget { cpu: Some(CpuId(cpu)), tasks: Tasks::All }.gone(errno, &roots)
        };
        assert_eq!(gone(1, Errno::NODEV), Some(Gone::Cpu(CpuId(1))));
        assert_eq!((gone(0, Errno::NODEV), gone(1, Errno::SRCH)), (None, None));
        assert_eq!(target(Tasks::All).gone(Errno::NODEV, &roots), None);
    }

    #[derive(Default)]
    struct Event {
        tries: usize,
        is_software: bool,
        has_guests: bool,
        is_user_only: bool,
    }

    impl Reducible for Event {
        fn is_software(&self) -> bool {
            self.is_software
        }
        fn leaves_guests_out(&self) -> bool {
            !self.has_guests
        }
        fn covers_both_modes(&self) -> bool {
            !self.is_user_only
        }
        fn take_guests_in(&mut self) {
            self.has_guests = true;
        }
        fn leave_kernel_out(&mut self) {
            self.is_user_only = true;
        }
    }

    /// A PMU that knows no guests, and a kernel that keeps its own mode to itself.
    impl Opening for Event {
        type Opened = usize;
        type Verdict = Errno;

        fn open(&mut self) -> Result<usize, Refused> {
            self.tries += 1;
            match (self.has_guests, self.is_user_only) {
                (true, true) => Ok(self.tries),
                (true, false) => Err(Refused { errno: Errno::ACCESS, cpu: None }),
                (false, _) => Err(Refused { errno: Errno::INVAL, cpu: None }),
            }
        }

        fn fall_back(&mut self, refused: Refused) -> Result<(), Errno> {
            let rights = Rights { paranoid: 2, may_profile: false, is_filtered: false };
            let changed = match refused.errno {
                Errno::ACCESS => give_up_kernel_mode(self, rights, false),
                errno => give_up_guests(self, errno),
            };
            if changed { Ok(()) } else { Err(refused.errno) }
        }
    }

    #[test]
    fn an_event_is_tried_with_less_until_there_is_nothing_to_give_up() {
        assert_eq!(open_with_fallbacks(Event::default()), Ok(3));
        let software = Event { is_software: true, ..Event::default() };
        assert_eq!(open_with_fallbacks(software), Err(Errno::INVAL));
    }

    #[test]
    fn kernel_mode_is_given_up_where_that_can_help() {
        let reduce = |paranoid, is_system_wide| {
            let rights = Rights { paranoid, may_profile: false, is_filtered: false };
            give_up_kernel_mode(&mut Event::default(), rights, is_system_wide)
        };
        assert!(reduce(2, false));
        assert!(!reduce(1, false) && !reduce(2, true));
    }

    #[test]
    fn descriptors_fit_up_to_the_limit() {
        let files = OpenFiles { limit: Some(100), raised_from: None };
        assert!(files.fits(100 - SPARE_DESCRIPTORS) && !files.fits(101 - SPARE_DESCRIPTORS));
        assert!(OpenFiles { limit: None, raised_from: None }.fits(usize::MAX / 2));
        assert!(OpenFiles::make_room(1).unwrap().fits(1));
    }
}
