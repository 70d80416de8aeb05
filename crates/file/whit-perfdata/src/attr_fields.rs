//! The fields of event attributes by the names of perf's headers.
//!
//! Source of names and order: `tools/perf/util/perf_event_attr_fprintf.c`.

use crate::attr::{Attr, AttrFlags, SampleType};

/// The bit behind which `precise_ip` lies.
const BEFORE_PRECISE_IP: AttrFlags = AttrFlags::WATERMARK;

/// Bits of `sample_type` that perf prints last, in this order, and not by their number.
const LAST_FIELDS: [SampleType; 8] = [
    SampleType::IDENTIFIER,
    SampleType::REGS_INTR,
    SampleType::DATA_SRC,
    SampleType::WEIGHT,
    SampleType::PHYS_ADDR,
    SampleType::AUX,
    SampleType::CGROUP,
    SampleType::DATA_PAGE_SIZE,
];

/// Bits of `branch_sample_type`, by number.
const BRANCH_FIELDS: [&str; 20] = [
    "USER",
    "KERNEL",
    "HV",
    "ANY",
    "ANY_CALL",
    "ANY_RETURN",
    "IND_CALL",
    "ABORT_TX",
    "IN_TX",
    "NO_TX",
    "COND",
    "CALL_STACK",
    "IND_JUMP",
    "CALL",
    "NO_FLAGS",
    "NO_CYCLES",
    "TYPE_SAVE",
    "HW_INDEX",
    "PRIV_SAVE",
    "COUNTERS",
];

impl Attr {
    /// Names and values of all fields that are not zero.
    pub fn fields(&self) -> Vec<(String, String)> {
        let decimal = |name: &'static str, value: u64| (name, value != 0, value.to_string());
        let hex = |name: &'static str, value: u64| (name, value != 0, format!("{value:#x}"));
        let bits = |name: &'static str, text: String| (name, !text.is_empty(), text);
        let kind = [
            decimal("type", self.pmu_type.into()),
            hex("config", self.config),
            decimal("{ sample_period, sample_freq }", self.sample_period_or_freq),
            bits("sample_type", sample_fields(self.sample_type)),
            bits("read_format", names(self.read_format.names())),
        ];
        let rest = [
            decimal("{ wakeup_events, wakeup_watermark }", self.wakeup.into()),
            decimal("bp_type", self.bp_type.into()),
            hex("{ bp_addr, config1 }", self.config1),
            hex("{ bp_len, config2 }", self.config2),
            bits("branch_sample_type", branch_fields(self.branch_sample_type)),
            hex("sample_regs_user", self.sample_regs_user),
            decimal("sample_stack_user", self.sample_stack_user_bytes.into()),
            ("clockid", self.clockid != 0, self.clockid.to_string()),
            hex("sample_regs_intr", self.sample_regs_intr),
            decimal("aux_watermark", self.aux_watermark_bytes.into()),
            decimal("sample_max_stack", self.sample_max_stack.into()),
            decimal("aux_sample_size", self.aux_sample_size_bytes.into()),
            decimal("sig_data", self.sig_data),
            hex("config3", self.config3),
        ];
        let written =
            |(name, is_set, value): (&str, bool, String)| is_set.then(|| (name.to_owned(), value));
        let flags = self.flag_fields();
        let (kind, rest) =
            (kind.into_iter().filter_map(written), rest.into_iter().filter_map(written));
        kind.chain(flags).chain(rest).collect()
    }

    fn flag_fields(&self) -> Vec<(String, String)> {
        let one = |name: &'static str| (name.to_lowercase(), "1".to_owned());
        let is_before = |flag: &(u64, &str)| flag.0 <= BEFORE_PRECISE_IP.0;
        let (before, after): (Vec<_>, Vec<_>) = self.flags.set_bits().partition(is_before);
        let precise = self.precise_ip();
        let precise = (precise > 0).then(|| ("precise_ip".to_owned(), precise.to_string()));
        let before = before.into_iter().map(|flag| one(flag.1));
        before.chain(precise).chain(after.into_iter().map(|flag| one(flag.1))).collect()
    }
}

