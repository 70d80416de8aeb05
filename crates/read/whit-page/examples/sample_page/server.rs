//! A key-value server with C++, kernel, vdso and unknown code, beside a process of JIT code.

use std::path::Path;
use whit_perfdata::ledger::{BpfLedger, BpfMeasurement, Ledger, PmiLedger, PmiMeasurement};
use whit_profile::Facets;
use whit_profile::model::*;
use whit_profile::switches::LossWindow;
use whit_profile::warning::{Reason, Warning};
use whit_types::TimestampNs;

use crate::builder::{Builder, Random};

const ROOT: &[&str] = &[
    "c|__clone3|clone3.S|81",
    "c|start_thread|pthread_create.c|447",
    "u|std::execute_native_thread_routine(void*)|thread.cc|82",
    "i|std::thread::_State_impl<std::thread::_Invoker<std::tuple<kv::Worker::run(int)::{lambda()#1}>>>::_M_run()|std_thread.h|244",
];

const SERVE: &[&str] = &[
    "u|kv::Worker::event_loop()|src/worker.cc|118",
    "u|kv::Connection::on_readable(kv::IoBuffer&)|src/connection.cc|203",
];

const SYSCALL: &[&str] =
    &["k|entry_SYSCALL_64_after_hwframe", "k|do_syscall_64|arch/x86/entry/syscall_64.c|94"];

/// Leaf stacks below [`SERVE`] with their weights.
const REQUESTS: &[(u64, &[&str])] = &[
    (90, &["u|kv::protocol::Parser::parse(std::span<const std::byte>)|src/parser.cc|77"]),
    (
        60,
        &[
            "u|kv::protocol::Parser::parse(std::span<const std::byte>)|src/parser.cc|91",
            "i|kv::protocol::read_varint<unsigned long>(std::byte const*&)|src/varint.h|34",
        ],
    ),
    (
        210,
        &[
            "u|kv::Store::get(std::string_view) const|src/store.cc|151",
            "i|kv::HashIndex<kv::Slot, kv::FastHash>::find(unsigned long) const|src/hash_index.h|88",
            "i|std::vector<kv::Slot, std::allocator<kv::Slot>>::operator[](unsigned long) const|stl_vector.h|1126",
        ],
    ),
    (
        150,
        &[
            "u|kv::Store::get(std::string_view) const|src/store.cc|149",
            "i|kv::FastHash::operator()(std::string_view) const|src/fast_hash.h|52",
        ],
    ),
    (
        85,
        &[
            "u|kv::Store::get(std::string_view) const|src/store.cc|160",
            "c|__memcmp_avx2_movbe|memcmp-avx2-movbe.S|310",
        ],
    ),
    (
        70,
        &[
            "u|kv::Store::put(std::string_view, kv::Value&&)|src/store.cc|212",
            "u|kv::Wal::append(kv::Record const&)|src/wal.cc|97",
            "z|ZSTD_compressBlock_doubleFast|zstd_double_fast.c|241",
        ],
    ),
    (
        55,
        &[
            "u|kv::Store::put(std::string_view, kv::Value&&)|src/store.cc|215",
            "c|malloc|malloc.c|3322",
            "c|_int_malloc|malloc.c|4061",
        ],
    ),
    (
        28,
        &[
            "u|kv::Store::put(std::string_view, kv::Value&&)|src/store.cc|231",
            "u|std::map<std::string, std::shared_ptr<kv::Segment>, std::less<void>>::try_emplace<std::string const&>(std::string const&)|stl_map.h|721",
            "i|std::_Rb_tree<std::string, std::pair<std::string const, std::shared_ptr<kv::Segment>>>::_M_lower_bound(std::string const&)|stl_tree.h|1903",
        ],
    ),
    (30, &["u|kv::Metrics::record(kv::Latency)|src/metrics.cc|40", "v|__vdso_clock_gettime"]),
    (12, &["?|0x7f31c8a41f20", "?|0x7f31c8a40be4"]),
];

const SYSCALLS: &[(u64, &[&str])] = &[
    (
        120,
        &[
            "k|__x64_sys_sendto|net/socket.c|2209",
            "k|tcp_sendmsg_locked|net/ipv4/tcp.c|1290",
            "k|tcp_write_xmit|net/ipv4/tcp_output.c|2866",
            "k|__tcp_transmit_skb|net/ipv4/tcp_output.c|1462",
            "k|ip_finish_output2|net/ipv4/ip_output.c|235",
        ],
    ),
    (
        75,
        &[
            "k|__x64_sys_recvfrom|net/socket.c|2268",
            "k|tcp_recvmsg|net/ipv4/tcp.c|2831",
            "k|skb_copy_datagram_iter|net/core/datagram.c|545",
            "k|rep_movs_alternative|arch/x86/lib/copy_user_64.S|56",
        ],
    ),
    (
        64,
        &[
            "k|__x64_sys_epoll_wait|fs/eventpoll.c|2380",
            "k|ep_poll|fs/eventpoll.c|1985",
            "k|schedule",
        ],
    ),
    (
        44,
        &[
            "k|__x64_sys_fdatasync|fs/sync.c|238",
            "m|xfs_file_fsync|fs/xfs/xfs_file.c|142",
            "m|xfs_log_force_seq|fs/xfs/xfs_log.c|3382",
        ],
    ),
];

