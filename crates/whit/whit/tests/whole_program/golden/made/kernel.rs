//! Records of kernels that are rare: guests, BPF programs, AUX data, losses.

use super::{Made, at, sample};
use crate::golden::encode::{Attr, Id, Kernel, Recording, field, kind, marker, misc, record};

const TEXT: u64 = 0xffff_ffff_8100_0000;

fn plain_attr() -> Attr {
    Attr::software(0, field::IP | field::TID | field::TIME | field::CPU | field::IDENTIFIER)
}

fn plain_sample(mode: u16, ip: u64, id: Id) -> Vec<u8> {
    sample(mode, |b| {
        b.u64(id.id).u64(ip).i32(id.pid).i32(id.tid).u64(id.time).u32(id.cpu).u32(0);
    })
}

/// `perf kvm --host --guest record`: what ran inside a guest is not the host's code.
pub(super) fn guest() -> Made {
    let mut attr = plain_attr();
    attr.sample_type |= field::CALLCHAIN;
    let kernel = Kernel::of(&attr);
    let id = |time| at(7300, 7301, time);
    let mut data = kernel.kernel_map();
    data.extend(kernel.comm("qemu", true, at(7300, 7300, 900_000)));
    data.extend(kernel.comm("vcpu0", false, id(1_000_000)));
    let mut add = |mode, time, chain: &[u64]| {
        data.extend(sample(mode, |b| {
            b.u64(11).u64(chain[1]).i32(7300).i32(7301).u64(time).u32(1).u32(0);
            b.u64(chain.len() as u64).words(chain);
        }));
    };
    let in_guest = TEXT + 0x2010;
    add(misc::GUEST_KERNEL, 2_000_000, &[marker::GUEST_KERNEL, in_guest, TEXT + 0x1020]);
    add(misc::GUEST_USER, 2_000_100, &[marker::GUEST_USER, 0x40_1000]);
    add(misc::KERNEL, 2_000_200, &[marker::KERNEL, in_guest]);
    let events = vec![(attr, vec![11], "cycles:GH")];
    Made::file("guest", Recording::new(events, data).described())
}

/// BPF programs that come and go: named by the recording itself.
pub(super) fn ksymbols() -> Made {
    let attr = plain_attr();
    let kernel = Kernel::of(&attr);
    let id = at(7400, 7400, 1_000_000);
    let program = 0xffff_ffff_c030_0100;
    let mut data = kernel.kernel_map();
    data.extend(kernel.comm("loader", true, id));
    let mut ksymbol = |flags: u16, time| {
        data.extend(kernel.record(kind::KSYMBOL, 0, Id { time, ..id }, |b| {
            b.u64(program).u32(0x80).u16(1).u16(flags).c_str("bpf_prog_6deef7357e7b4530_filter", 8);
        }));
        data.extend(kernel.record(kind::BPF_EVENT, 0, Id { time, ..id }, |b| {
            b.u16(1 + flags).u16(0).u32(42).raw(&[0x6d, 0xee, 0xf7, 0x35, 0x7e, 0x7b, 0x45, 0x30]);
        }));
    };
    ksymbol(0, 1_000_100);
    ksymbol(1, 3_000_000);
    data.extend(plain_sample(misc::KERNEL, program + 0x10, Id { time: 2_000_000, ..id }));
    data.extend(plain_sample(misc::KERNEL, program + 0x7f, Id { time: 2_000_100, ..id }));
    data.extend(plain_sample(misc::KERNEL, TEXT + 0x1008, Id { time: 2_000_200, ..id }));
    // Behind the program, where no symbol and no mapping lies.
    data.extend(plain_sample(misc::KERNEL, program + 0x80, Id { time: 2_000_300, ..id }));
    let events = vec![(attr, vec![11], "cycles")];
    Made::file("bpf-programs", Recording::new(events, data).described())
}

