//! `perf_event_attr`: how an event was asked for. Kernel source: `include/uapi/linux/perf_event.h`.

use whit_types::{HardwareEvent, SoftwareEvent};

use crate::bytes::Cursor;

macro_rules! bit_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$bit_doc:meta])* $bit:ident = $shift:expr;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            $($(#[$bit_doc])* pub const $bit: $name = $name(1 << $shift);)*

            const NAMES: &'static [(u64, &'static str)] =
                &[$((1 << $shift, stringify!($bit))),*];

            /// The bits that are set and have names, with those.
            pub fn set_bits(self) -> impl Iterator<Item = (u64, &'static str)> {
                Self::NAMES.iter().copied().filter(move |(bit, _)| self.0 & bit != 0)
            }

            /// The names of the bits that are set.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                self.set_bits().map(|(_, name)| name)
            }

            /// True where every bit of `other` is set.
            pub const fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// The same set with `other` switched on or off.
            #[must_use]
            pub const fn with(self, other: $name, on: bool) -> $name {
                if on { $name(self.0 | other.0) } else { $name(self.0 & !other.0) }
            }
        }

        impl std::ops::BitOr for $name {
            type Output = $name;
            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: $name) {
                self.0 |= other.0;
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let names: Vec<_> =
                    Self::NAMES.iter().filter(|(bit, _)| self.0 & bit != 0).map(|n| n.1).collect();
                let unnamed = Self::NAMES.iter().fold(self.0, |rest, (bit, _)| rest & !bit);
                write!(f, "{}({}", stringify!($name), names.join("|"))?;
                if unnamed != 0 { write!(f, "|{unnamed:#x}")?; }
                write!(f, ")")
            }
        }
    };
}

bit_set!(
    /// `perf_event_attr.sample_type`: which fields a sample carries.
    SampleType {
        /// Instruction pointer.
        IP = 0;
        /// Process and thread id.
        TID = 1;
        /// Time stamp.
        TIME = 2;
        /// Data address.
        ADDR = 3;
        /// Counter values.
        READ = 4;
        /// Call chain.
        CALLCHAIN = 5;
        /// Event id.
        ID = 6;
        /// The CPU, and a reserved word.
        CPU = 7;
        /// Sampling period.
        PERIOD = 8;
        /// The id of the opened event itself; [`Self::ID`] is that of its group's leader.
        STREAM_ID = 9;
        /// Raw tracepoint bytes.
        RAW = 10;
        /// Branch records.
        BRANCH_STACK = 11;
        /// User registers.
        REGS_USER = 12;
        /// Dump of the user stack.
        STACK_USER = 13;
        /// Weight by the hardware: for a memory access, its latency.
        WEIGHT = 14;
        /// Source of the data.
        DATA_SRC = 15;
        /// Event id at a fixed place.
        IDENTIFIER = 16;
        /// Transaction flags.
        TRANSACTION = 17;
        /// Registers at the interrupt.
        REGS_INTR = 18;
        /// Physical data address.
        PHYS_ADDR = 19;
        /// Bytes of the AUX area.
        AUX = 20;
        /// Cgroup id.
        CGROUP = 21;
        /// Page size of the data address.
        DATA_PAGE_SIZE = 22;
        /// Page size of the code address.
        CODE_PAGE_SIZE = 23;
        /// Weight in three parts.
        WEIGHT_STRUCT = 24;
    }
);

bit_set!(
    /// `perf_event_attr.read_format`: how counter values are laid out.
    ReadFormat {
        /// Nanoseconds for which the event was enabled.
        TOTAL_TIME_ENABLED = 0;
        /// Nanoseconds for which the event was on the PMU.
        TOTAL_TIME_RUNNING = 1;
        /// Event id.
        ID = 2;
        /// All events of the group.
        GROUP = 3;
        /// Lost samples of the event.
        LOST = 4;
    }
);

