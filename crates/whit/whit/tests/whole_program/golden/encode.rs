//! An encoder of recordings of its own: it uses no code of whit, so that a misunderstanding of the
//! format cannot hide by being made twice. It writes the formats of old and new versions of perf,
//! and impossible ones.
//!
//! Sources: `include/uapi/linux/perf_event.h`, `tools/lib/perf/include/perf/event.h`,
//! `tools/perf/util/header.c` of Linux.

/// Bytes in the making, little-endian.
#[derive(Clone, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.raw(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn i32(&mut self, value: i32) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn words(&mut self, values: &[u64]) -> &mut Self {
        values.iter().for_each(|value| {
            self.u64(*value);
        });
        self
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend(bytes);
        self
    }

    /// A string with its NUL, padded with zeros to a multiple of `align`.
    pub(crate) fn c_str(&mut self, text: &str, align: usize) -> &mut Self {
        let end = self.0.len() + (text.len() + 1).next_multiple_of(align);
        self.raw(text.as_bytes());
        self.0.resize(end, 0);
        self
    }

    /// A string as features have it: its padded length, then itself, padded to 64 bytes.
    pub(crate) fn feature_str(&mut self, text: &str) -> &mut Self {
        self.u32((text.len() + 1).next_multiple_of(64) as u32).c_str(text, 64)
    }
}

/// Fills bytes.
pub(crate) fn bytes(fill: impl FnOnce(&mut Bytes)) -> Vec<u8> {
    let mut out = Bytes::default();
    fill(&mut out);
    out.0
}

/// The bytes of one record; `fill` writes its body.
pub(crate) fn record(kind: u32, misc: u16, fill: impl FnOnce(&mut Bytes)) -> Vec<u8> {
    let body = bytes(fill);
    let size = u16::try_from(8 + body.len()).expect("a record fits into 64 KiB");
    bytes(|b| {
        b.u32(kind).u16(misc).u16(size).raw(&body);
    })
}

/// `PERF_SAMPLE_*`.
pub(crate) mod field {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const DATA_SRC: u64 = 1 << 15;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
    pub(crate) const TRANSACTION: u64 = 1 << 17;
    pub(crate) const REGS_INTR: u64 = 1 << 18;
    pub(crate) const PHYS_ADDR: u64 = 1 << 19;
    pub(crate) const AUX: u64 = 1 << 20;
    pub(crate) const CGROUP: u64 = 1 << 21;
    pub(crate) const DATA_PAGE_SIZE: u64 = 1 << 22;
    pub(crate) const CODE_PAGE_SIZE: u64 = 1 << 23;
    pub(crate) const WEIGHT_STRUCT: u64 = 1 << 24;
}

/// The one-bit fields of `perf_event_attr`.
pub(crate) mod flag {
    pub(crate) const MMAP: u64 = 1 << 8;
    pub(crate) const COMM: u64 = 1 << 9;
    pub(crate) const FREQ: u64 = 1 << 10;
    pub(crate) const TASK: u64 = 1 << 13;
    pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(crate) const MMAP2: u64 = 1 << 23;
    pub(crate) const COMM_EXEC: u64 = 1 << 24;
    pub(crate) const BUILD_ID: u64 = 1 << 34;
    pub(crate) const DEFER_CALLCHAIN: u64 = 1 << 38;
    pub(crate) const DEFER_OUTPUT: u64 = 1 << 39;
    pub(crate) const USUAL: u64 = MMAP | COMM | TASK | SAMPLE_ID_ALL | MMAP2 | COMM_EXEC;
}

/// `PERF_RECORD_*`.
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const UNTHROTTLE: u32 = 6;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const READ: u32 = 8;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const AUX: u32 = 11;
    pub(crate) const ITRACE_START: u32 = 12;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const SWITCH: u32 = 14;
    pub(crate) const SWITCH_CPU_WIDE: u32 = 15;
    pub(crate) const NAMESPACES: u32 = 16;
    pub(crate) const KSYMBOL: u32 = 17;
    pub(crate) const BPF_EVENT: u32 = 18;
    pub(crate) const CGROUP: u32 = 19;
    pub(crate) const TEXT_POKE: u32 = 20;
    pub(crate) const CALLCHAIN_DEFERRED: u32 = 22;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const EVENT_TYPE: u32 = 65;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const BUILD_ID: u32 = 67;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const AUXTRACE_INFO: u32 = 70;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const FINISHED_INIT: u32 = 82;
    pub(crate) const COMPRESSED2: u32 = 83;
}

