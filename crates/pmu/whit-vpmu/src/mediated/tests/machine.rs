//! The machine: its state, all steps from there, and its promises.

use super::hardware::{FORBIDDEN, Hardware, INSTRUCTIONS, SLOTS};
use crate::filter::{EventFilter, FilterAction, FilterEntry};
use crate::interrupt::{Delivery, Interrupt};
use crate::mediated::{HostShare, Mediated, Rule};
use crate::model::PmuModel;
use crate::msr::{self, evtsel};
use crate::register::Register;
use std::vec::Vec;

/// Most events since a counter was written, so that there is an end.
const COUNT_MAX: u64 = 1;

/// A guest's local APIC.
struct Apic;

impl Interrupt for Apic {
    fn pmi(&mut self, _: bool) -> Delivery {
        Delivery::Delivered
    }
}

/// The registers that a guest has to see, by plain arithmetic.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
struct Truth {
    counters: [u64; SLOTS],
    selects: [u64; SLOTS],
    fixed_control: u64,
    control: u64,
    status: u64,
    /// An overflow has asked for an interrupt that the guest has not had.
    owed: bool,
}

#[derive(Clone, PartialEq, Eq, Debug, Hash)]
struct Guest {
    started: bool,
    mediated: Mediated,
    truth: Truth,
    /// Its VMCS.
    field: u64,
}

/// The size of a machine.
#[derive(Copy, Clone, Debug)]
pub(super) struct Setting {
    pub(super) cpu: PmuModel,
    pub(super) guest: PmuModel,
    /// The counter that the host counts on.
    pub(super) host_slot: usize,
    /// Writes that each guest may make.
    pub(super) writes: [&'static [(u32, u64)]; 2],
    /// The host opens and closes its event at any time, or has it from the beginning.
    pub(super) host_changes: bool,
}

/// Something that happens.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Start(usize),
    End(usize),
    HostOpens {
        includes_guests: bool,
    },
    HostCloses,
    /// The host runs an instruction.
    HostRuns,
    Load(usize),
    Enter,
    /// The guest runs an instruction.
    GuestRuns,
    /// The hypervisor emulates an instruction of the guest.
    Emulate,
    /// The guest writes a register.
    Write(u32, u64),
    Exit,
    /// The interrupt with the guests' vector is taken.
    Vector,
    Put,
}

#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub(super) struct State {
    hardware: Hardware,
    guests: [Guest; 2],
    loaded: Option<usize>,
    /// The guest that was loaded last: a late vector is its.
    last: usize,
    share: HostShare,
}

impl State {
    pub(super) fn new(setting: &Setting, removed: Option<Rule>) -> State {
        let guest = || {
            let allowed = [FilterEntry::exact(INSTRUCTIONS as u16, 0)].into();
            let filter = EventFilter::new(FilterAction::Allow, allowed, 1).unwrap();
            let mut mediated = Mediated::new(&setting.cpu, setting.guest, Some(filter)).unwrap();
            mediated.removed = removed;
            let control = setting.guest.global_control_at_reset();
            let selects = std::array::from_fn(|slot| mediated.selects[slot]);
            let counters = [0; SLOTS];
            let truth =
                Truth { counters, selects, fixed_control: 0, control, status: 0, owed: false };
            Guest { started: false, mediated, truth, field: 0 }
        };
        let mut hardware = Hardware::new(setting.cpu, setting.guest, setting.host_slot);
        if !setting.host_changes {
            hardware.open(false);
        }
        State {
            hardware,
            guests: [guest(), guest()],
            loaded: None,
            last: 0,
            share: HostShare::new(),
        }
    }