const SCRIPTS: &[(u64, &[&str])] = &[
    (80, &["j|LazyCompile:*renderRow dashboard.js:210"]),
    (45, &["j|LazyCompile:*renderRow dashboard.js:210", "j|LazyCompile:*escapeHtml util.js:12"]),
    (
        30,
        &[
            "j|LazyCompile:~tick dashboard.js:34",
            "n|v8::internal::Runtime_StringSplit(int, unsigned long*, v8::internal::Isolate*)",
        ],
    ),
    (
        22,
        &[
            "n|v8::internal::MarkCompactCollector::CollectGarbage()",
            "n|v8::internal::Sweeper::SweepSpace(v8::internal::AllocationSpace)",
        ],
    ),
];

/// Depth of the recursion of the compaction.
const MERGE_DEPTH: usize = 38;

struct Load {
    builder: Builder,
    random: Random,
    cycles: EventId,
    clock: EventId,
}

impl Load {
    /// Adds about `weight` samples of a stack to both clocks, a little different each time.
    fn add(&mut self, thread: ThreadId, frames: &[&[&str]], weight: u64) {
        let node = self.builder.stack(frames.iter().flat_map(|part| part.iter().copied()));
        let samples = weight + self.random.below(weight / 2 + 1);
        let period = samples * (2_900_000 + self.random.below(300_000));
        self.builder.add(self.cycles, thread, node, samples, period);
        let ticks = samples / 4 + 1;
        self.builder.add(self.clock, thread, node, ticks, ticks * 1_000_000);
    }

    fn worker(&mut self, thread: ThreadId) {
        for (weight, leaf) in REQUESTS {
            self.add(thread, &[ROOT, SERVE, leaf], *weight);
        }
        let flush = &["u|kv::Connection::flush()|src/connection.cc|288", "c|__send|send.c|28"];
        for (weight, leaf) in SYSCALLS {
            self.add(thread, &[ROOT, SERVE, flush, SYSCALL, leaf], *weight);
        }
    }

    fn compactor(&mut self, thread: ThreadId) {
        let compact = &["u|kv::Compactor::run()|src/compactor.cc|61"];
        let mut merge = Vec::new();
        for depth in 0..MERGE_DEPTH {
            merge.push("u|kv::Compactor::merge(kv::Range, unsigned int)|src/compactor.cc|133");
            let leaf: &[&str] = match depth % 3 {
                0 => {
                    &["i|kv::Comparator::less(kv::Key const&, kv::Key const&)|src/comparator.h|19"]
                }
                1 => &["z|ZSTD_decompressSequences_bmi2|zstd_decompress_block.c|1402"],
                _ => &["c|__memmove_avx_unaligned_erms|memmove-vec-unaligned-erms.S|533"],
            };
            self.add(thread, &[ROOT, compact, &merge, leaf], 4 + depth as u64 / 6);
        }
    }

    /// Many small stacks, as every real profile has.
    fn noise(&mut self, thread: ThreadId) {
        for i in 0..160u64 {
            let step = self.random.below(24);
            let names: Vec<String> = (0..3 + self.random.below(9))
                .map(|d| {
                    format!(
                        "u|kv::detail::Task<{step}>::step{}(kv::Context&)|src/task.h|{}",
                        (i * 7 + d) % 40,
                        30 + d * 9 + i % 3
                    )
                })
                .collect();
            let frames: Vec<&str> = names.iter().map(String::as_str).collect();
            self.add(thread, &[ROOT, SERVE, &frames], 1);
        }
    }

    fn switches(&mut self, event: EventId, thread: ThreadId) {
        let wait = ["u|kv::Worker::event_loop()|src/worker.cc|112", "c|epoll_wait|epoll_wait.c|30"];
        let leaf: &[&str] = &["k|schedule", "k|__schedule|kernel/sched/core.c|6748"];
        let node = self
            .builder
            .stack([ROOT, &wait, SYSCALL, leaf].into_iter().flat_map(|part| part.iter().copied()));
        self.builder.add(event, thread, node, 410, 410);
    }
}