bit_set!(
    /// The one-bit fields of `perf_event_attr`. `precise_ip` (two bits, 15 and 16) has accessors
    /// of its own: [`Attr::precise_ip`].
    AttrFlags {
        /// Starts switched off.
        DISABLED = 0;
        /// Children inherit it.
        INHERIT = 1;
        /// Must always be on the PMU.
        PINNED = 2;
        /// Only group on the PMU.
        EXCLUSIVE = 3;
        /// Not in user mode.
        EXCLUDE_USER = 4;
        /// Not in kernel mode.
        EXCLUDE_KERNEL = 5;
        /// Not in the hypervisor.
        EXCLUDE_HV = 6;
        /// Not while idle.
        EXCLUDE_IDLE = 7;
        /// Records executable mappings.
        MMAP = 8;
        /// Records command names.
        COMM = 9;
        /// `sample_freq` instead of `sample_period`.
        FREQ = 10;
        /// Per-task counts.
        INHERIT_STAT = 11;
        /// Switched on by the next exec.
        ENABLE_ON_EXEC = 12;
        /// Records fork and exit.
        TASK = 13;
        /// `wakeup_watermark` instead of `wakeup_events`.
        WATERMARK = 14;
        /// Records data mappings.
        MMAP_DATA = 17;
        /// Every record ends in a sample id.
        SAMPLE_ID_ALL = 18;
        /// Not in the host.
        EXCLUDE_HOST = 19;
        /// Not in a guest.
        EXCLUDE_GUEST = 20;
        /// No kernel call chain.
        EXCLUDE_CALLCHAIN_KERNEL = 21;
        /// No user call chain.
        EXCLUDE_CALLCHAIN_USER = 22;
        /// Mappings with inode or build id.
        MMAP2 = 23;
        /// Command names flag exec.
        COMM_EXEC = 24;
        /// `clockid` is valid.
        USE_CLOCKID = 25;
        /// Records context switches.
        CONTEXT_SWITCH = 26;
        /// The ring is written backwards.
        WRITE_BACKWARD = 27;
        /// Records namespaces.
        NAMESPACES = 28;
        /// Records kernel symbols that come and go.
        KSYMBOL = 29;
        /// Records BPF programs.
        BPF_EVENT = 30;
        /// AUX output of another event.
        AUX_OUTPUT = 31;
        /// Records cgroups.
        CGROUP = 32;
        /// Records changes of kernel text.
        TEXT_POKE = 33;
        /// Build id instead of inode in MMAP2.
        BUILD_ID = 34;
        /// Only threads inherit it.
        INHERIT_THREAD = 35;
        /// An exec of the task removes the event.
        REMOVE_ON_EXEC = 36;
        /// SIGTRAP on each sample.
        SIGTRAP = 37;
        /// User call chains come in records of their own.
        DEFER_CALLCHAIN = 38;
        /// Accepts records of deferred call chains.
        DEFER_OUTPUT = 39;
    }
);

/// Bit of `branch_sample_type` (`PERF_SAMPLE_BRANCH_CALL_STACK`): the branches are the calls that have not returned.
pub const BRANCH_CALL_STACK: u64 = 1 << 11;
/// Bit of `branch_sample_type`: a word with the hardware index stands before the branch entries.
pub const BRANCH_HW_INDEX: u64 = 1 << 17;
/// Bit of `branch_sample_type`: a word of counters per entry stands after the branch entries.
pub const BRANCH_COUNTERS: u64 = 1 << 19;

