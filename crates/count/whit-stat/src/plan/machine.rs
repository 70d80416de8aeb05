//! The PMU models that a plan can be made for.

use std::fmt;

use whit_host::roots::Roots;
use whit_pmu::counter::CounterMask;
use whit_pmu::known_models as models;
use whit_pmu::model::{ModelError, PmuKind, PmuModel};
use whit_pmu::sched::plan::{PlanEvent, PlanGroup};

use super::groups::CORE_PMUS;

/// The name of a model and its constructor.
type Known = (&'static str, fn() -> PmuModel);

/// Models that can be planned for on any machine.
const KNOWN: [Known; 7] = [
    ("skylake", models::skylake),
    ("sapphire-rapids", models::sapphire_rapids),
    ("ivy-bridge", models::ivy_bridge),
    ("penryn", models::version_2),
    ("zen4", models::zen4),
    ("zen3", models::zen3),
    ("k10", models::k10),
];
/// `cycles`, which the watchdog counts.
const CYCLES: u64 = 0x3c;

/// A PMU, and who else uses it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    pub(super) model: PmuModel,
    /// Where the description comes from: `this CPU`, `skylake`.
    pub(super) name: String,
    /// The kernel's watchdog holds a counter for cycles.
    pub(super) has_watchdog: bool,
}

/// Why there is no PMU to plan for.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum MachineError {
    /// The kernel drives none, whatever the CPU says.
    #[error(
        "cannot plan for this machine: its kernel counts no hardware events (no cpu in {devices}; virtual \
         machines often have none); plan for another: --plan={}",
        known()
    )]
    NotDriven { devices: String },
    /// This CPU has none, or one that is not known.
    #[error("cannot plan for this CPU: {reason}; plan for another: --plan={}", known())]
    This { reason: ModelError },
    /// Only x86 says what its PMU has.
    #[error(
        "cannot plan for this CPU: its PMU does not describe itself; plan for another: --plan={}",
        known()
    )]
    Architecture,
    /// Not one of the list.
    #[error("there is no PMU '{name}' to plan for: choose one of {}", known())]
    Unknown { name: String },
}

fn known() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

impl Machine {
    /// A model by name; this machine's without.
    ///
    /// # Errors
    /// Where there is no PMU, or no such model.
    pub fn choose(name: Option<&str>, roots: &Roots) -> Result<Machine, MachineError> {
        let Some(name) = name else { return Machine::detect(roots) };
        let model = KNOWN.iter().find(|(known, _)| *known == name);
        let (_, model) = model.ok_or_else(|| MachineError::Unknown { name: name.to_owned() })?;
        Ok(Machine { model: model(), name: name.to_owned(), has_watchdog: false })
    }

    fn detect(roots: &Roots) -> Result<Machine, MachineError> {
        let devices = roots.sys.join("bus/event_source/devices");
        if !CORE_PMUS.iter().any(|pmu| devices.join(pmu).is_dir()) {
            return Err(MachineError::NotDriven { devices: devices.display().to_string() });
        }
        let model = this_cpu()?;
        let has_watchdog = roots.kernel_setting("nmi_watchdog") == Some(1);
        Ok(Machine { model, name: "this CPU".into(), has_watchdog })
    }

    /// The kernel watchdog's event; it is scheduled before all others.
    pub(super) fn watchdog_group(&self) -> Option<PlanGroup> {
        let event = PlanEvent {
            name: "the kernel's NMI watchdog".into(),
            allowed: self.model.constraint(CYCLES),
        };
        self.has_watchdog.then(|| PlanGroup { events: vec![event], pinned: true })
    }
}

#[cfg(target_arch = "x86_64")]
fn this_cpu() -> Result<PmuModel, MachineError> {
    use whit_pmu::cpuid::{CpuidLeaves, Leaf};
    let leaf = |number, subleaf| {
        let leaf = raw_cpuid::native_cpuid::cpuid_count(number, subleaf);
        Leaf { eax: leaf.eax, ebx: leaf.ebx, ecx: leaf.ecx, edx: leaf.edx }
    };
    let leaves = CpuidLeaves::collect(leaf);
    PmuModel::from_cpuid(&leaves).map_err(|reason| MachineError::This { reason })
}

#[cfg(not(target_arch = "x86_64"))]
fn this_cpu() -> Result<PmuModel, MachineError> {
    Err(MachineError::Architecture)
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.model.kind {
            PmuKind::Intel => format!("Intel, version {}", self.model.version),
            PmuKind::AmdV2 => "AMD PerfMonV2".to_owned(),
            PmuKind::AmdCore => "AMD core extension".to_owned(),
            PmuKind::AmdK7 => "AMD".to_owned(),
            kind => format!("{kind:?}"),
        };
        let count = CounterMask::len;
        let (general, fixed) = (count(self.model.general), count(self.model.fixed));
        write!(f, "PMU of {}: {kind}, {general} general-purpose counters", self.name)?;
        if fixed > 0 { write!(f, ", {fixed} fixed ones") } else { Ok(()) }
    }
}