/// Intel PT: bytes follow its records that are none, though these look like some.
pub(super) fn auxtrace() -> Made {
    let attr = plain_attr();
    let kernel = Kernel::of(&attr);
    let id = at(7500, 7500, 1_000_000);
    let mut data = record(kind::AUXTRACE_INFO, 0, |b| {
        b.u32(1).u32(0).words(&[8, 0, 0]);
    });
    data.extend(kernel.comm("traced", true, id));
    let decoy = plain_sample(misc::USER, 0xdead, id);
    for (offset, payload) in [(0u64, decoy.repeat(40)), (2880, vec![0; 64])] {
        data.extend(kernel.record(kind::AUX, 0, Id { time: 1_500_000, ..id }, |b| {
            b.words(&[offset, payload.len() as u64, 0]);
        }));
        data.extend(record(kind::AUXTRACE, 0, |b| {
            b.words(&[payload.len() as u64, offset, 0]).u32(0).u32(7500).u32(1).u32(0);
        }));
        data.extend(payload);
        data.extend(plain_sample(misc::USER, 0x1000, Id { time: 2_000_000 + offset, ..id }));
    }
    let events = vec![(attr, vec![11], "intel_pt//")];
    Made::file("auxtrace", Recording::new(events, data).described())
}

/// Full rings: the numbers of lost records, of lost samples by event, and the length of the loss.
pub(super) fn losses() -> Made {
    let clock = plain_attr();
    let mut faults = plain_attr();
    faults.config = 2;
    let kernel = Kernel::of(&clock);
    let id = at(7600, 7600, 1_000_000);
    let mut data = kernel.comm("busy", true, id);
    data.extend(plain_sample(misc::USER, 0x1000, Id { time: 1_000_000, ..id }));
    data.extend(kernel.record(kind::LOST, 0, Id { time: 1_400_000, ..id }, |b| {
        b.u64(11).u64(123);
    }));
    data.extend(plain_sample(misc::USER, 0x1008, Id { time: 1_500_000, ..id }));
    data.extend(kernel.record(kind::THROTTLE, 0, Id { time: 1_600_000, ..id }, |b| {
        b.words(&[1_600_000, 11, 11]);
    }));
    data.extend(kernel.record(kind::UNTHROTTLE, 0, Id { time: 1_700_000, ..id }, |b| {
        b.words(&[1_700_000, 11, 11]);
    }));
    data.extend(kernel.record(kind::LOST_SAMPLES, 0, Id { time: 2_000_000, id: 12, ..id }, |b| {
        b.u64(7);
    }));
    data.extend(plain_sample(misc::USER, 0x2000, Id { time: 2_000_000, id: 12, ..id }));
    let events = vec![(clock, vec![11], "cpu-clock"), (faults, vec![12], "page-faults")];
    Made::file("losses", Recording::new(events, data).described())
}

/// Samples that cannot be used: of an event that nobody announced, and shorter than its fields; and a
/// sideband record that is shorter than its fields.
pub(super) fn orphans() -> Made {
    let clock = plain_attr();
    // Software events share samples with other recorders: an unknown id would be of such an event.
    let cycles = Attr { kind: 0, ..clock.clone() };
    let kernel = Kernel::of(&clock);
    let id = at(7650, 7650, 1_000_000);
    let mut data = kernel.comm("orphans", true, id);
    data.extend(plain_sample(misc::USER, 0x1000, id));
    data.extend(plain_sample(misc::USER, 0x2000, Id { id: 99, ..id }));
    data.extend(sample(misc::USER, |b| {
        b.words(&[11, 0x3000]);
    }));
    data.extend(record(kind::MMAP2, misc::USER, |b| {
        b.words(&[1, 2, 3]);
    }));
    data.extend(plain_sample(misc::USER, 0x4000, Id { id: 12, ..id }));
    let events = vec![(clock, vec![11], "cpu-clock"), (cycles, vec![12], "cycles")];
    Made::file("orphans", Recording::new(events, data).described())
}

