//! Header features: what a recording says about the machine, the command and itself.
//!
//! perf numbers features from 1. whit's own start at [`Feature::WHIT_LEDGER`], far above: other
//! readers skip numbers that they do not know. Source: `tools/perf/util/header.c`; `docs/format.md`
//! has the bytes.

use crate::attr::Attr;
use crate::bytes::{Cursor, pad_to};
use crate::ledger::Ledger;
use crate::mapped_file::{self, MappedFile};
use crate::record::RawRecord;
use std::collections::BTreeMap;
use whit_types::{BuildId, Pid, TimestampNs};

/// Number of a feature: the bit in the file header's bit map.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Feature(pub u8);

#[allow(missing_docs)]
impl Feature {
    pub const TRACING_DATA: Feature = Feature(1);
    pub const BUILD_ID: Feature = Feature(2);
    pub const HOSTNAME: Feature = Feature(3);
    pub const OSRELEASE: Feature = Feature(4);
    pub const VERSION: Feature = Feature(5);
    pub const ARCH: Feature = Feature(6);
    pub const NRCPUS: Feature = Feature(7);
    pub const CPUDESC: Feature = Feature(8);
    pub const CPUID: Feature = Feature(9);
    pub const TOTAL_MEM: Feature = Feature(10);
    pub const CMDLINE: Feature = Feature(11);
    pub const EVENT_DESC: Feature = Feature(12);
    pub const CPU_TOPOLOGY: Feature = Feature(13);
    pub const NUMA_TOPOLOGY: Feature = Feature(14);
    pub const BRANCH_STACK: Feature = Feature(15);
    pub const PMU_MAPPINGS: Feature = Feature(16);
    pub const GROUP_DESC: Feature = Feature(17);
    pub const AUXTRACE: Feature = Feature(18);
    pub const STAT: Feature = Feature(19);
    pub const CACHE: Feature = Feature(20);
    pub const SAMPLE_TIME: Feature = Feature(21);
    pub const MEM_TOPOLOGY: Feature = Feature(22);
    pub const CLOCKID: Feature = Feature(23);
    pub const DIR_FORMAT: Feature = Feature(24);
    /// The layout that [`Feature::DIR_FORMAT`] names: `data`, and the streams `data.0` and on.
    pub const DIR_FORMAT_VERSION: u64 = 1;
    pub const BPF_PROG_INFO: Feature = Feature(25);
    pub const BPF_BTF: Feature = Feature(26);
    pub const COMPRESSED: Feature = Feature(27);
    pub const CPU_PMU_CAPS: Feature = Feature(28);
    pub const CLOCK_DATA: Feature = Feature(29);
    pub const HYBRID_TOPOLOGY: Feature = Feature(30);
    pub const PMU_CAPS: Feature = Feature(31);
    /// simpleperf's keys and values.
    pub const META_INFO: Feature = Feature(129);
    /// whit's overhead ledger.
    pub const WHIT_LEDGER: Feature = Feature(224);
    /// When switches and samples were recorded.
    pub const WHIT_SPANS: Feature = Feature(225);
    /// The files that were mapped as code.
    pub const WHIT_FILES: Feature = Feature(226);
    /// How the unwinding went of stacks that are call chains by now.
    pub const WHIT_UNWOUND: Feature = Feature(227);
    /// Names of the recording's own frames.
    pub const WHIT_NAMES: Feature = Feature(229);
    /// The event for which the last while of a longer recording was written.
    pub const WHIT_TRIGGER: Feature = Feature(231);
    /// Records that a bound of memory took before they were written.
    pub const WHIT_LET_GO: Feature = Feature(233);
    /// Reasons for which goroutines wait.
    pub const WHIT_GOROUTINES: Feature = Feature(235);

    /// Features of perf, by their numbers from 1 on.
    const NAMES: [&'static str; 31] = [
        "TRACING_DATA",
        "BUILD_ID",
        "HOSTNAME",
        "OSRELEASE",
        "VERSION",
        "ARCH",
        "NRCPUS",
        "CPUDESC",
        "CPUID",
        "TOTAL_MEM",
        "CMDLINE",
        "EVENT_DESC",
        "CPU_TOPOLOGY",
        "NUMA_TOPOLOGY",
        "BRANCH_STACK",
        "PMU_MAPPINGS",
        "GROUP_DESC",
        "AUXTRACE",
        "STAT",
        "CACHE",
        "SAMPLE_TIME",
        "MEM_TOPOLOGY",
        "CLOCKID",
        "DIR_FORMAT",
        "BPF_PROG_INFO",
        "BPF_BTF",
        "COMPRESSED",
        "CPU_PMU_CAPS",
        "CLOCK_DATA",
        "HYBRID_TOPOLOGY",
        "PMU_CAPS",
    ];