/// `perf_event_attr` in full, as of Linux 6.18 (`PERF_ATTR_SIZE_VER9` less `config4`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// `type`: the PMU that counts the event.
    pub pmu_type: u32,
    /// Event of that PMU.
    pub config: u64,
    /// Period in events, or frequency in Hz with [`AttrFlags::FREQ`].
    pub sample_period_or_freq: u64,
    /// Fields of a sample.
    pub sample_type: SampleType,
    /// Layout of counter values.
    pub read_format: ReadFormat,
    /// One-bit fields and `precise_ip`.
    pub flags: AttrFlags,
    /// `wakeup_events`, or `wakeup_watermark` in bytes.
    pub wakeup: u32,
    /// Breakpoint type.
    pub bp_type: u32,
    /// `config1` or `bp_addr`.
    pub config1: u64,
    /// `config2` or `bp_len`.
    pub config2: u64,
    /// Filter and fields of branch records.
    pub branch_sample_type: u64,
    /// Mask of user registers.
    pub sample_regs_user: u64,
    /// Size of the user stack dump.
    pub sample_stack_user_bytes: u32,
    /// Clock of the time stamps with [`AttrFlags::USE_CLOCKID`].
    pub clockid: i32,
    /// Mask of registers at the interrupt.
    pub sample_regs_intr: u64,
    /// Wake-up mark of the AUX area.
    pub aux_watermark_bytes: u32,
    /// Frames of a call chain.
    pub sample_max_stack: u16,
    /// Bytes of AUX area in a sample.
    pub aux_sample_size_bytes: u32,
    /// Bits of `aux_action`.
    pub aux_action: u32,
    /// Passed on with SIGTRAP.
    pub sig_data: u64,
    /// Third extension of `config`.
    pub config3: u64,
}

impl Attr {
    /// Smallest structure that the kernel ever accepted (`PERF_ATTR_SIZE_VER0`).
    pub const MIN_SIZE_BYTES: usize = 64;
    /// Size that whit writes into files (`PERF_ATTR_SIZE_VER7`): every perf since 5.13 knows it.
    pub const FILE_SIZE_BYTES: usize = 128;
    /// `PERF_ATTR_SIZE_VER8`, the size that carries `config3`.
    pub const FULL_SIZE_BYTES: usize = 136;

    const PRECISE_IP_SHIFT: u32 = 15;

    /// The skid constraint, 0 to 3.
    pub fn precise_ip(&self) -> u8 {
        ((self.flags.0 >> Self::PRECISE_IP_SHIFT) & 3) as u8
    }

    /// Sets the skid constraint, 0 to 3.
    pub fn set_precise_ip(&mut self, level: u8) {
        let cleared = self.flags.0 & !(3 << Self::PRECISE_IP_SHIFT);
        self.flags = AttrFlags(cleared | (u64::from(level & 3) << Self::PRECISE_IP_SHIFT));
    }

    /// True where the size of a dump is left of dumps that [are chains by now](crate::chained).
    pub fn has_unwound_dumps(&self) -> bool {
        self.sample_stack_user_bytes > 0 && !self.sample_type.contains(SampleType::STACK_USER)
    }

    /// True where the kernel takes the user part of call chains, by frame pointers.
    pub fn has_user_chains(&self) -> bool {
        let others = SampleType::STACK_USER | SampleType::BRANCH_STACK;
        self.sample_type.contains(SampleType::CALLCHAIN)
            && self.sample_type.0 & others.0 == 0
            && !self.has(AttrFlags::EXCLUDE_CALLCHAIN_USER)
    }

    /// True where `flag` is set.
    pub fn has(&self, flag: AttrFlags) -> bool {
        self.flags.contains(flag)
    }