/// `PERF_CONTEXT_*`.
pub(crate) mod marker {
    pub(crate) const KERNEL: u64 = -128i64 as u64;
    pub(crate) const USER: u64 = -512i64 as u64;
    pub(crate) const USER_DEFERRED: u64 = -640i64 as u64;
    pub(crate) const GUEST_KERNEL: u64 = -2176i64 as u64;
    pub(crate) const GUEST_USER: u64 = -2560i64 as u64;
}

/// `PERF_RECORD_MISC_*`.
pub(crate) mod misc {
    pub(crate) const KERNEL: u16 = 1;
    pub(crate) const USER: u16 = 2;
    pub(crate) const GUEST_KERNEL: u16 = 4;
    pub(crate) const GUEST_USER: u16 = 5;
    pub(crate) const COMM_EXEC: u16 = 1 << 13;
    pub(crate) const SWITCH_OUT: u16 = 1 << 13;
    pub(crate) const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    pub(crate) const MMAP_BUILD_ID: u16 = 1 << 14;
    pub(crate) const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// `perf_event_attr`.
#[derive(Clone)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) regs_user: u64,
    pub(crate) stack_user: u32,
    pub(crate) regs_intr: u64,
    pub(crate) config3: u64,
    pub(crate) config4: u64,
}

impl Attr {
    /// A software event (0 is cpu-clock, 1 task-clock) with a fixed period.
    pub(crate) fn software(config: u64, sample_type: u64) -> Attr {
        Attr {
            kind: 1,
            config,
            period: 1000,
            sample_type,
            read_format: 0,
            flags: flag::USUAL,
            branch_sample_type: 0,
            regs_user: 0,
            stack_user: 0,
            regs_intr: 0,
            config3: 0,
            config4: 0,
        }
    }

    /// The first `size` bytes: `PERF_ATTR_SIZE_VER0` is 64, the ninth version 144.
    pub(crate) fn bytes(&self, size: usize) -> Vec<u8> {
        let mut out = bytes(|b| {
            b.u32(self.kind).u32(size as u32).words(&[
                self.config,
                self.period,
                self.sample_type,
                self.read_format,
                self.flags,
            ]);
            b.u32(1).u32(0).words(&[0, 0]);
            b.words(&[self.branch_sample_type, self.regs_user]);
            b.u32(self.stack_user).i32(0).u64(self.regs_intr);
            b.u32(0).u16(0).u16(0).u32(0).u32(0);
            b.u64(0).u64(self.config3).u64(self.config4);
        });
        assert_eq!(out.len(), 144);
        out.resize(size, 0);
        out
    }
}

/// The end of a record that is no sample, as `sample_id_all` asks for.
#[derive(Clone, Copy)]
pub(crate) struct Id {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    pub(crate) id: u64,
}

/// Makes the kernel's records for one layout.
#[derive(Clone, Copy)]
pub(crate) struct Kernel {
    pub(crate) sample_type: u64,
    pub(crate) sample_id_all: bool,
}

impl Kernel {
    pub(crate) fn of(attr: &Attr) -> Kernel {
        Kernel {
            sample_type: attr.sample_type,
            sample_id_all: attr.flags & flag::SAMPLE_ID_ALL != 0,
        }
    }

    pub(crate) fn trailer(&self, b: &mut Bytes, id: Id) {
        let has = |bit| self.sample_id_all && self.sample_type & bit != 0;
        if has(field::TID) {
            b.i32(id.pid).i32(id.tid);
        }
        if has(field::TIME) {
            b.u64(id.time);
        }
        if has(field::ID) {
            b.u64(id.id);
        }
        if has(field::STREAM_ID) {
            b.u64(id.id);
        }
        if has(field::CPU) {
            b.u32(id.cpu).u32(0);
        }
        if has(field::IDENTIFIER) {
            b.u64(id.id);
        }
    }