    /// All that can happen next.
    pub(super) fn steps(&self, setting: &Setting) -> Vec<Step> {
        let mut steps = Vec::new();
        let hardware = &self.hardware;
        let host_may_run = hardware.event.is_none_or(|event| u64::from(event.truth) < COUNT_MAX);
        let Some(loaded) = self.loaded else {
            if host_may_run {
                steps.push(Step::HostRuns);
            }
            if hardware.vector {
                // Interrupts are on again: it comes before anything else but the host's work.
                steps.push(Step::Vector);
                return steps;
            }
            for guest in 0..2 {
                if setting.writes[guest].is_empty() {
                    continue;
                }
                let started = self.guests[guest].started;
                steps.push(if started { Step::Load(guest) } else { Step::Start(guest) });
                if started && setting.host_changes {
                    steps.push(Step::End(guest));
                }
            }
            if setting.host_changes && hardware.event.is_none() {
                steps.push(Step::HostOpens { includes_guests: false });
                steps.push(Step::HostOpens { includes_guests: true });
            } else if setting.host_changes {
                steps.push(Step::HostCloses);
            }
            return steps;
        };
        if hardware.vector {
            steps.push(Step::Vector);
        }
        if !hardware.in_guest {
            steps.extend([Step::Enter, Step::Put]);
            if host_may_run {
                steps.push(Step::HostRuns);
            }
            if self.may_run(loaded) && !hardware.vector {
                steps.push(Step::Emulate);
            }
            return steps;
        }
        steps.push(Step::Exit);
        if self.may_run(loaded) {
            steps.push(Step::GuestRuns);
        }
        steps.extend(setting.writes[loaded].iter().map(|(msr, value)| Step::Write(*msr, *value)));
        steps
    }

    /// The guest's counters and the host's event are not at their ends.
    fn may_run(&self, guest: usize) -> bool {
        let truth = &self.guests[guest].truth;
        let mask = self.hardware.mask();
        let including =
            self.hardware.event.is_some_and(|event| event.includes_guests && event.truth > 0);
        !including && truth.counters.iter().all(|value| *value < COUNT_MAX || *value == mask)
    }