    /// From bytes of any version; fields that the bytes are too short for are zero. `None` where
    /// they are shorter than the first version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Attr> {
        if bytes.len() < Self::MIN_SIZE_BYTES {
            return None;
        }
        let mut c = Cursor::new(bytes);
        let pmu_type = c.u32()?;
        let _size = c.u32()?;
        let mut attr = Attr {
            pmu_type,
            config: c.u64()?,
            sample_period_or_freq: c.u64()?,
            sample_type: SampleType(c.u64()?),
            read_format: ReadFormat(c.u64()?),
            flags: AttrFlags(c.u64()?),
            wakeup: c.u32()?,
            bp_type: c.u32()?,
            config1: c.u64()?,
            ..Attr::default()
        };
        attr.config2 = c.u64().unwrap_or(0);
        attr.branch_sample_type = c.u64().unwrap_or(0);
        attr.sample_regs_user = c.u64().unwrap_or(0);
        attr.sample_stack_user_bytes = c.u32().unwrap_or(0);
        attr.clockid = c.i32().unwrap_or(0);
        attr.sample_regs_intr = c.u64().unwrap_or(0);
        attr.aux_watermark_bytes = c.u32().unwrap_or(0);
        attr.sample_max_stack = c.u16().unwrap_or(0);
        let _reserved = c.u16();
        attr.aux_sample_size_bytes = c.u32().unwrap_or(0);
        attr.aux_action = c.u32().unwrap_or(0);
        attr.sig_data = c.u64().unwrap_or(0);
        attr.config3 = c.u64().unwrap_or(0);
        Some(attr)
    }

    /// As the kernel takes it: [`Attr::FILE_SIZE_BYTES`] bytes, or [`Attr::FULL_SIZE_BYTES`]
    /// where `config3` is used (kernels before 6.3 refuse the longer one).
    pub fn to_bytes(&self) -> Vec<u8> {
        if self.config3 == 0 {
            self.to_bytes_sized(Self::FILE_SIZE_BYTES)
        } else {
            self.to_bytes_sized(Self::FULL_SIZE_BYTES)
        }
    }

    /// Size of each attribute in a file with these: the smallest that has all their fields.
    ///
    /// perf before 6.3 refuses a file with `config3` and names the reason; without the field it would take the
    /// event for another one.
    pub fn file_size_bytes<'a>(mut attrs: impl Iterator<Item = &'a Attr>) -> usize {
        match attrs.any(|attr| attr.config3 != 0) {
            true => Self::FULL_SIZE_BYTES,
            false => Self::FILE_SIZE_BYTES,
        }
    }

    /// Cut or zero-filled to `size` bytes, the size written into the structure itself.
    pub fn to_bytes_sized(&self, size: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(Self::FULL_SIZE_BYTES);
        out.extend(self.pmu_type.to_le_bytes());
        out.extend((size as u32).to_le_bytes());
        for word in [
            self.config,
            self.sample_period_or_freq,
            self.sample_type.0,
            self.read_format.0,
            self.flags.0,
        ] {
            out.extend(word.to_le_bytes());
        }
        out.extend(self.wakeup.to_le_bytes());
        out.extend(self.bp_type.to_le_bytes());
        for word in [self.config1, self.config2, self.branch_sample_type, self.sample_regs_user] {
            out.extend(word.to_le_bytes());
        }
        out.extend(self.sample_stack_user_bytes.to_le_bytes());
        out.extend(self.clockid.to_le_bytes());
        out.extend(self.sample_regs_intr.to_le_bytes());
        out.extend(self.aux_watermark_bytes.to_le_bytes());
        out.extend(self.sample_max_stack.to_le_bytes());
        out.extend([0, 0]);
        out.extend(self.aux_sample_size_bytes.to_le_bytes());
        out.extend(self.aux_action.to_le_bytes());
        out.extend(self.sig_data.to_le_bytes());
        out.extend(self.config3.to_le_bytes());
        out.resize(size, 0);
        out
    }
}

/// PMU types that every kernel has, `PERF_TYPE_*`.
pub mod pmu_type {
    /// Generic hardware events.
    pub const HARDWARE: u32 = 0;
    /// Software events.
    pub const SOFTWARE: u32 = 1;
    /// Tracepoints and probes; `config` is the number of the tracepoint.
    pub const TRACEPOINT: u32 = 2;
    /// Generic cache events.
    pub const HW_CACHE: u32 = 3;
    /// Raw events of the CPU's PMU.
    pub const RAW: u32 = 4;
    /// Hardware breakpoints.
    pub const BREAKPOINT: u32 = 5;
}