    /// Any record with a trailer.
    pub(crate) fn record(
        &self,
        kind: u32,
        misc: u16,
        id: Id,
        fill: impl FnOnce(&mut Bytes),
    ) -> Vec<u8> {
        record(kind, misc, |b| {
            fill(b);
            self.trailer(b, id);
        })
    }

    pub(crate) fn comm(&self, name: &str, exec: bool, id: Id) -> Vec<u8> {
        let bits = if exec { misc::COMM_EXEC } else { 0 };
        self.record(kind::COMM, bits, id, |b| {
            b.i32(id.pid).i32(id.tid).c_str(name, 8);
        })
    }

    /// FORK or EXIT: the task of `id`, whose parent is `parent`.
    pub(crate) fn task(&self, kind: u32, parent: (i32, i32), id: Id) -> Vec<u8> {
        self.record(kind, 0, id, |b| {
            b.i32(id.pid).i32(parent.0).i32(id.tid).i32(parent.1).u64(id.time);
        })
    }

    pub(crate) fn mmap(&self, path: &str, at: (u64, u64, u64), mode: u16, id: Id) -> Vec<u8> {
        self.record(kind::MMAP, mode, id, |b| {
            b.i32(id.pid).i32(id.tid).words(&[at.0, at.1, at.2]).c_str(path, 8);
        })
    }

    /// Start, length, offset in the file.
    pub(crate) fn mmap2(&self, path: &str, at: (u64, u64, u64), id: Id) -> Vec<u8> {
        self.record(kind::MMAP2, misc::USER, id, |b| {
            b.i32(id.pid).i32(id.tid).words(&[at.0, at.1, at.2]);
            b.u32(8).u32(1).u64(4711).u64(1).u32(5).u32(2).c_str(path, 8);
        })
    }

    /// The kernel's own mapping, whose offset is the address of `_text`.
    pub(crate) fn kernel_map(&self) -> Vec<u8> {
        let id = Id { pid: -1, tid: 0, time: 0, cpu: 0, id: 0 };
        let text = 0xffff_ffff_8100_0000;
        self.mmap("[kernel.kallsyms]_text", (text, 0x100_0000, text), misc::KERNEL, id)
    }
}

/// Features by the number of their bit.
pub(crate) mod feature {
    pub(crate) const BUILD_ID: u8 = 2;
    pub(crate) const HOSTNAME: u8 = 3;
    pub(crate) const OSRELEASE: u8 = 4;
    pub(crate) const VERSION: u8 = 5;
    pub(crate) const ARCH: u8 = 6;
    pub(crate) const NRCPUS: u8 = 7;
    pub(crate) const CMDLINE: u8 = 11;
    pub(crate) const EVENT_DESC: u8 = 12;
    pub(crate) const COMPRESSED: u8 = 27;
}

/// The features that describe the machine of every generated recording; it does not exist.
pub(crate) fn machine(arch: &str, version: &str) -> Vec<(u8, Vec<u8>)> {
    let text = |text: &str| {
        bytes(|b| {
            b.feature_str(text);
        })
    };
    vec![
        (feature::HOSTNAME, text("golden")),
        (feature::OSRELEASE, text("5.10.0-golden")),
        (feature::VERSION, text(version)),
        (feature::ARCH, text(arch)),
        (
            feature::NRCPUS,
            bytes(|b| {
                b.u32(2).u32(2);
            }),
        ),
        (
            feature::CMDLINE,
            bytes(|b| {
                b.u32(2).feature_str("perf").feature_str("record");
            }),
        ),
    ]
}