    /// The name of a feature of perf.
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.get(usize::from(self.0).checked_sub(1)?).copied()
    }
}

/// An event as a recording describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventDesc {
    /// How it was asked for.
    pub attr: Attr,
    /// The kernel's ids of its instances (one per CPU or thread).
    pub ids: Vec<u64>,
    /// Name; empty where the recording has none.
    pub name: String,
}

/// An entry of the BUILD_ID feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildIdEntry {
    /// CPU mode bits: kernel or user.
    pub misc: u16,
    /// -1 for the host.
    pub pid: Pid,
    /// 20 bytes at most, as the linker wrote it.
    pub id: BuildId,
    /// Path, or a name in brackets: `[kernel.kallsyms]`.
    pub path: String,
}

/// The feature COMPRESSED: the format of compressed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedDesc {
    /// perf writes 0.
    pub version: u32,
    /// 1 is zstd.
    pub kind: u32,
    /// zstd level.
    pub level: u32,
    /// Bytes before over bytes after.
    pub ratio: u32,
    /// Most bytes that one compressed record decodes to, with the decoder's own needs.
    pub decoded_bytes_max: u32,
}

impl CompressedDesc {
    /// `PERF_COMP_ZSTD`.
    pub const ZSTD: u32 = 1;

    /// perf since 7.3 refuses recordings with a size that is no multiple.
    const SIZE_UNIT_BYTES: u32 = 4096;

    /// zstd at a level. The size is rounded up.
    pub fn zstd(level: u32, ratio: u32, decoded_bytes_max: u32) -> CompressedDesc {
        let units = decoded_bytes_max.div_ceil(Self::SIZE_UNIT_BYTES);
        let most = u32::MAX / Self::SIZE_UNIT_BYTES;
        let decoded_bytes_max = units.clamp(1, most) * Self::SIZE_UNIT_BYTES;
        CompressedDesc { version: 0, kind: Self::ZSTD, level, ratio, decoded_bytes_max }
    }
}

/// CLOCK_DATA: one moment, on the wall clock and on the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockData {
    /// Clock of the time stamps.
    pub clockid: u32,
    /// Nanoseconds since the epoch.
    pub wall_clock_ns: u64,
    /// The same moment on the recording's clock.
    pub clock_ns: TimestampNs,
}

/// A stretch of time in which samples and context switches were recorded, both ends inclusive, on the
/// recording's clock. Sideband may be older and newer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordedSpan {
    /// All sources of samples and switches were on; zero where they were on before this output began.
    pub from: TimestampNs,
    /// All of them were still on; `u64::MAX` where they were on after this output ended.
    pub to: TimestampNs,
}

/// An event group, by index of its leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDesc {
    /// Name; perf's default is `{anon_group}`.
    pub name: String,
    /// Index of the leader among the events.
    pub leader_index: u32,
    /// Members, leader included.
    pub nr_members: u32,
}

/// All features of a recording, as bytes, with typed access to those that whit uses. Features
/// that whit does not know are kept as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    sections: BTreeMap<Feature, Vec<u8>>,
}

impl Features {
    /// Puts a feature in as bytes.
    pub fn set(&mut self, feature: Feature, bytes: Vec<u8>) {
        self.sections.insert(feature, bytes);
    }

    /// A feature's bytes.
    pub fn get(&self, feature: Feature) -> Option<&[u8]> {
        self.sections.get(&feature).map(Vec::as_slice)
    }

    /// All features, by number.
    pub fn iter(&self) -> impl Iterator<Item = (Feature, &[u8])> {
        self.sections.iter().map(|(feature, bytes)| (*feature, bytes.as_slice()))
    }

    /// Appends to a feature (perf's pipes repeat BUILD_ID records).
    pub fn append(&mut self, feature: Feature, bytes: &[u8]) {
        self.sections.entry(feature).or_default().extend(bytes);
    }