    /// The state after a step, or the broken promise.
    pub(super) fn take(&self, step: Step) -> Result<State, &'static str> {
        let mut next = self.clone();
        next.apply(step)?;
        next.check()?;
        Ok(next)
    }

    fn apply(&mut self, step: Step) -> Result<(), &'static str> {
        let removed = self.guests[0].mediated.removed;
        let shares = removed != Some(Rule::Share);
        match step {
            Step::Start(guest) => {
                self.guests[guest].started = !shares || self.share.start_vm().is_ok();
            }
            Step::End(guest) => {
                self.guests[guest].started = false;
                if shares {
                    self.share.end_vm();
                }
            }
            Step::HostOpens { includes_guests } => {
                if !shares || !includes_guests || self.share.open_including().is_ok() {
                    self.hardware.open(includes_guests);
                }
            }
            Step::HostCloses => {
                if self.hardware.event.is_some_and(|event| event.includes_guests) && shares {
                    self.share.close_including();
                }
                self.hardware.close();
            }
            Step::HostRuns => self.host_runs(),
            Step::Load(guest) => {
                (self.loaded, self.last) = (Some(guest), guest);
                self.hardware.guest_field = self.guests[guest].field;
                self.guests[guest].mediated.load(&mut self.hardware);
            }
            Step::Enter => self.enter(),
            Step::GuestRuns => return self.guest_runs(),
            Step::Emulate => self.emulate(),
            Step::Write(msr, value) => return self.write(msr, value),
            Step::Exit => self.hardware.exit(),
            Step::Vector => self.vector(),
            Step::Put => {
                let Some(guest) = self.loaded.take() else { return Ok(()) };
                self.guests[guest].mediated.put(&mut self.hardware);
                self.guests[guest].field = self.hardware.guest_field;
            }
        }
        Ok(())
    }

    fn host_runs(&mut self) {
        // An event that is off its counter while a guest is resident has its blind spot there.
        if let Some(event) = self.hardware.event.as_mut().filter(|event| event.running) {
            event.truth += 1;
        }
        self.hardware.occur(INSTRUCTIONS);
        self.hardware.occur(FORBIDDEN);
    }

    fn enter(&mut self) {
        let Some(guest) = self.loaded else { return };
        let guest = &mut self.guests[guest];
        if guest.mediated.deliver(&mut Apic).is_some() {
            guest.truth.owed = false;
        }
        self.hardware.enter();
    }

    fn guest_runs(&mut self) -> Result<(), &'static str> {
        let Some(guest) = self.loaded else { return Ok(()) };
        self.guests[guest].truth.occur(&self.hardware.model, &self.guests[guest].mediated.model);
        if let Some(event) = self.hardware.event.as_mut().filter(|event| event.includes_guests) {
            if !event.running {
                return Err("an event that includes guests lost a count");
            }
            event.truth += 1;
        }
        self.hardware.occur(INSTRUCTIONS);
        self.hardware.occur(FORBIDDEN);
        Ok(())
    }

    fn emulate(&mut self) {
        let Some(guest) = self.loaded else { return };
        let guest = &mut self.guests[guest];
        guest.truth.occur(&self.hardware.model, &guest.mediated.model);
        guest.mediated.count_emulated(&mut self.hardware, INSTRUCTIONS, true);
    }

    fn write(&mut self, msr: u32, value: u64) -> Result<(), &'static str> {
        let Some(guest) = self.loaded else { return Ok(()) };
        let guest = &mut self.guests[guest];
        let register = guest.mediated.model.register(msr).ok_or("no such register")?;
        guest.truth.write(&guest.mediated.model, register, value);
        if guest.mediated.passes(msr).write {
            let register = self.hardware.model.register(msr).ok_or("no such register")?;
            self.hardware.write(register, value);
        } else {
            self.hardware.exit();
            let written = guest.mediated.wrmsr(&mut self.hardware, msr, value);
            written.map_err(|_| "a write was refused")?;
            self.hardware.enter();
        }
        Ok(())
    }

    /// It leaves the guest where it runs; the next step may enter it again.
    fn vector(&mut self) {
        if self.hardware.in_guest {
            self.hardware.exit();
        }
        self.hardware.vector = false;
        self.guests[self.last].mediated.on_pmi(&mut self.hardware);
    }

    fn check(&self) -> Result<(), &'static str> {
        let hardware = &self.hardware;
        if let Some(broken) = hardware.broken {
            return Err(broken);
        }
        if hardware.nmi {
            return Err("an NMI has no owner");
        }
        if !hardware.host_count_is_right() {
            return Err("the host's count is wrong");
        }
        for (number, guest) in self.guests.iter().enumerate() {
            let waits = hardware.vector && self.last == number || guest.mediated.pmi_due();
            if guest.truth.owed && !waits {
                return Err("an interrupt is lost");
            }
            if waits && !guest.truth.owed {
                return Err("an interrupt has no overflow");
            }
        }
        match self.loaded {
            Some(guest) if hardware.in_guest => self.check_view(guest),
            _ => Ok(()),
        }
    }

    /// Each register has the value for the guest that arithmetic has.
    fn check_view(&self, number: usize) -> Result<(), &'static str> {
        let guest = &self.guests[number];
        let (mut mediated, mut hardware) = (guest.mediated.clone(), self.hardware.clone());
        hardware.exit();
        for row in guest.mediated.model.msrs() {
            for msr in row.first..row.first + row.count {
                let Some(register) = guest.mediated.model.register(msr) else { continue };
                let Some(expected) = guest.truth.read(register) else { continue };
                let seen = if guest.mediated.passes(msr).read {
                    let register = self.hardware.model.register(msr).ok_or("no such register")?;
                    self.hardware.read(register)
                } else {
                    mediated.rdmsr(&mut hardware, msr).map_err(|_| "a read was refused")?
                };
                if seen != expected {
                    return Err(match register {
                        Register::Counter(..) => "a guest's count is wrong",
                        Register::Status => "a guest's overflow status is wrong",
                        _ => "a guest's control is wrong",
                    });
                }
            }
        }
        Ok(())
    }
}