/// Records of every other type.
pub(super) fn rare_records() -> Made {
    let attr = plain_attr();
    let kernel = Kernel::of(&attr);
    let id = at(7700, 7700, 1_000_000);
    let mut data = kernel.comm("rare", true, id);
    let mut add = |kind, misc, fill: &dyn Fn(&mut crate::golden::encode::Bytes)| {
        data.extend(kernel.record(kind, misc, id, fill));
    };
    add(kind::READ, 0, &|b| {
        b.i32(7700).i32(7700).u64(1000);
    });
    add(kind::ITRACE_START, 0, &|b| {
        b.i32(7700).i32(7700);
    });
    add(kind::SWITCH, misc::SWITCH_OUT, &|_| {});
    add(kind::SWITCH, 0, &|_| {});
    add(kind::SWITCH_CPU_WIDE, misc::SWITCH_OUT | misc::SWITCH_OUT_PREEMPT, &|b| {
        b.i32(0).i32(0);
    });
    add(kind::NAMESPACES, 0, &|b| {
        b.i32(7700).i32(7700).u64(1).words(&[4, 4_026_531_840]);
    });
    add(kind::CGROUP, 0, &|b| {
        b.u64(77).c_str("/system.slice", 8);
    });
    add(kind::TEXT_POKE, 0, &|b| {
        b.u64(TEXT).u16(2).u16(2).raw(&[0x66, 0x90, 0xeb, 0x02]);
    });
    data.extend(plain_sample(misc::USER, 0x1000, Id { time: 2_000_000, ..id }));
    data.extend(record(kind::FINISHED_ROUND, 0, |_| {}));
    data.extend(record(kind::FINISHED_INIT, 0, |_| {}));
    let events = vec![(attr, vec![11], "cycles")];
    Made::file("rare-records", Recording::new(events, data).described())
}

/// A sample with every field that there is, and one of a second event with fewer values in it.
pub(super) fn every_field() -> Made {
    let mut attr = Attr::software(
        0,
        field::IP
            | field::TID
            | field::TIME
            | field::ADDR
            | field::READ
            | field::CALLCHAIN
            | field::ID
            | field::CPU
            | field::PERIOD
            | field::STREAM_ID
            | field::RAW
            | field::BRANCH_STACK
            | field::REGS_USER
            | field::STACK_USER
            | field::DATA_SRC
            | field::IDENTIFIER
            | field::TRANSACTION
            | field::REGS_INTR
            | field::PHYS_ADDR
            | field::AUX
            | field::CGROUP
            | field::DATA_PAGE_SIZE
            | field::CODE_PAGE_SIZE
            | field::WEIGHT_STRUCT,
    );
    // Both times, ids, group, lost.
    (attr.read_format, attr.branch_sample_type) = (0x1f, 1 << 3);
    (attr.regs_user, attr.regs_intr, attr.stack_user) = (1 << 8, 1 << 7 | 1 << 8, 16);
    let kernel = Kernel::of(&attr);
    let id = at(7800, 7800, 1_000_000);
    let mut data = kernel.comm("fields", true, id);
    for (values, stack) in [(2u64, 16u64), (1, 0)] {
        data.extend(sample(misc::USER, |b| {
            b.u64(11).u64(0x1000).i32(7800).i32(7800).u64(2_000_000 + values).u64(0xadd8);
            b.u64(11).u64(11).u32(1).u32(0).u64(777);
            b.u64(values).words(&[500, 400]);
            (0..values).for_each(|value| {
                b.words(&[100 + value, 11 + value, 0]);
            });
            b.u64(2).words(&[marker::USER, 0x1000]);
            b.u32(12).raw(b"raw of twelv");
            b.u64(1).words(&[0x10, 0x20, 1]);
            b.u64(2).u64(0x1000);
            b.u64(stack);
            if stack > 0 {
                b.words(&[0xaaaa, 0xbbbb, 8]);
            }
            b.u32(9).u16(1).u16(2).u64(0x5000).u64(3);
            b.u64(2).words(&[0x7fff_0000, 0x1000]);
            b.u64(0x1_2345_6000).u64(77).u64(4096).u64(2 << 20);
            b.u64(8).raw(b"auxbytes");
        }));
    }
    let events = vec![(attr, vec![11, 12], "mem-loads")];
    Made::file("every-field", Recording::new(events, data).described())
}