/// The modifiers that perf shows behind the name of an event that nobody has named, colon included.
/// Source: `evsel__add_modifiers` in `tools/perf/util/evsel.c`.
fn modifiers(attr: &Attr) -> String {
    use AttrFlags as F;
    let mut text = String::new();
    let mut is_exclude_guest_usual = false;
    let modes = [(F::EXCLUDE_KERNEL, 'k'), (F::EXCLUDE_USER, 'u'), (F::EXCLUDE_HV, 'h')];
    if modes.iter().any(|(excluded, _)| attr.has(*excluded)) {
        text.extend(modes.iter().filter(|(excluded, _)| !attr.has(*excluded)).map(|(_, c)| c));
        is_exclude_guest_usual = true;
    }
    if attr.precise_ip() > 0 {
        text.extend(std::iter::repeat_n('p', usize::from(attr.precise_ip())));
        is_exclude_guest_usual = true;
    }
    if attr.has(F::EXCLUDE_HOST) || attr.has(F::EXCLUDE_GUEST) == is_exclude_guest_usual {
        let sides = [(F::EXCLUDE_HOST, 'H'), (F::EXCLUDE_GUEST, 'G')];
        text.extend(sides.iter().filter(|(excluded, _)| !attr.has(*excluded)).map(|(_, c)| c));
    }
    if text.is_empty() { text } else { format!(":{text}") }
}

/// The name of an event that the recording itself does not name.
pub fn fallback_event_name(attr: &Attr) -> String {
    let name = match attr.pmu_type {
        pmu_type::HARDWARE => HardwareEvent::from_config(attr.config).map(HardwareEvent::name),
        pmu_type::SOFTWARE => SoftwareEvent::from_config(attr.config).map(SoftwareEvent::name),
        pmu_type::RAW => return format!("r{:x}{}", attr.config, modifiers(attr)),
        _ => None,
    };
    name.map_or_else(
        || format!("{}:{:#x}", attr.pmu_type, attr.config),
        |name| format!("{name}{}", modifiers(attr)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_round_trip() {
        let bytes: Vec<u8> = (0..Attr::FULL_SIZE_BYTES).map(|i| i as u8 + 1).collect();
        let attr = Attr::from_bytes(&bytes).unwrap();
        let back = attr.to_bytes();
        assert_eq!(back.len(), Attr::FULL_SIZE_BYTES);
        for (i, (a, b)) in bytes.iter().zip(&back).enumerate() {
            // Bytes 4..8 hold the size, 110..112 are reserved.
            if !(4..8).contains(&i) && !(110..112).contains(&i) {
                assert_eq!(a, b, "byte {i}");
            }
        }
    }

    #[test]
    fn old_and_short_versions() {
        assert!(Attr::from_bytes(&[0; 63]).is_none());
        let attr = Attr::from_bytes(&[0xff; 64]).unwrap();
        assert_eq!(attr.config1, u64::MAX);
        assert_eq!((attr.config2, attr.sample_regs_user, attr.clockid), (0, 0, 0));
    }

    #[test]
    fn precise_ip_does_not_touch_its_neighbours() {
        let mut attr =
            Attr { flags: AttrFlags::WATERMARK | AttrFlags::MMAP_DATA, ..Attr::default() };
        attr.set_precise_ip(3);
        assert_eq!(attr.precise_ip(), 3);
        attr.set_precise_ip(0);
        assert_eq!(attr.flags, AttrFlags::WATERMARK | AttrFlags::MMAP_DATA);
    }

    #[test]
    fn fallback_names() {
        let usual = AttrFlags::EXCLUDE_GUEST;
        let with = |pmu_type, config, flags| Attr { pmu_type, config, flags, ..Attr::default() };
        let attr = |pmu_type, config| with(pmu_type, config, usual);
        assert_eq!(fallback_event_name(&attr(0, 0)), "cycles");
        assert_eq!(fallback_event_name(&attr(1, 9)), "dummy");
        assert_eq!(fallback_event_name(&attr(4, 0x1a8)), "r1a8");
        assert_eq!(fallback_event_name(&attr(1, 99)), "1:0x63");
        assert_eq!(fallback_event_name(&with(0, 0, AttrFlags::default())), "cycles:HG");
        let user = AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV;
        assert_eq!(fallback_event_name(&with(1, 0, user)), "cpu-clock:u");
        let mut precise = with(4, 0xc0, usual);
        precise.set_precise_ip(2);
        assert_eq!(fallback_event_name(&precise), "rc0:ppH");
    }
}