fn names(set: impl Iterator<Item = &'static str>) -> String {
    set.collect::<Vec<_>>().join("|")
}

fn sample_fields(fields: SampleType) -> String {
    let is_last = |bit: u64| LAST_FIELDS.iter().position(|last| last.0 == bit);
    let mut set: Vec<_> = fields.set_bits().collect();
    // Stable: the others keep the order of their numbers, in front or behind.
    set.sort_by_key(|(bit, _)| match is_last(*bit) {
        Some(at) => (1, at),
        None if *bit > SampleType::DATA_PAGE_SIZE.0 => (2, 0),
        None => (0, 0),
    });
    names(set.into_iter().map(|(_, name)| name))
}

fn branch_fields(fields: u64) -> String {
    names(
        BRANCH_FIELDS
            .into_iter()
            .enumerate()
            .filter(|(at, _)| fields >> at & 1 != 0)
            .map(|it| it.1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::ReadFormat;

    fn line(attr: &Attr) -> String {
        let fields = attr.fields().into_iter().map(|(name, value)| format!("{name} = {value}"));
        fields.collect::<Vec<_>>().join(", ")
    }

    /// The line of perf 6.1, without the size, for `{cpu-clock,page-faults}:S`.
    #[test]
    fn fields_are_named_as_in_perfs_header() {
        use AttrFlags as F;
        let flags = [
            F::DISABLED,
            F::MMAP,
            F::COMM,
            F::FREQ,
            F::ENABLE_ON_EXEC,
            F::TASK,
            F::SAMPLE_ID_ALL,
            F::EXCLUDE_GUEST,
            F::MMAP2,
            F::COMM_EXEC,
            F::KSYMBOL,
            F::BPF_EVENT,
        ];
        use SampleType as T;
        let attr = Attr {
            pmu_type: 1,
            sample_period_or_freq: 4000,
            sample_type: T::IP | T::TID | T::TIME | T::READ | T::ID | T::PERIOD,
            read_format: ReadFormat::ID | ReadFormat::GROUP | ReadFormat::LOST,
            flags: flags.into_iter().fold(F::default(), |set, flag| set | flag),
            ..Attr::default()
        };
        assert_eq!(
            line(&attr),
            "type = 1, { sample_period, sample_freq } = 4000, \
             sample_type = IP|TID|TIME|READ|ID|PERIOD, read_format = ID|GROUP|LOST, disabled = 1, \
             mmap = 1, comm = 1, freq = 1, enable_on_exec = 1, task = 1, sample_id_all = 1, \
             exclude_guest = 1, mmap2 = 1, comm_exec = 1, ksymbol = 1, bpf_event = 1"
        );
    }

    #[test]
    fn rare_fields_have_perfs_places() {
        use SampleType as T;
        let mut attr = Attr {
            config: 0x2a,
            sample_type: T::STACK_USER | T::WEIGHT | T::IDENTIFIER | T::CODE_PAGE_SIZE | T::AUX,
            flags: AttrFlags::WATERMARK | AttrFlags::MMAP_DATA,
            branch_sample_type: 1 | 1 << 17,
            clockid: -3,
            config2: 16,
            ..Attr::default()
        };
        attr.set_precise_ip(2);
        assert_eq!(
            line(&attr),
            "config = 0x2a, sample_type = STACK_USER|IDENTIFIER|WEIGHT|AUX|CODE_PAGE_SIZE, \
             watermark = 1, precise_ip = 2, mmap_data = 1, { bp_len, config2 } = 0x10, \
             branch_sample_type = USER|HW_INDEX, clockid = -3"
        );
        assert_eq!(Attr::default().fields(), []);
    }
}