    fn cursor(&self, feature: Feature) -> Option<Cursor<'_>> {
        self.get(feature).map(Cursor::new)
    }

    /// A feature that is one string (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID).
    pub fn string(&self, feature: Feature) -> Option<String> {
        read_string(&mut self.cursor(feature)?)
    }

    /// Sets a feature that is one string.
    pub fn set_string(&mut self, feature: Feature, text: &str) {
        let mut out = Vec::new();
        push_string(&mut out, text);
        self.set(feature, out);
    }

    /// CPUs online and available.
    pub fn nr_cpus(&self) -> Option<(u32, u32)> {
        let mut c = self.cursor(Feature::NRCPUS)?;
        let available = c.u32()?;
        Some((c.u32()?, available))
    }

    /// Sets NRCPUS.
    pub fn set_nr_cpus(&mut self, online: u32, available: u32) {
        self.set(Feature::NRCPUS, [available.to_le_bytes(), online.to_le_bytes()].concat());
    }

    /// A feature that is one word (TOTAL_MEM in KiB, CLOCKID resolution in ns, DIR_FORMAT).
    pub fn word(&self, feature: Feature) -> Option<u64> {
        self.cursor(feature)?.u64()
    }

    /// Sets a feature that is one word.
    pub fn set_word(&mut self, feature: Feature, value: u64) {
        self.set(feature, value.to_le_bytes().to_vec());
    }

    /// The command line.
    pub fn cmdline(&self) -> Option<Vec<String>> {
        let mut c = self.cursor(Feature::CMDLINE)?;
        let count = c.u32()?;
        (0..count).map(|_| read_string(&mut c)).collect()
    }

    /// Sets the command line.
    pub fn set_cmdline<S: AsRef<str>>(&mut self, args: &[S]) {
        let mut out = (args.len() as u32).to_le_bytes().to_vec();
        args.iter().for_each(|arg| push_string(&mut out, arg.as_ref()));
        self.set(Feature::CMDLINE, out);
    }

    /// The events with their names.
    pub fn event_desc(&self) -> Option<Vec<EventDesc>> {
        let mut c = self.cursor(Feature::EVENT_DESC)?;
        let (count, attr_size) = (c.u32()?, c.u32()? as usize);
        let mut events = Vec::new();
        for _ in 0..count {
            let attr = Attr::from_bytes(c.take(attr_size)?)?;
            let nr_ids = c.u32()? as usize;
            let name = read_string(&mut c)?;
            let ids = c.take(nr_ids.checked_mul(8)?)?;
            let ids = ids.as_chunks::<8>().0.iter().map(|id| u64::from_le_bytes(*id)).collect();
            events.push(EventDesc { attr, ids, name });
        }
        Some(events)
    }

    /// The size of each attribute in EVENT_DESC.
    pub fn attr_size_bytes(&self) -> Option<u32> {
        let mut c = self.cursor(Feature::EVENT_DESC)?;
        let _count = c.u32()?;
        c.u32()
    }

    /// Writes the section EVENT_DESC.
    pub fn set_event_desc(&mut self, events: &[EventDesc]) {
        let mut out = (events.len() as u32).to_le_bytes().to_vec();
        let attr_size = Attr::file_size_bytes(events.iter().map(|event| &event.attr));
        out.extend((attr_size as u32).to_le_bytes());
        for event in events {
            out.extend(event.attr.to_bytes_sized(attr_size));
            out.extend((event.ids.len() as u32).to_le_bytes());
            push_string(&mut out, &event.name);
            out.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
        }
        self.set(Feature::EVENT_DESC, out);
    }

    /// Sets PMU_MAPPINGS: PMU types and names.
    pub fn set_pmu_mappings(&mut self, pmus: &[(u32, String)]) {
        let mut out = (pmus.len() as u32).to_le_bytes().to_vec();
        for (kind, name) in pmus {
            out.extend(kind.to_le_bytes());
            push_string(&mut out, name);
        }
        self.set(Feature::PMU_MAPPINGS, out);
    }

    /// Writes the section GROUP_DESC.
    pub fn set_group_desc(&mut self, groups: &[GroupDesc]) {
        let mut out = (groups.len() as u32).to_le_bytes().to_vec();
        for group in groups {
            push_string(&mut out, &group.name);
            out.extend(group.leader_index.to_le_bytes());
            out.extend(group.nr_members.to_le_bytes());
        }
        self.set(Feature::GROUP_DESC, out);
    }

    /// Event groups.
    pub fn group_desc(&self) -> Option<Vec<GroupDesc>> {
        let mut c = self.cursor(Feature::GROUP_DESC)?;
        let count = c.u32()?;
        (0..count)
            .map(|_| {
                let name = read_string(&mut c)?;
                Some(GroupDesc { name, leader_index: c.u32()?, nr_members: c.u32()? })
            })
            .collect()
    }

    /// CPU_TOPOLOGY: the socket of each CPU, by the CPU's number. `None` of a CPU that was offline.
    pub fn sockets(&self) -> Option<Vec<Option<u32>>> {
        let (_, available) = self.nr_cpus()?;
        let mut c = self.cursor(Feature::CPU_TOPOLOGY)?;
        // The lists of CPUs that share a socket, and of those that share a core.
        for _ in 0..2 {
            for _ in 0..c.u32()? {
                read_string(&mut c)?;
            }
        }
        let socket = |_| {
            let (_core, socket) = (c.u32()?, c.u32()?);
            Some((socket as i32 >= 0).then_some(socket))
        };
        (0..available).map(socket).collect()
    }

    /// Time stamps of the first and the last sample.
    pub fn sample_time(&self) -> Option<(TimestampNs, TimestampNs)> {
        let mut c = self.cursor(Feature::SAMPLE_TIME)?;
        Some((TimestampNs(c.u64()?), TimestampNs(c.u64()?)))
    }

    /// Writes the section SAMPLE_TIME.
    pub fn set_sample_time(&mut self, first: TimestampNs, last: TimestampNs) {
        self.set(Feature::SAMPLE_TIME, [first.0.to_le_bytes(), last.0.to_le_bytes()].concat());
    }

    /// COMPRESSED: how records are compressed, for readers that set up one decoder.
    pub fn compressed(&self) -> Option<CompressedDesc> {
        let mut c = self.cursor(Feature::COMPRESSED)?;
        Some(CompressedDesc {
            version: c.u32()?,
            kind: c.u32()?,
            level: c.u32()?,
            ratio: c.u32()?,
            decoded_bytes_max: c.u32()?,
        })
    }

    /// Writes the section COMPRESSED.
    pub fn set_compressed(&mut self, desc: &CompressedDesc) {
        let words = [desc.version, desc.kind, desc.level, desc.ratio, desc.decoded_bytes_max];
        self.set(Feature::COMPRESSED, words.iter().flat_map(|word| word.to_le_bytes()).collect());
    }

    /// The section CLOCK_DATA: the recording's clock and the wall clock at one moment.
    pub fn clock_data(&self) -> Option<ClockData> {
        let mut c = self.cursor(Feature::CLOCK_DATA)?;
        let _version = c.u32()?;
        Some(ClockData {
            clockid: c.u32()?,
            wall_clock_ns: c.u64()?,
            clock_ns: TimestampNs(c.u64()?),
        })
    }

    /// Writes the section CLOCK_DATA.
    pub fn set_clock_data(&mut self, data: ClockData) {
        let mut out = 1u32.to_le_bytes().to_vec();
        out.extend(data.clockid.to_le_bytes());
        out.extend(data.wall_clock_ns.to_le_bytes());
        out.extend(data.clock_ns.0.to_le_bytes());
        self.set(Feature::CLOCK_DATA, out);
    }

    /// Build ids of the binaries that the recorder looked at.
    pub fn build_ids(&self) -> Vec<BuildIdEntry> {
        let mut rest = self.get(Feature::BUILD_ID).unwrap_or_default();
        let mut entries = Vec::new();
        // The type in these records' headers is not kept by all versions: only their order counts.
        while let Some((record, tail)) = RawRecord::split(rest) {
            entries.extend(parse_build_id(record));
            rest = tail;
        }
        entries
    }

    /// Sets BUILD_ID.
    pub fn set_build_ids(&mut self, entries: &[BuildIdEntry]) {
        let mut out = Vec::new();
        for e in entries {
            crate::encode::build_id(&mut out, e.misc, e.pid, &e.id, e.path.as_bytes());
        }
        self.set(Feature::BUILD_ID, out);
    }

    /// WHIT_SPANS: when switches and samples were recorded, in the order in which it was stated.
    pub fn recorded_spans(&self) -> Option<Vec<RecordedSpan>> {
        let mut c = self.cursor(Feature::WHIT_SPANS)?;
        let count = c.u64()?;
        (0..count)
            .map(|_| Some(RecordedSpan { from: TimestampNs(c.u64()?), to: TimestampNs(c.u64()?) }))
            .collect()
    }

    /// Sets WHIT_SPANS.
    pub fn set_recorded_spans(&mut self, spans: &[RecordedSpan]) {
        let mut out = (spans.len() as u64).to_le_bytes().to_vec();
        for span in spans {
            out.extend(span.from.0.to_le_bytes());
            out.extend(span.to.0.to_le_bytes());
        }
        self.set(Feature::WHIT_SPANS, out);
    }

    /// whit's ledger.
    pub fn ledger(&self) -> Option<Ledger> {
        Ledger::from_bytes(self.get(Feature::WHIT_LEDGER)?)
    }

    /// The files that were mapped as code, as the recorder found them. Empty where it was not whit.
    pub fn mapped_files(&self) -> Vec<MappedFile> {
        mapped_file::decode(self.get(Feature::WHIT_FILES).unwrap_or_default())
    }

    /// Sets WHIT_FILES.
    pub fn set_mapped_files(&mut self, files: &[MappedFile]) {
        self.set(Feature::WHIT_FILES, mapped_file::encode(files));
    }

    /// Sets whit's ledger.
    pub fn set_ledger(&mut self, ledger: &Ledger) {
        self.set(Feature::WHIT_LEDGER, ledger.to_bytes());
    }
}