impl Truth {
    /// An instruction of the guest's kernel, and an event that it may not count.
    fn occur(&mut self, cpu: &PmuModel, guest: &PmuModel) {
        for slot in 0..guest.slots() {
            let select = self.selects[slot];
            let counts = select & evtsel::EN != 0
                && select & evtsel::RAW == INSTRUCTIONS
                && self.control & guest.status_bit(slot) != 0;
            if !counts {
                continue;
            }
            self.counters[slot] = (self.counters[slot] + 1) & cpu.counter_mask();
            if self.counters[slot] == 0 {
                self.status |= guest.status_bit(slot);
                self.owed |= select & evtsel::INT != 0;
            }
        }
    }

    fn write(&mut self, model: &PmuModel, register: Register, value: u64) {
        match register {
            Register::Counter(slot, _) => self.counters[slot] = value,
            Register::Select(slot) => self.selects[slot] = value,
            Register::FixedControl => {
                self.fixed_control = value;
                for slot in usize::from(model.general)..model.slots() {
                    self.selects[slot] = model.fixed_select(slot, value);
                }
            }
            Register::GlobalControl => self.control = value,
            Register::StatusClear => self.status &= !value,
            Register::StatusSet => self.status |= value,
            _ => {}
        }
    }

    fn read(&self, register: Register) -> Option<u64> {
        Some(match register {
            Register::Counter(slot, _) => self.counters[slot],
            Register::Select(slot) => self.selects[slot],
            Register::FixedControl => self.fixed_control,
            Register::GlobalControl => self.control,
            Register::Status => self.status,
            _ => return None,
        })
    }
}

/// The event's select in a guest's register, enabled in its kernel, with interrupts.
pub(super) const fn select(event: u64) -> u64 {
    event | evtsel::OS | evtsel::EN | evtsel::INT
}

/// A value from which a counter of 48 bits overflows at once.
pub(super) const LAST: u64 = (1 << 48) - 1;

/// A counter with events that it may and may not count, and everything global.
pub(super) const CONTROL_WRITES: &[(u32, u64)] = &[
    (msr::IA32_PERFEVTSEL, 0),
    (msr::IA32_PERFEVTSEL, select(INSTRUCTIONS)),
    (msr::IA32_PERFEVTSEL, select(FORBIDDEN)),
    (msr::IA32_A_PMC, LAST),
    (msr::IA32_PERF_GLOBAL_CTRL, 0),
    (msr::IA32_PERF_GLOBAL_CTRL, 1),
    (msr::IA32_PERF_GLOBAL_STATUS_RESET, 1),
];

/// Two counters, one of them fixed.
pub(super) const COUNTER_WRITES: &[(u32, u64)] = &[
    (msr::IA32_PERFEVTSEL, select(INSTRUCTIONS)),
    (msr::IA32_A_PMC, LAST),
    (msr::IA32_PERF_GLOBAL_CTRL, 0x1_0000_0001),
    (msr::IA32_FIXED_CTR_CTRL, 0x9),
    (msr::IA32_FIXED_CTR, LAST),
];

pub(super) const AMD_WRITES: &[(u32, u64)] = &[
    (msr::CORE_PERF_CTL, 0),
    (msr::CORE_PERF_CTL, select(INSTRUCTIONS)),
    (msr::CORE_PERF_CTL, select(FORBIDDEN)),
    (msr::CORE_PERF_CTL + 1, LAST),
    (msr::PERF_CNTR_GLOBAL_CTL, 0),
    (msr::PERF_CNTR_GLOBAL_CTL, 0x1),
    (msr::PERF_CNTR_GLOBAL_STATUS_CLR, 0x1),
];
