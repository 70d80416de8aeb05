//! Stacks of real programs, dumped by perf.

use std::collections::BTreeMap;
use std::path::Path;

use whit_bpf_engine::unwind_tables::TableStore;
use whit_elf::{ElfImage, own_vdso};
use whit_perfdata::event_table::EventTable;
use whit_perfdata::reader::Recording;
use whit_perfdata::record::{RawRecord, SideBand, record_type};
use whit_perfdata::stream::StreamReader;
use whit_testing::{check, run};
use whit_types::{Arch, Avma, FileOffset};
use whit_unwind::table::UnwindTable;
use whit_unwind::{
    AddressSpace, Bias, ModuleUnwindInfo, StackDump, StopReason, Unwinder, UserRegs,
};

use crate::host::{END, Host, HostMapping, HostStack, Image, REASONS, TABLE_NONE};

/// Frames that must be the same.
const LEAST_EQUAL: f64 = 0.99;
/// Frames of a chain, on both sides.
const FRAMES_MAX: usize = 127;
/// Fewest chains that say something.
const CHAINS_MIN: usize = 100;

/// A recording with its modules, in both forms.
struct Loaded {
    space: AddressSpace,
    image: Image,
    stacks: Vec<(HostStack, UserRegs)>,
}

/// Every binary once.
#[derive(Default)]
struct Modules {
    known: BTreeMap<Vec<u8>, Option<(ElfImage, ModuleUnwindInfo, u32)>>,
}

impl Modules {
    fn get(&mut self, path: &[u8], image: &mut Image) -> Option<(ElfImage, ModuleUnwindInfo, u32)> {
        let open = || {
            use std::os::unix::ffi::OsStrExt;
            let path = Path::new(std::ffi::OsStr::from_bytes(path));
            let elf = match path.to_str() {
                Some("[vdso]") => ElfImage::from_bytes(path, own_vdso().ok()?).ok()?,
                _ => ElfImage::open(path).ok()?,
            };
            let table: Option<UnwindTable> =
                TableStore::default().table(&elf, None).ok().map(|(table, _)| table);
            let info = ModuleUnwindInfo::new(elf.unwind_sections()?);
            let number = table.map_or(TABLE_NONE, |table| image.add(&table));
            Some((elf, info, number))
        };
        self.known.entry(path.to_vec()).or_insert_with(open).clone()
    }
}

fn load(path: &Path) -> Loaded {
    let recording = Recording::open(path).unwrap();
    let events = EventTable::new(&recording.events);
    let mut loaded =
        Loaded { space: AddressSpace::new(), image: Image::default(), stacks: Vec::new() };
    let (mut modules, mut mappings) = (Modules::default(), BTreeMap::new());
    for stream in &recording.streams {
        let (mut reader, mut block) = (StreamReader::new(stream.clone()), Vec::new());
        while reader.next_block(&mut block).unwrap().is_some() {
            let mut rest = &block[..];
            while let Some((record, tail)) = RawRecord::split(rest) {
                rest = tail;
                if record.header.kind == record_type::SAMPLE {
                    take_sample(&events, record.body, &mut loaded.stacks);
                } else if let Some(SideBand::Mmap(map)) = SideBand::parse(record)
                    && map.executable
                    && map.pid.0 > 0
                {
                    mappings
                        .insert(map.start.0, (map.len_bytes, map.page_offset, map.path.to_vec()));
                }
            }
        }
    }
    for (start, (size, offset, path)) in mappings {
        let module = modules.get(&path, &mut loaded.image);
        let placed = module.and_then(|(elf, info, table)| {
            let svma = elf.svma_of_mapping(FileOffset(offset), size)?;
            Some((Bias::between(Avma(start), svma), info, table))
        });
        let (bias, info, table) =
            placed.unwrap_or((Bias(0), ModuleUnwindInfo::none(Arch::X86_64), TABLE_NONE));
        loaded.space.map(Avma(start)..Avma(start + size), bias, info);
        loaded.image.mappings.push(HostMapping { start, end: start + size, bias: bias.0, table });
    }
    loaded
}