fn parse_build_id(record: RawRecord<'_>) -> Option<BuildIdEntry> {
    let mut c = Cursor::new(record.body);
    let pid = Pid(c.i32()?);
    let field = c.take(24)?;
    let has_size = record.header.misc & 1 << 15 != 0;
    let size = if has_size { usize::from(field[20]).min(20) } else { 20 };
    Some(BuildIdEntry {
        misc: record.header.misc,
        pid,
        id: BuildId::new(&field[..size])?,
        path: String::from_utf8_lossy(c.c_str()).into_owned(),
    })
}

/// perf pads strings to 64 bytes and counts the padding in the length.
const STRING_ALIGN_BYTES: usize = 64;

fn push_string(out: &mut Vec<u8>, text: &str) {
    let padded = (text.len() + 1).next_multiple_of(STRING_ALIGN_BYTES);
    out.extend((padded as u32).to_le_bytes());
    let end = out.len() + padded;
    out.extend(text.as_bytes());
    out.resize(end, 0);
}

pub(crate) fn read_string(c: &mut Cursor<'_>) -> Option<String> {
    let len = c.u32()? as usize;
    let text = Cursor::new(c.take(len)?).c_str();
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Appends a feature string to a buffer that must itself be aligned to four bytes.
pub fn encode_string(out: &mut Vec<u8>, text: &str) {
    pad_to(out, 4);
    push_string(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_types::FileId;

    #[test]
    fn sizes_of_compressed_records_are_whole_pages_as_perf_demands() {
        let size = |wanted| CompressedDesc::zstd(1, 1, wanted).decoded_bytes_max;
        assert_eq!([0, 1, 4096, 131_064].map(size), [4096, 4096, 4096, 131_072]);
        assert_eq!(size(u32::MAX) % 4096, 0);
    }

    /// A recording may be switched on and off for days: a limit here would charge nobody for the rest.
    #[test]
    fn lists_are_as_long_as_their_section() {
        let mut f = Features::default();
        let span =
            |at: u64| RecordedSpan { from: TimestampNs(2 * at), to: TimestampNs(2 * at + 1) };
        let spans: Vec<_> = (0..100_000).map(span).collect();
        f.set_recorded_spans(&spans);
        let words: Vec<_> = (0..70_000).map(|word: u32| word.to_string()).collect();
        f.set_cmdline(&words);
        assert!(f.recorded_spans().unwrap() == spans && f.cmdline().unwrap() == words);
        // A length that nothing stands behind.
        f.set(Feature::WHIT_SPANS, [u64::MAX.to_le_bytes(), [0; 8]].concat());
        f.set(Feature::CMDLINE, u32::MAX.to_le_bytes().to_vec());
        assert_eq!((f.recorded_spans(), f.cmdline()), (None, None));
    }

    #[test]
    fn sockets_are_behind_the_lists() {
        let mut f = Features::default();
        f.set_nr_cpus(2, 3);
        let mut topology = Vec::new();
        for list in ["0-1", "2"] {
            topology.extend(1u32.to_le_bytes());
            encode_string(&mut topology, list);
        }
        for (core, socket) in [(0, 0), (1, 1), (u32::MAX, u32::MAX)] {
            topology.extend(u32::to_le_bytes(core));
            topology.extend(u32::to_le_bytes(socket));
        }
        f.set(Feature::CPU_TOPOLOGY, topology.clone());
        assert_eq!(f.sockets(), Some(vec![Some(0), Some(1), None]));
        f.set(Feature::CPU_TOPOLOGY, topology[..topology.len() - 1].to_vec());
        assert_eq!(f.sockets(), None);
    }

    #[test]
    fn features_of_perf_have_names() {
        assert_eq!(Feature::TRACING_DATA.name(), Some("TRACING_DATA"));
        assert_eq!(Feature::SAMPLE_TIME.name(), Some("SAMPLE_TIME"));
        assert_eq!(Feature::PMU_CAPS.name(), Some("PMU_CAPS"));
        assert_eq!((Feature(0).name(), Feature::WHIT_LEDGER.name()), (None, None));
    }

    #[test]
    fn features_round_trip() {
        let mut f = Features::default();
        f.set_string(Feature::HOSTNAME, "host");
        f.set_nr_cpus(2, 4);
        f.set_cmdline(&["whit", "record", "-g"]);
        let event = EventDesc { attr: Attr::default(), ids: vec![1, 2], name: "a:b='c'".into() };
        f.set_event_desc(std::slice::from_ref(&event));
        f.set_sample_time(TimestampNs(1), TimestampNs(2));
        let group = GroupDesc { name: "{anon_group}".into(), leader_index: 0, nr_members: 2 };
        f.set_group_desc(std::slice::from_ref(&group));
        let entry = BuildIdEntry {
            misc: 1 | 1 << 15,
            pid: Pid(-1),
            id: BuildId::new(&[9; 20]).unwrap(),
            path: "[kernel.kallsyms]".into(),
        };
        f.set_build_ids(&[entry.clone(), entry.clone()]);
        let spans = [(3, 7), (9, u64::MAX)]
            .map(|(from, to)| RecordedSpan { from: TimestampNs(from), to: TimestampNs(to) });
        f.set_recorded_spans(&spans);
        assert_eq!(f.string(Feature::HOSTNAME).unwrap(), "host");
        assert_eq!(f.nr_cpus(), Some((2, 4)));
        assert_eq!(f.cmdline().unwrap(), ["whit", "record", "-g"]);
        assert_eq!(f.event_desc().unwrap(), [event]);
        assert_eq!(f.sample_time(), Some((TimestampNs(1), TimestampNs(2))));
        assert_eq!(f.group_desc().unwrap(), [group]);
        assert_eq!(f.build_ids(), [entry.clone(), entry]);
        assert_eq!(f.recorded_spans().unwrap(), spans);
    }

    #[test]
    fn numbers_and_whits_own_features_round_trip() {
        let mut f = Features::default();
        assert_eq!(
            (f.word(Feature::TOTAL_MEM), f.compressed(), f.clock_data()),
            (None, None, None)
        );
        assert_eq!((f.ledger(), f.mapped_files()), (None, Vec::new()));
        f.set_word(Feature::TOTAL_MEM, 1 << 40);
        let compressed =
            CompressedDesc { version: 0, kind: 1, level: 3, ratio: 7, decoded_bytes_max: 1 << 20 };
        f.set_compressed(&compressed);
        let clock_ns = TimestampNs(9);
        let clock = ClockData { clockid: 4, wall_clock_ns: 1 << 60, clock_ns };
        f.set_clock_data(clock);
        let ledger = Ledger { wall_ns: 5, lost_records: 6, ..Ledger::default() };
        f.set_ledger(&ledger);
        let file = MappedFile {
            id: FileId { device: (8, 1), inode: 42 },
            path: b"/bin/tool".to_vec(),
            found: Ok(mapped_file::FoundFile { size_bytes: 7, ..Default::default() }),
        };
        f.set_mapped_files(std::slice::from_ref(&file));
        assert_eq!(f.word(Feature::TOTAL_MEM), Some(1 << 40));
        assert_eq!(f.compressed().unwrap(), compressed);
        assert_eq!(f.clock_data().unwrap(), clock);
        assert_eq!((f.ledger(), f.mapped_files()), (Some(ledger), vec![file]));
    }

    #[test]
    fn cut_features_are_absent_not_wrong() {
        let mut f = Features::default();
        f.set_cmdline(&["whit", "record"]);
        let cut = f.get(Feature::CMDLINE).unwrap()[..70].to_vec();
        f.set(Feature::CMDLINE, cut);
        assert_eq!(f.cmdline(), None);
        f.set(Feature::EVENT_DESC, [0xff; 8].to_vec());
        assert_eq!(f.event_desc(), None);
        f.set(Feature::WHIT_SPANS, [0xff; 40].to_vec());
        assert_eq!(f.recorded_spans(), None);
    }
}