/// A whole recording.
#[derive(Clone)]
pub(crate) struct Recording {
    /// Attributes and ids of the events.
    pub(crate) events: Vec<(Attr, Vec<u64>, &'static str)>,
    /// Size of an attribute.
    pub(crate) attr_size: usize,
    /// Records.
    pub(crate) data: Vec<u8>,
    /// Features by ascending number.
    pub(crate) features: Vec<(u8, Vec<u8>)>,
    /// Names of events in a section of their own, as before Linux 2.6.38.
    pub(crate) event_types: Vec<(u64, &'static str)>,
}

/// Where the parts of a file stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) attrs: usize,
    pub(crate) data: usize,
    pub(crate) features: usize,
}

impl Recording {
    /// A recording of x86-64 by perf 6.1, with attributes of that version.
    pub(crate) fn new(events: Vec<(Attr, Vec<u64>, &'static str)>, data: Vec<u8>) -> Recording {
        Recording {
            events,
            attr_size: 128,
            data,
            features: machine("x86_64", "6.1.0"),
            event_types: Vec::new(),
        }
    }

    /// Sets the architecture.
    pub(crate) fn of(mut self, arch: &str, version: &str) -> Recording {
        self.features = machine(arch, version);
        self
    }

    /// With the names of the events in the feature that holds them.
    pub(crate) fn described(mut self) -> Recording {
        let desc = bytes(|b| {
            b.u32(self.events.len() as u32).u32(self.attr_size as u32);
            for (attr, ids, name) in &self.events {
                b.raw(&attr.bytes(self.attr_size)).u32(ids.len() as u32).feature_str(name);
                b.words(ids);
            }
        });
        self.features.push((feature::EVENT_DESC, desc));
        self.features.sort_by_key(|(number, _)| *number);
        self
    }

    /// The bytes of a perf.data file.
    pub(crate) fn file(&self) -> Vec<u8> {
        self.file_and_parts().0
    }

    /// As a file, and where its parts stand: ids, attributes, names of events, records, features.
    pub(crate) fn file_and_parts(&self) -> (Vec<u8>, Parts) {
        let ids: Vec<u8> = bytes(|b| {
            self.events.iter().for_each(|(_, ids, _)| {
                b.words(ids);
            })
        });
        let attrs_at = 104 + ids.len();
        let entry = self.attr_size + 16;
        let types_at = attrs_at + entry * self.events.len();
        let data_at = types_at + 72 * self.event_types.len();
        let mut bits = [0u64; 4];
        for (number, _) in &self.features {
            bits[usize::from(*number) / 64] |= 1 << (number % 64);
        }
        let out = bytes(|b| {
            b.raw(b"PERFILE2").u64(104).u64(entry as u64);
            for (at, len) in [
                (attrs_at, entry * self.events.len()),
                (data_at, self.data.len()),
                (types_at, 72 * self.event_types.len()),
            ] {
                b.u64(at as u64).u64(len as u64);
            }
            b.words(&bits).raw(&ids);
            let mut ids_at = 104;
            for (attr, ids, _) in &self.events {
                b.raw(&attr.bytes(self.attr_size)).u64(ids_at).u64(8 * ids.len() as u64);
                ids_at += 8 * ids.len() as u64;
            }
            for (number, name) in &self.event_types {
                b.u64(*number).c_str(name, 64);
            }
            b.raw(&self.data);
            let mut at = data_at + self.data.len() + 16 * self.features.len();
            for (_, content) in &self.features {
                b.u64(at as u64).u64(content.len() as u64);
                at += content.len();
            }
            self.features.iter().for_each(|(_, content)| {
                b.raw(content);
            });
        });
        let features = data_at + self.data.len();
        (out, Parts { attrs: attrs_at, data: data_at, features })
    }

    /// The bytes of `perf record -o -`.
    pub(crate) fn pipe(&self) -> Vec<u8> {
        let mut out = bytes(|b| {
            b.raw(b"PERFILE2").u64(16);
        });
        for (attr, ids, _) in &self.events {
            out.extend(record(kind::HEADER_ATTR, 0, |b| {
                b.raw(&attr.bytes(self.attr_size)).words(ids);
            }));
        }
        for (number, content) in &self.features {
            out.extend(record(kind::FEATURE, 0, |b| {
                b.u64(u64::from(*number)).raw(content);
                b.0.resize(b.0.len().next_multiple_of(8), 0);
            }));
        }
        out.extend(&self.data);
        out
    }
}