fn take_sample(events: &EventTable, body: &[u8], out: &mut Vec<(HostStack, UserRegs)>) {
    let event = events.event_of_sample(body).unwrap();
    let sample = events.layout(event).unwrap().parse(body).unwrap();
    let Some(regs) = sample.user_regs.filter(|regs| regs.abi == 2) else { return };
    // The kernel's order: ax, bx, …
    let rbx = regs.values().nth((regs.mask & 1) as usize).filter(|_| regs.mask & 2 != 0);
    let regs = UserRegs::from_perf(Arch::X86_64, regs.mask, regs.values());
    let (Some(ip), Some(sp), Some(fp)) = (regs.ip(), regs.sp(), regs.fp()) else { return };
    let bytes = sample.user_stack.to_vec();
    out.push((
        HostStack { ip, sp, fp, extra: rbx.unwrap_or(0), bytes, ..HostStack::default() },
        regs,
    ));
}

/// Sums over all chains of a recording.
#[derive(Default, Debug)]
struct Agreement {
    chains: usize,
    frames: usize,
    equal: usize,
    complete: usize,
    reasons: BTreeMap<u64, usize>,
    theirs: BTreeMap<String, usize>,
}

fn compare(host: &Host, loaded: &Loaded) -> Agreement {
    let stacks: Vec<_> = loaded.stacks.iter().map(|(stack, _)| stack.clone()).collect();
    let ours = host.walk(&loaded.image, &stacks);
    let (mut unwinder, mut agreement) = (Unwinder::new(), Agreement::default());
    for (chain, (stack, regs)) in ours.iter().zip(&loaded.stacks) {
        let (mut frames, dump) =
            (Vec::new(), StackDump { sp: Avma(stack.sp), bytes: &stack.bytes, rest: None });
        let stop = unwinder.unwind(&loaded.space, regs, dump, FRAMES_MAX, &mut frames);
        let same = chain.frames.iter().zip(&frames).take_while(|(a, b)| **a == b.address.0);
        agreement.chains += 1;
        agreement.frames += frames.len().max(chain.frames.len());
        agreement.equal += same.count();
        agreement.complete += usize::from(stop == StopReason::EndOfStack && chain.reason == END);
        assert!((1..REASONS).contains(&chain.reason), "{chain:?}");
        *agreement.reasons.entry(chain.reason).or_default() += 1;
        *agreement.theirs.entry(stop.to_string()).or_default() += 1;
    }
    agreement
}

/// Records a workload and compares all chains.
fn compare_with(workload: &str, arguments: &[&str]) {
    compare_complete(workload, arguments, 0.0);
}

/// The same; so many of the chains reach the outermost frame, by both walks.
fn compare_complete(workload: &str, arguments: &[&str], least_complete: f64) {
    check(&format!("walk of recorded stacks of {workload}"), || {
        let program = whit_testing::workload(workload)?;
        let host = Host::compile()?;
        let directory = tempfile::tempdir().expect("a folder");
        let data = directory.path().join("perf.data");
        let mut perf = run::perf()?;
        perf.args(["record", "-q", "-e", "cpu-clock:u", "-c", "250000", "-N", "-B"]);
        perf.args(["--call-graph", "dwarf,16384", "-o"]).arg(&data).arg(program).args(arguments);
        run::record(&mut perf)?;
        let agreement = compare(&host, &load(&data));
        println!("{workload}: {agreement:?}");
        let share = agreement.equal as f64 / agreement.frames as f64;
        assert!(agreement.chains >= CHAINS_MIN, "{workload}: {agreement:?}");
        assert!(share >= LEAST_EQUAL, "{workload}: {:.2} %: {agreement:?}", 100.0 * share);
        assert!(agreement.complete > 0, "{workload}: {agreement:?}");
        let complete = agreement.complete as f64 / agreement.chains as f64;
        assert!(complete >= least_complete, "{workload}: {complete}: {agreement:?}");
        Ok(())
    });
}

#[test]
fn deep_cpp() {
    compare_with("deep", &["--iterations", "20000"]);
}

#[test]
fn static_cpp() {
    compare_with("deep-static", &["--iterations", "20000"]);
}

#[test]
fn rust() {
    compare_with("deep-rs", &["--iterations", "20000"]);
}

#[test]
fn go() {
    compare_with("deep-go", &["--iterations", "20000"]);
}

#[test]
fn signals_linkage_tables_vdso_and_late_libraries() {
    compare_with("corners", &[]);
}

/// All but those at the very beginning of a process, where the linker has no frames yet.
#[test]
fn calls_that_the_dynamic_linker_binds() {
    compare_complete("lazy", &["--iterations", "40"], 0.99);
}
