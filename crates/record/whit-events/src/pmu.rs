//! The kernel's description of its PMUs under `/sys/bus/event_source/devices`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use whit_types::{CpuId, parse_cpu_list};

use crate::format::FormatSpec;
use crate::parse_term::term_list;
use crate::term::Term;

/// Where the kernel lists its PMUs.
pub const SYSFS_PMUS: &str = "/sys/bus/event_source/devices";

/// `perf_event_attr.type` of generic hardware events (`enum perf_type_id`).
pub const TYPE_HARDWARE: u32 = 0;
/// `perf_event_attr.type` of kernel software events.
pub const TYPE_SOFTWARE: u32 = 1;
/// `perf_event_attr.type` of tracepoints.
pub const TYPE_TRACEPOINT: u32 = 2;
/// `perf_event_attr.type` of hardware-cache events.
pub const TYPE_HW_CACHE: u32 = 3;
/// `perf_event_attr.type` of raw events, and of the `cpu` PMU of x86.
pub const TYPE_RAW: u32 = 4;
/// `perf_event_attr.type` of breakpoints.
pub const TYPE_BREAKPOINT: u32 = 5;

/// The PMUs of a machine.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PmuTable {
    /// PMUs in the order of their names.
    pub pmus: Vec<Pmu>,
    /// Files that were found but not understood; the PMUs are usable without it.
    pub problems: Vec<PmuProblem>,
}

/// One PMU.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pmu {
    /// Its directory's name: `cpu`, `uncore_imc_0`.
    pub name: String,
    /// Another name that the PMU goes by (`alias` in sysfs).
    pub alias: Option<String>,
    /// `perf_event_attr.type`
    pub pmu_type: u32,
    /// Its terms.
    pub formats: BTreeMap<String, FormatSpec>,
    /// Its named events. A table of vendor events adds to these.
    pub events: BTreeMap<String, PmuEvent>,
    /// CPUs on which its events have to be opened; `None` where any will do.
    pub cpus: Option<Vec<CpuId>>,
    /// Whether it lies outside the cores, so that its events count for no task (`cpumask` in
    /// sysfs).
    pub uncore: bool,
    /// Whether it is the PMU of (some of) the cores, which counts generic hardware events.
    pub core: bool,
    /// Highest `precise_ip` that it takes (`caps/max_precise`).
    pub max_precise: Option<u8>,
    /// The PMU's capabilities (`caps/`): name and content of each file.
    pub caps: BTreeMap<String, String>,
    /// Which device it is (`identifier`), where it says so.
    pub identifier: Option<String>,
}

/// A named event of a PMU.
#[derive(Clone, PartialEq, Debug)]
pub struct PmuEvent {
    /// The terms that it stands for.
    pub terms: Vec<Term>,
    /// Factor of a count for display.
    pub scale: f64,
    /// Unit of the scaled count; may be empty.
    pub unit: String,
    /// Whether it counts once for a whole package.
    pub per_package: bool,
    /// Whether a reading stands for itself, so that readings are not subtracted.
    pub snapshot: bool,
    /// Description in a sentence; the kernel has none.
    pub description: String,
    /// The same at length; may be empty.
    pub long_description: String,
    /// Whether its vendor has given it another name since.
    pub deprecated: bool,
}

impl PmuEvent {
    /// An event that stands for `terms`, unscaled.
    pub fn new(terms: Vec<Term>) -> PmuEvent {
        PmuEvent {
            terms,
            scale: 1.0,
            unit: String::new(),
            per_package: false,
            snapshot: false,
            description: String::new(),
            long_description: String::new(),
            deprecated: false,
        }
    }
}

/// Something in sysfs that was not understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct PmuProblem {
    /// The file or directory.
    pub path: String,
    /// Description of the problem.
    pub why: String,
}

/// Why no PMU could be read at all.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot list the PMUs in {path}: {source}; is sysfs mounted there \
     (sudo mount -t sysfs sysfs /sys)?"
)]
pub struct PmuTableError {
    /// The directory.
    pub path: PathBuf,
    /// Error of the system.
    pub source: io::Error,
}

impl PmuTable {
    /// Reads all PMUs under `devices`, which on a running system is [`SYSFS_PMUS`]. An error in one
    /// PMU's files costs that part only, and is kept in `problems`.
    ///
    /// # Errors
    ///
    /// Where the directory itself cannot be listed.
    pub fn from_sysfs(devices: &Path) -> Result<PmuTable, PmuTableError> {
        let failed = |source| PmuTableError { path: devices.to_owned(), source };
        let mut names = list_dir(devices).map_err(failed)?;
        names.sort();
        let mut table = PmuTable::default();
        for name in names {
            let dir = devices.join(&name);
            if let Some(pmu) = read_pmu(&dir, name, &mut table.problems) {
                table.pmus.push(pmu);
            }
        }
        Ok(table)
    }

    /// The PMU with exactly this name or alias.
    pub fn find(&self, name: &str) -> Option<&Pmu> {
        self.pmus.iter().find(|pmu| pmu.name == name || pmu.alias.as_deref() == Some(name))
    }

    /// The PMUs of the cores: one, or several on a hybrid machine, where the big cores come first
    /// (they have the smallest type), as in perf.
    pub fn core_pmus(&self) -> impl Iterator<Item = &Pmu> {
        let mut cores: Vec<&Pmu> = self.pmus.iter().filter(|pmu| pmu.core).collect();
        cores.sort_by_key(|pmu| pmu.pmu_type);
        cores.into_iter()
    }

