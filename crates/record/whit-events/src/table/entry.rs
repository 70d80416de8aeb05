//! One object of a table file, and the event that it describes.
//!
//! Keys and their meaning are those of `tools/perf/pmu-events/jevents.py` of Linux.

use serde_json::{Map, Value};

use super::{Owner, TableEvent};
use crate::parse_term::{number, term_list};
use crate::pmu::PmuEvent;
use crate::term::{Term, TermValue};

/// Keys whose value goes into a field of the PMU unless it is zero.
const FIELDS: [(&str, &str); 12] = [
    ("AnyThread", "any"),
    ("PortMask", "ch_mask"),
    ("CounterMask", "cmask"),
    ("EdgeDetect", "edge"),
    ("FCMask", "fc_mask"),
    ("Invert", "inv"),
    ("NodeType", "type"),
    ("RdWrMask", "rdwrmask"),
    ("EnAllCores", "enallcores"),
    ("EnAllSlices", "enallslices"),
    ("SliceId", "sliceid"),
    ("ThreadMask", "threadmask"),
];

/// Model-specific registers that an event programs, by the field that stands for each.
const REGISTERS: [(u64, &str); 4] =
    [(0x3f6, "ldlat"), (0x1a6, "offcore_rsp"), (0x1a7, "offcore_rsp"), (0x3f7, "frontend")];

/// Units whose PMU is not simply `uncore_` and the unit.
const UNITS: [(&str, &str); 10] = [
    ("CBO", "uncore_cbox"),
    ("QPI LL", "uncore_qpi"),
    ("SBO", "uncore_sbox"),
    ("iMPH-U", "uncore_arb"),
    ("UPI LL", "uncore_upi"),
    ("L3PMC", "amd_l3"),
    ("DFPMC", "amd_df"),
    ("UMCPMC", "amd_umc"),
    ("CPU-M-CF", "cpum_cf"),
    ("CPU-M-SF", "cpum_sf"),
];

/// Units that are the names of PMUs as they stand.
const PMU_PREFIXES: [&str; 10] =
    ["cpu_core", "cpu_atom", "hisi_", "imx8_", "imx9_", "arm_", "ali_", "pai_", "amd_", "marvell_"];

/// Events of Intel's fixed counters, which the tables describe by pseudo-codes that the kernel does
/// not take (`intel_perfmon_event_map` in `arch/x86/events/intel/core.c`).
const FIXED: [(&str, &[(&str, u64)]); 6] = [
    ("inst_retired.any", &[("event", 0xc0)]),
    ("inst_retired.any_p", &[("event", 0xc0)]),
    ("cpu_clk_unhalted.ref", &[("event", 0), ("umask", 3)]),
    ("cpu_clk_unhalted.thread", &[("event", 0x3c)]),
    ("cpu_clk_unhalted.core", &[("event", 0x3c)]),
    ("cpu_clk_unhalted.thread_any", &[("event", 0x3c), ("any", 1)]),
];

/// An object of a table file: an event, a metric, or a reference to an architecture's event.
#[derive(Clone, Debug, Default)]
pub(super) struct Entry(pub(super) Map<String, Value>);

impl Entry {
    /// The text of a value; numbers count as their digits, and an empty text as nothing.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        match self.0.get(key)? {
            Value::String(text) => {
                Some(text.trim()).filter(|text| !text.is_empty()).map(Into::into)
            }
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// Whether a switch (`"1"`) is set.
    fn is_set(&self, key: &str) -> bool {
        self.text(key).is_some_and(|text| text != "0")
    }

