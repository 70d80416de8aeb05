//! Mappings of processes, and both offline unwinders over them.

use std::collections::HashMap;
use std::path::Path;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use whit_elf::{ElfImage, own_vdso};
use whit_perfdata::record::{Mmap, RawRecord, SideBand};
use whit_types::{Arch, Avma, FileOffset, Svma, TimestampNs};
use whit_unwind::{
    AddressSpace, Bias, Bytes, ModuleSections, ModuleUnwindInfo, StackDump, StopReason, Unwinder,
};

use super::FRAMES_MAX;
use super::agreement::Chain;
use super::pairs::Pair;

/// A mapped binary, kept for all samples.
#[derive(Clone)]
struct Binary {
    image: ElfImage,
    info: ModuleUnwindInfo,
    sections: ModuleSections,
}

/// Executable memory.
#[derive(Clone)]
struct Mapped {
    start: u64,
    end: u64,
    offset: u64,
    path: Vec<u8>,
    since: TimestampNs,
}

/// Unwinders of a process's mappings, made when they are needed.
struct Prepared {
    space: AddressSpace,
    framehop: UnwinderX86_64<Bytes>,
    cache: CacheX86_64,
}

#[derive(Default)]
struct Process {
    mapped: Vec<Mapped>,
    prepared: Option<Prepared>,
}

/// All processes.
#[derive(Default)]
pub(super) struct Memory {
    processes: HashMap<i32, Process>,
    binaries: HashMap<Vec<u8>, Option<Binary>>,
    unwinder: Option<Unwinder>,
}

impl Memory {
    /// Takes in a record of any kind. Gives the process that runs another program from here on.
    pub(super) fn record(&mut self, bytes: &[u8], time: TimestampNs) -> Option<i32> {
        match RawRecord::split(bytes).and_then(|(record, _)| SideBand::parse(record)) {
            Some(SideBand::Mmap(map)) if map.executable && map.pid.0 > 0 => {
                self.processes.entry(map.pid.0).or_default().map(&map, time);
            }
            Some(SideBand::Comm { pid, exec: true, .. }) => {
                let process = self.processes.entry(pid.0).or_default();
                // Records of one CPU may come before older ones of another.
                process.mapped.retain(|mapped| mapped.since >= time);
                process.prepared = None;
                return Some(pid.0);
            }
            Some(SideBand::Fork(task)) if task.pid != task.parent_pid => {
                let parent = self.processes.get(&task.parent_pid.0);
                let mapped = parent.map(|parent| parent.mapped.clone()).unwrap_or_default();
                self.processes.insert(task.pid.0, Process { mapped, prepared: None });
            }
            _ => {}
        }
        None
    }

    /// The chains by framehop and by whit's own unwinder; `None` without registers.
    pub(super) fn unwind(&mut self, pair: &Pair) -> Option<(Chain, Chain)> {
        let process = self.processes.entry(pair.pid).or_default();
        let prepared =
            process.prepared.get_or_insert_with(|| prepare(&process.mapped, &mut self.binaries));
        let sp = pair.regs.sp()?;
        let stack = StackDump { sp: Avma(sp), bytes: &pair.stack, rest: None };
        let mut frames = Vec::new();
        let unwinder = self.unwinder.get_or_insert_with(Unwinder::new);
        let stop = unwinder.unwind(&prepared.space, &pair.regs, stack, FRAMES_MAX + 1, &mut frames);
        let frames = frames.iter().map(|frame| frame.address.0).collect();
        let offline = Chain { frames, is_complete: stop == StopReason::EndOfStack };
        Some((prepared.by_framehop(pair, sp)?, offline))
    }
}

impl Process {
    fn map(&mut self, map: &Mmap<'_>, since: TimestampNs) {
        let (start, offset) = (map.start.0, map.page_offset);
        let end = start.saturating_add(map.len_bytes);
        self.mapped.retain(|other| other.end <= start || end <= other.start);
        self.mapped.push(Mapped { start, end, offset, path: map.path.to_vec(), since });
        self.prepared = None;
    }
}