    /// Names of all PMUs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pmus.iter().map(|pmu| pmu.name.as_str())
    }

    /// All named events with their PMUs, for completion and lists.
    pub fn events(&self) -> impl Iterator<Item = (&Pmu, &str, &PmuEvent)> {
        self.pmus
            .iter()
            .flat_map(|pmu| pmu.events.iter().map(move |(name, event)| (pmu, name.as_str(), event)))
    }
}

impl Pmu {
    /// The named event, whatever its case, as in perf.
    pub fn event(&self, name: &str) -> Option<&PmuEvent> {
        self.events.get(name).or_else(|| {
            self.events
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .map(|(_, event)| event)
        })
    }
}

fn read_pmu(dir: &Path, name: String, problems: &mut Vec<PmuProblem>) -> Option<Pmu> {
    let type_path = dir.join("type");
    let pmu_type = match read_trimmed(&type_path) {
        Ok(text) => text.parse().map_err(|_| note(problems, &type_path, "not a number")).ok()?,
        Err(error) => {
            note(problems, &type_path, error);
            return None;
        }
    };
    let cpumask = read_cpus(&dir.join("cpumask"), problems);
    let cpus = read_cpus(&dir.join("cpus"), problems);
    let caps = read_caps(&dir.join("caps"), problems);
    Some(Pmu {
        alias: read_optional(&dir.join("alias"), problems),
        formats: read_formats(&dir.join("format"), problems),
        events: read_events(&dir.join("events"), problems),
        uncore: cpumask.is_some(),
        core: ["cpu", "cpum_cf"].contains(&name.as_str()) || cpus.is_some(),
        max_precise: caps.get("max_precise").and_then(|text| text.parse().ok()),
        caps,
        identifier: read_optional(&dir.join("identifier"), problems),
        cpus: cpus.or(cpumask),
        name,
        pmu_type,
    })
}

fn read_formats(dir: &Path, problems: &mut Vec<PmuProblem>) -> BTreeMap<String, FormatSpec> {
    let mut formats = BTreeMap::new();
    for name in list_optional(dir, problems) {
        let path = dir.join(&name);
        let Some(text) = read_optional(&path, problems) else { continue };
        match FormatSpec::parse(&text) {
            Ok(spec) => drop(formats.insert(name, spec)),
            Err(error) => note(problems, &path, error),
        }
    }
    formats
}

fn read_caps(dir: &Path, problems: &mut Vec<PmuProblem>) -> BTreeMap<String, String> {
    let names = list_optional(dir, problems);
    names
        .into_iter()
        .filter_map(|name| {
            let text = read_optional(&dir.join(&name), problems)?;
            Some((name, text))
        })
        .collect()
}

fn read_events(dir: &Path, problems: &mut Vec<PmuProblem>) -> BTreeMap<String, PmuEvent> {
    const ATTRIBUTES: [&str; 4] = [".scale", ".unit", ".per-pkg", ".snapshot"];
    let mut events = BTreeMap::new();
    for name in list_optional(dir, problems) {
        if ATTRIBUTES.iter().any(|suffix| name.ends_with(suffix)) {
            continue;
        }
        let path = dir.join(&name);
        let Some(text) = read_optional(&path, problems) else { continue };
        match term_list(&text) {
            Ok(terms) => {
                let event = read_event_attributes(dir, &name, terms, problems);
                events.insert(name, event);
            }
            Err(error) => note(problems, &path, error),
        }
    }
    events
}

fn read_event_attributes(
    dir: &Path,
    name: &str,
    terms: Vec<Term>,
    problems: &mut Vec<PmuProblem>,
) -> PmuEvent {
    let path = |suffix: &str| dir.join(format!("{name}{suffix}"));
    let mut event = PmuEvent::new(terms);
    if let Some(text) = read_optional(&path(".scale"), problems) {
        match text.parse::<f64>().ok().filter(|scale| scale.is_finite()) {
            Some(scale) => event.scale = scale,
            None => note(problems, &path(".scale"), "not a number"),
        }
    }
    event.unit = read_optional(&path(".unit"), problems).unwrap_or_default();
    event.per_package = path(".per-pkg").exists();
    event.snapshot = path(".snapshot").exists();
    event
}

fn read_cpus(path: &Path, problems: &mut Vec<PmuProblem>) -> Option<Vec<CpuId>> {
    let text = read_optional(path, problems)?;
    let cpus = parse_cpu_list(&text).ok();
    if cpus.is_none() {
        note(problems, path, format!("`{text}` is no CPU list"));
    }
    cpus
}

fn note(problems: &mut Vec<PmuProblem>, path: &Path, why: impl ToString) {
    problems.push(PmuProblem { path: path.display().to_string(), why: why.to_string() });
}

fn read_trimmed(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

fn read_optional(path: &Path, problems: &mut Vec<PmuProblem>) -> Option<String> {
    match read_trimmed(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            note(problems, path, error);
            None
        }
    }
}

fn list_optional(dir: &Path, problems: &mut Vec<PmuProblem>) -> Vec<String> {
    match list_dir(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            note(problems, dir, error);
            Vec::new()
        }
    }
}

fn list_dir(dir: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}