    /// The number of a value, the first of several.
    fn number(&self, key: &str) -> Result<Option<u64>, String> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let first = text.split(',').next().unwrap_or_default().trim();
        let parsed = number(&first.to_ascii_lowercase()).map(Some);
        parsed.map_err(|why| format!("{key} is `{first}`, not {why}"))
    }

    /// Fills missing fields from the architecture's event.
    pub(super) fn with_defaults(mut self, defaults: &Entry) -> Entry {
        for (key, value) in &defaults.0 {
            self.0.entry(key.clone()).or_insert_with(|| value.clone());
        }
        self
    }

    /// The event, for the `owner` unless the entry names one. `None` where it describes a metric.
    pub(super) fn event(&self, owner: &Owner) -> Result<Option<TableEvent>, String> {
        let Some(name) = self.text("EventName") else { return Ok(None) };
        let name = name.to_lowercase();
        let terms = self.terms(&name).map_err(|why| format!("event {name}: {why}"))?;
        let mut event = PmuEvent::new(terms);
        if let Some((scale, unit)) = self.text("ScaleUnit").as_deref().and_then(scale_and_unit) {
            (event.scale, event.unit) = (scale, unit.to_owned());
        }
        event.per_package = self.is_set("PerPkg");
        event.deprecated = self.is_set("Deprecated");
        let (brief, public) = (self.text("BriefDescription"), self.text("PublicDescription"));
        event.description = brief.or_else(|| public.clone()).unwrap_or_default();
        event.long_description = public.unwrap_or_default();
        Ok(Some(TableEvent { name, owner: self.owner(owner), event }))
    }

    fn owner(&self, default: &Owner) -> Owner {
        let Some(unit) = self.text("Unit") else { return default.clone() };
        let known = UNITS.iter().find(|(known, _)| *known == unit);
        let is_pmu = PMU_PREFIXES.iter().any(|prefix| unit.starts_with(prefix));
        let pmu = match known {
            Some((_, pmu)) => (*pmu).to_owned(),
            None if is_pmu => unit,
            None => format!("uncore_{}", unit.to_lowercase()),
        };
        match self.text("Compat") {
            Some(identifier) => Owner::Device(pmu, identifier),
            None => Owner::Pmu(pmu),
        }
    }

    fn terms(&self, name: &str) -> Result<Vec<Term>, String> {
        let mut terms = self.code(name)?;
        for (key, field) in FIELDS {
            if let Some(value) = self.number(key)?.filter(|value| *value != 0) {
                terms.push(pmu_term(field, value));
            }
        }
        if let Some(filter) = self.text("Filter") {
            let parsed = term_list(&filter);
            terms.extend(parsed.map_err(|_| format!("filter `{filter}` is no list of terms"))?);
        }
        if let Some(register) = self.number("MSRIndex")?.filter(|register| *register != 0) {
            let (_, field) = REGISTERS
                .iter()
                .find(|(known, _)| *known == register)
                .ok_or_else(|| format!("it programs register {register:#x}, which no term does"))?;
            terms.push(pmu_term(field, self.number("MSRValue")?.unwrap_or_default()));
        }
        if let Some(period) = self.number("SampleAfterValue")?.filter(|period| *period != 0) {
            terms.push(Term::Period(period));
        }
        Ok(terms)
    }

    /// The terms that select the event.
    fn code(&self, name: &str) -> Result<Vec<Term>, String> {
        if let Some((_, terms)) = FIXED.iter().find(|(fixed, _)| *fixed == name) {
            return Ok(terms.iter().map(|(field, value)| pmu_term(field, *value)).collect());
        }
        if let Some(config) = self.number("ConfigCode")? {
            return Ok(vec![Term::Config(config)]);
        }
        if let Some(id) = self.number("EventidCode")? {
            return Ok(vec![pmu_term("eventid", id)]);
        }
        let code = self.number("EventCode")?.unwrap_or_default();
        let extension = self.number("ExtSel")?.unwrap_or_default();
        let mut terms = vec![pmu_term("event", code | extension << 8)];
        let umask = self.number("UMask")?.unwrap_or_default();
        let umask_extension = self.number("UMaskExt")?.unwrap_or_default();
        let umask = umask | umask_extension.checked_shl(8).unwrap_or_default();
        if umask != 0 {
            terms.push(pmu_term("umask", umask));
        }
        Ok(terms)
    }
}

fn pmu_term(field: &str, value: u64) -> Term {
    Term::Pmu { name: field.to_owned(), value: TermValue::Number(value) }
}