impl Prepared {
    fn by_framehop(&mut self, pair: &Pair, sp: u64) -> Option<Chain> {
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(|_| ())?;
            let word = pair.stack.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
            Ok(u64::from_le_bytes(*word))
        };
        let (ip, fp) = (pair.regs.ip()?, pair.regs.fp()?);
        let regs = UnwindRegsX86_64::new(ip, sp, fp);
        let mut frames = self.framehop.iter_frames(ip, regs, &mut self.cache, &mut read);
        let mut chain = Chain::default();
        while chain.frames.len() <= FRAMES_MAX {
            match frames.next() {
                Ok(Some(frame)) => chain.frames.push(frame.address()),
                Ok(None) => {
                    chain.is_complete = true;
                    break;
                }
                Err(_) => break,
            }
        }
        Some(chain)
    }
}

fn prepare(mapped: &[Mapped], binaries: &mut HashMap<Vec<u8>, Option<Binary>>) -> Prepared {
    let mut space = AddressSpace::new();
    let mut framehop = UnwinderX86_64::new();
    for map in mapped {
        let binary = binaries.entry(map.path.clone()).or_insert_with(|| open(&map.path));
        let range = map.start..map.end;
        let placed = binary.as_ref().and_then(|binary| {
            let svma =
                binary.image.svma_of_mapping(FileOffset(map.offset), range.end - range.start)?;
            Some((binary, Bias::between(Avma(range.start), svma)))
        });
        let (bias, info) = match placed {
            Some((binary, bias)) => {
                let name = String::from_utf8_lossy(&map.path).into_owned();
                let sections = sections(&binary.sections, &binary.image);
                framehop.add_module(Module::new(name, range.clone(), bias.0, sections));
                (bias, binary.info.clone())
            }
            None => (Bias(0), ModuleUnwindInfo::none(Arch::X86_64)),
        };
        space.map(Avma(range.start)..Avma(range.end), bias, info);
    }
    Prepared { space, framehop, cache: CacheX86_64::new() }
}

/// The sections as framehop wants them. It asks for the end of `.text` only where there is an index of
/// functions, which ELF files do not have.
fn sections(sections: &ModuleSections, image: &ElfImage) -> ExplicitModuleSectionInfo<Bytes> {
    let range = |start: Svma, bytes: &Bytes| start.0..start.0 + bytes.len() as u64;
    let (eh_frame, hdr) = (sections.eh_frame.as_ref(), sections.eh_frame_hdr.as_ref());
    let code = image.segments().iter().filter(|segment| segment.executable);
    let code_end = code.map(|s| s.svma.0.saturating_add(s.memory_size_bytes)).max().unwrap_or(0);
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: sections.text.map(|start| start.0..code_end.max(start.0)),
        got_svma: sections.got.map(|start| start.0..start.0),
        eh_frame_svma: eh_frame.map(|section| range(section.start, &section.bytes)),
        eh_frame: eh_frame.map(|section| section.bytes.clone()),
        eh_frame_hdr_svma: hdr.map(|section| range(section.start, &section.bytes)),
        eh_frame_hdr: hdr.map(|section| section.bytes.clone()),
        debug_frame: sections.debug_frame.clone(),
        ..ExplicitModuleSectionInfo::default()
    }
}

fn open(path: &[u8]) -> Option<Binary> {
    use std::os::unix::ffi::OsStrExt;
    let file = Path::new(std::ffi::OsStr::from_bytes(path));
    let image = match path {
        b"[vdso]" => ElfImage::from_bytes(file, own_vdso().ok()?).ok()?,
        _ => ElfImage::open(file).ok()?,
    };
    let sections = image.unwind_sections()?;
    Some(Binary { info: ModuleUnwindInfo::new(sections.clone()), image, sections })
}