/// A small server's samples and switches, with all features of the page.
pub(crate) fn profile() -> Profile {
    let mut builder = Builder::default();
    let [cycles, clock] = ["cycles:P", "cpu-clock"].map(|name| builder.event(name));
    let switch = builder.event("sched:sched_switch");
    let mut load = Load { builder, random: Random(7), cycles, clock };
    let main = load.builder.thread(4211, 4211, "kvstored");
    for i in 0..4 {
        let worker = load.builder.thread(4211, 4212 + i, &format!("kv-worker-{i}"));
        load.worker(worker);
        load.noise(worker);
        load.switches(switch, worker);
    }
    let compactor = load.builder.thread(4211, 4220, "kv-compactor");
    load.compactor(compactor);
    let start = &["c|_start", "c|__libc_start_main_impl|libc-start.c|360", "u|main|src/main.cc|44"];
    load.add(
        main,
        &[start, &["u|kv::Config::load(std::filesystem::path const&)|src/config.cc|31"]],
        9,
    );
    let node = load.builder.thread(5120, 5120, "node");
    for (weight, leaf) in SCRIPTS {
        load.add(node, &[&["n|_start", "n|node::Start(int, char**)"], leaf], *weight);
    }
    // The compactor runs in the middle, the scripts in the second half; main only reads its configuration.
    load.builder.spread(30_000_000_000, 16, |thread| match thread {
        _ if thread == main => (0, 20),
        _ if thread == compactor => (300, 700),
        _ if thread == node => (500, 1_000),
        _ => (0, 1_000),
    });
    let mut profile = load.builder.profile;
    mark_time_and_cgroups(&mut profile);
    describe(profile)
}

fn mark_time_and_cgroups(profile: &mut Profile) {
    let at = |ms: u64| TimestampNs(5_000_000_000 + ms * 1_000_000);
    let lost = LossWindow { from: at(12_000), to: at(12_400) };
    profile.singles.iter_mut().for_each(|singles| singles.loss_windows = vec![lost]);
    let paths = ["/system.slice/kvstored.service", "/user.slice/node.scope"];
    profile.cgroups = paths.map(|path| CgroupInfo { path: path.into(), known: true }).into();
    profile.facets =
        (0..2).map(|i| Facets { cgroup: Some(CgroupId(i)), ..Facets::default() }).collect();
    for row in &mut profile.rows {
        let is_node = profile.threads[row.thread.index()].pid.0 == 5120;
        row.facets = FacetsId(u32::from(is_node));
    }
}

fn describe(mut profile: Profile) -> Profile {
    let samples = profile.events.iter().map(|e| e.samples).sum();
    profile.events[0].lost_samples = 12;
    profile.recording = RecordingInfo {
        path: "perf.data".into(),
        size_bytes: 48_213_004,
        hostname: "db-17.example".into(),
        os_release: "6.18.0".into(),
        version: "whit 0.1.0".into(),
        arch: "x86_64".into(),
        nr_cpus: Some((16, 16)),
        cpu_desc: "AMD EPYC 7713 64-Core Processor".into(),
        cpuid: "AuthenticAMD,25,1,1".into(),
        sockets: Vec::new(),
        total_mem_kib: Some(65_842_128),
        cmdline: [
            "whit",
            "record",
            "-F",
            "997",
            "--call-graph",
            "dwarf",
            "-e",
            "cycles:P,cpu-clock",
            "-a",
            "--",
            "sleep",
            "30",
        ]
        .map(Into::into)
        .into(),
        first_sample: Some(TimestampNs(81_000_112_000)),
        last_sample: Some(TimestampNs(111_004_934_000)),
        captured_on_s: Some(1_795_270_812),
        has_callchains: true,
        ..RecordingInfo::default()
    };
    profile.losses = LossReport {
        lost_records: 57,
        lost_chunks: 3,
        lost_samples: 12,
        paused_ns: 41_000_000,
        elapsed_ns: 480_000_000_000,
        truncated_bytes: 0,
    };
    profile.ledger = Some(Ledger {
        wall_ns: 30_412_000_000,
        setup_ns: 21_400_000,
        teardown_ns: 96_000_000,
        setup_cpu_ns: 14_200_000,
        teardown_cpu_ns: 41_000_000,
        user_cpu_ns: 212_000_000,
        system_cpu_ns: 388_000_000,
        ring_bytes: 51_204_096,
        written_bytes: 48_213_004,
        writes: 741,
        write_ns: 118_000_000,
        wakeups: 1_932,
        samples,
        lost_records: 57,
        paused_ns: 41_000_000,
        elapsed_ns: 480_000_000_000,
        rings: 16,
        ring_size_bytes: 512 << 10,
        pmi: PmiLedger {
            measurement: PmiMeasurement::PerfHandlers,
            count: 121_400,
            time_ns: 243_000_000,
            longest_ns: 61_000,
            measured_ns: 30_380_000_000,
        },
        bpf: BpfLedger {
            measurement: BpfMeasurement::Statistics,
            programs: 1,
            runs: 36_420,
            run_time_ns: 2_180_000,
            timed_ns: 3_050_000_000,
        },
        ..Ledger::default()
    });
    let by_type = [
        ("MMAP2", 4_120),
        ("LOST", 3),
        ("COMM", 211),
        ("EXIT", 96),
        ("FORK", 97),
        ("SAMPLE", samples),
    ];
    profile.stats.by_type = by_type.map(|(name, count)| (name.into(), count)).into();
    profile.stats.samples_by_event = profile.events.iter().map(|e| e.samples).collect();
    let path = Path::new("/opt/kvstore/lib/libplugin.so").into();
    let binary = "libplugin.so".into();
    profile.warnings = vec![
        Warning::DisorderedSamples { samples: 12 },
        Warning::NoSymbols { binary, reason: Reason::FileMissing { path } },
    ];
    profile
}