/// `6.1e-5MiB`: what a count is multiplied with, and the unit. `None` where there is no number.
fn scale_and_unit(text: &str) -> Option<(f64, &str)> {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
    let (scale, end) = ends.filter_map(|end| Some((text[..end].parse().ok()?, end))).next()?;
    let scale: f64 = scale;
    scale.is_finite().then(|| (scale, text[end..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Result<Option<TableEvent>, String> {
        Entry(serde_json::from_str(json).unwrap()).event(&Owner::Cores)
    }

    fn terms(json: &str) -> String {
        let event = event(json).unwrap().unwrap();
        event.event.terms.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn keys_become_terms() {
        for (json, expected) in [
            (
                r#"{"EventName": "A.B", "EventCode": "0xD1", "UMask": "0x08", "Invert": "1",
                    "CounterMask": "2", "EdgeDetect": "0", "SampleAfterValue": "100003"}"#,
                "event=0xd1,umask=0x8,cmask=0x2,inv=0x1,period=100003",
            ),
            (
                r#"{"EventName": "X", "EventCode": "0xB7, 0xBB", "UMask": "0x1",
                    "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x10001"}"#,
                "event=0xb7,umask=0x1,offcore_rsp=0x10001",
            ),
            (
                r#"{"EventName": "INST_RETIRED.ANY", "EventCode": "0x00", "UMask": "1"}"#,
                "event=0xc0",
            ),
            (
                r#"{"EventName": "X", "EventCode": "2", "ExtSel": "1", "UMaskExt": "0x3"}"#,
                "event=0x102,umask=0x300",
            ),
            (r#"{"EventName": "X", "ConfigCode": "0x11"}"#, "config=0x11"),
            (
                r#"{"EventName": "X", "EventCode": "1", "Filter": "filter_band0=1200,inv"}"#,
                "event=0x1,filter_band0=0x4b0,inv",
            ),
            (r#"{"EventName": "X", "EventCode": 7, "MSRIndex": "0x00"}"#, "event=0x7"),
        ] {
            assert_eq!(terms(json), expected);
        }
    }

    #[test]
    fn units_name_pmus() {
        for (unit, pmu) in [
            ("CBO", "uncore_cbox"),
            ("iMC", "uncore_imc"),
            ("L3PMC", "amd_l3"),
            ("cpu_atom", "cpu_atom"),
            ("hisi_sccl,ddrc", "hisi_sccl,ddrc"),
        ] {
            let json = format!(r#"{{"EventName": "X", "Unit": "{unit}"}}"#);
            assert_eq!(event(&json).unwrap().unwrap().owner, Owner::Pmu(pmu.into()), "{unit}");
        }
        let device = event(r#"{"EventName": "X", "Unit": "arm_cmn", "Compat": "43401"}"#);
        let owner = device.unwrap().unwrap().owner;
        assert_eq!(owner, Owner::Device("arm_cmn".into(), "43401".into()));
        assert_eq!(event(r#"{"EventName": "X"}"#).unwrap().unwrap().owner, Owner::Cores);
    }

    #[test]
    fn scales_are_split_from_units() {
        assert_eq!(scale_and_unit("6.103515625E-5MiB"), Some((6.103_515_625e-5, "MiB")));
        assert_eq!(scale_and_unit("64Bytes"), Some((64.0, "Bytes")));
        assert_eq!(scale_and_unit("100%"), Some((100.0, "%")));
        assert_eq!(scale_and_unit("1"), Some((1.0, "")));
        assert_eq!(scale_and_unit("Bytes"), None);
        assert_eq!(scale_and_unit("infMiB"), None);
    }

    #[test]
    fn descriptions_and_switches() {
        let json = r#"{"EventName": "X", "PerPkg": "1", "Deprecated": "1", "ScaleUnit": "64Bytes",
                       "PublicDescription": "Long."}"#;
        let event = event(json).unwrap().unwrap().event;
        assert!(event.per_package && event.deprecated);
        assert_eq!((event.scale, event.unit.as_str()), (64.0, "Bytes"));
        assert_eq!(
            (event.description.as_str(), event.long_description.as_str()),
            ("Long.", "Long.")
        );
    }

    #[test]
    fn metrics_are_no_events_and_nonsense_is_named() {
        assert_eq!(event(r#"{"MetricName": "IPC", "MetricExpr": "a / b"}"#), Ok(None));
        for (json, part) in [
            (r#"{"EventName": "X", "EventCode": "zz"}"#, "event x: EventCode is `zz`"),
            (r#"{"EventName": "X", "MSRIndex": "0x12"}"#, "register 0x12"),
            (r#"{"EventName": "X", "Filter": "CBoFilter[3:0]"}"#, "is no list of terms"),
        ] {
            let error = event(json).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
