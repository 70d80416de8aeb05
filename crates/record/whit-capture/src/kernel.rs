//! The kernel's own address space: where its text and its modules lie.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use whit_host::roots::Roots;
use whit_sys::capability::Capability;
use whit_sys::privilege;
use whit_types::BuildId;

/// The kernel's text. With `kptr_restrict` addresses read as zero: there is no range then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelText {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Address of the reference symbol, by which readers find the relocation.
    pub reference: u64,
    /// Name of the reference symbol.
    pub reference_name: &'static str,
}

/// One loaded module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Name as `/proc/modules` has it.
    pub name: String,
    /// Where it is loaded.
    pub start: u64,
    /// Its size in memory.
    pub size_bytes: u64,
    /// Its file, or its name in brackets where that is not known.
    pub path: String,
}

/// Reads the range of the kernel's text from `/proc/kallsyms`; `None` where addresses are hidden.
///
/// It starts at `_text` (or `_stext`) and ends at `_etext`. Reading stops there: the kernel makes
/// the text of this file as it is read, and the rest would cost as much again. On x86-64, who may
/// read the addresses in `/proc/iomem` knows the size from there, and reads the first lines only.
pub fn text(roots: &Roots) -> io::Result<Option<KernelText>> {
    let file = {
        // The kernel decides at the opening whether addresses are shown.
        let _in_force = privilege::raise(&[Capability::Syslog]);
        File::open(roots.proc.join("kallsyms"))?
    };
    let size_bytes = cfg!(target_arch = "x86_64").then(|| code_bytes(roots)).flatten();
    let buffer = if size_bytes.is_some() { FIRST_LINES_BYTES } else { KALLSYMS_BUFFER_BYTES };
    text_of(BufReader::with_capacity(buffer, file), size_bytes)
}

/// The whole list of symbols, with addresses as far as the recorder may see them.
pub(crate) fn symbol_list(roots: &Roots) -> io::Result<Vec<u8>> {
    let file = {
        let _in_force = privilege::raise(&[Capability::Syslog]);
        File::open(roots.proc.join("kallsyms"))?
    };
    let mut list = Vec::new();
    file.take(LIST_MAX_BYTES).read_to_end(&mut list)?;
    Ok(list)
}

/// Whether a list of symbols says that the kernel lies where `text` says.
pub(crate) fn lists(list: impl Read, text: &KernelText) -> bool {
    let mut list = BufReader::new(list.take(LIST_MAX_BYTES));
    let end = format!(" {}\n", text.reference_name);
    let mut line = Vec::new();
    // Lines of modules name the module behind a tab; the kernel's own come first.
    while list.read_until(b'\n', &mut line).is_ok_and(|size| size > 0) && !line.contains(&b'\t') {
        if line.ends_with(end.as_bytes()) {
            return address(&line) == Some(text.reference);
        }
        line.clear();
    }
    false
}

/// Largest list of symbols that is read; with all drivers it has about 20 MiB.
const LIST_MAX_BYTES: u64 = 256 << 20;

/// Size of the kernel's code from `_text` to `_etext`, which x86-64 kernels register as a resource
/// (`setup_arch`). Without CAP_SYS_ADMIN addresses read as zero.
fn code_bytes(roots: &Roots) -> Option<u64> {
    let resources = std::fs::read_to_string(roots.proc.join("iomem")).ok()?;
    let line = resources.lines().find(|line| line.ends_with(" : Kernel code"))?;
    let (start, end) = line.split_once(" : ")?.0.trim().split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    (end > start).then(|| end - start + 1)
}

/// Where `_text` is one of the first lines.
const FIRST_LINES_BYTES: usize = 4 * 1024;

/// How much of `/proc/kallsyms` is read at once.
const KALLSYMS_BUFFER_BYTES: usize = 64 * 1024;

fn text_of(mut kallsyms: impl BufRead, size_bytes: Option<u64>) -> io::Result<Option<KernelText>> {
    let (mut text, mut stext, mut line) = (None, None, Vec::new());
    loop {
        line.clear();
        // Lines of modules name the module behind a tab; the kernel's own come first.
        if kallsyms.read_until(b'\n', &mut line)? == 0 || line.contains(&b'\t') {
            return Ok(None);
        }
        let end = if line.ends_with(b" _text\n") {
            text = text.or(address(&line));
            match text.zip(size_bytes) {
                Some((start, size)) => start.checked_add(size),
                None => continue,
            }
        } else if line.ends_with(b" _stext\n") {
            stext = stext.or(address(&line));
            continue;
        } else if line.ends_with(b" _etext\n") {
            address(&line)
        } else {
            continue;
        };
        let start = text.map(|a| (a, "_text")).or(stext.map(|a| (a, "_stext")));
        return Ok(start.zip(end).and_then(|((start, reference_name), end)| {
            let known = start != 0 && end > start;
            known.then_some(KernelText { start, end, reference: start, reference_name })
        }));
    }
}

fn address(line: &[u8]) -> Option<u64> {
    let digits = line.split(|b| *b == b' ').next()?;
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The loaded modules by address; empty where there are none or addresses are hidden.
pub fn modules(roots: &Roots, release: &str) -> Vec<Module> {
    let listed = {
        let _in_force = privilege::raise(&[Capability::Syslog]);
        std::fs::read_to_string(roots.proc.join("modules"))
    };
    let Ok(text) = listed else { return Vec::new() };
    let directory = roots.modules.join(release);
    let depends = std::fs::read_to_string(directory.join("modules.dep")).unwrap_or_default();
    let mut modules: Vec<_> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<_> = line.split_ascii_whitespace().collect();
            let (name, size) = (*words.first()?, words.get(1)?.parse().ok()?);
            let start = u64::from_str_radix(words.get(5)?.strip_prefix("0x")?, 16).ok()?;
            let path = module_file(&depends, name).map_or_else(
                || format!("[{name}]"),
                |file| directory.join(file).to_string_lossy().into_owned(),
            );
            (start != 0).then(|| Module { name: name.to_owned(), start, size_bytes: size, path })
        })
        .collect();
    modules.sort_by_key(|module| module.start);
    modules
}

/// Finds a module in `modules.dep`; file names write `-` where module names have `_`.
fn module_file<'a>(depends: &'a str, name: &str) -> Option<&'a str> {
    depends.lines().find_map(|line| {
        let file = line.split(':').next()?;
        let stem = file.rsplit('/').next()?.split(".ko").next()?;
        (stem.replace('-', "_") == name.replace('-', "_")).then_some(file)
    })
}

/// The running kernel's build id, from its notes.
pub fn build_id(roots: &Roots) -> Option<BuildId> {
    build_id_in_notes(&std::fs::read(roots.sys.join("kernel/notes")).ok()?)
}

/// A loaded module's build id.
pub fn module_build_id(roots: &Roots, name: &str) -> Option<BuildId> {
    let notes = roots.sys.join("module").join(name).join("notes/.note.gnu.build-id");
    build_id_in_notes(&std::fs::read(notes).ok()?)
}

fn build_id_in_notes(notes: &[u8]) -> Option<BuildId> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let word = |at: usize| Some(u32::from_ne_bytes(*notes.get(at..)?.first_chunk()?));
    let mut at = 0usize;
    loop {
        let (name_size, desc_size) = (word(at)? as usize, word(at + 4)? as usize);
        let name_at = at + 12;
        let desc_at = name_at.checked_add(name_size.checked_next_multiple_of(4)?)?;
        let is_gnu = notes.get(name_at..name_at.checked_add(name_size)?)? == b"GNU\0";
        if word(at + 8)? == NT_GNU_BUILD_ID && is_gnu {
            return BuildId::new(notes.get(desc_at..desc_at.checked_add(desc_size)?)?);
        }
        at = desc_at.checked_add(desc_size.checked_next_multiple_of(4)?)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_runs_from_text_to_etext() {
        let kallsyms = b"0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000001 T startup
ffffffff8220bb08 T _etext
ffffffffc0000000 t _text\t[mod]
" as &[u8];
        let text = text_of(kallsyms, None).unwrap().unwrap();
        assert_eq!((text.start, text.end), (0xffff_ffff_8100_0000, 0xffff_ffff_8220_bb08));
        assert_eq!(text.reference_name, "_text");
        assert_eq!(text_of(kallsyms, Some(0x120_bb08)).unwrap(), Some(text));
    }

    #[test]
    fn the_size_of_the_code_is_a_resource() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        assert_eq!(code_bytes(&roots), None);
        for (line, size) in [
            ("  01000000-0220bb07 : Kernel code\n", Some(0x120_bb08)),
            ("  00000000-00000000 : Kernel code\n", None),
            ("  01000000-0220bb07 : Kernel data\n", None),
        ] {
            std::fs::write(dir.path().join("iomem"), format!("00001000-9ffff : RAM\n{line}"))
                .unwrap();
            assert_eq!(code_bytes(&roots), size, "{line}");
        }
    }

    #[test]
    fn hidden_addresses_give_no_range() {
        let hidden = b"0000000000000000 T _text\n0000000000000000 T _etext\n" as &[u8];
        assert_eq!(text_of(hidden, None).unwrap(), None);
        assert_eq!(text_of(hidden, Some(0x1000)).unwrap(), None);
        assert_eq!(text_of(b"" as &[u8], None).unwrap(), None);
    }

    #[test]
    fn modules_are_found_with_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().join("proc"),
            sys: dir.path().join("sys"),
            modules: dir.path().join("modules"),
        };
        std::fs::create_dir_all(roots.modules.join("6.1")).unwrap();
        std::fs::create_dir_all(&roots.proc).unwrap();
        std::fs::write(roots.modules.join("6.1/modules.dep"), "kernel/sound/snd-pcm.ko.xz: a b\n")
            .unwrap();
        std::fs::write(
            roots.proc.join("modules"),
            "snd_pcm 100 1 - Live 0xffffffffc0002000\n\
             xfs 4096 0 - Live 0xffffffffc0001000 (O)\n\
             hidden 1 0 - Live 0x0000000000000000\n",
        )
        .unwrap();
        let modules = modules(&roots, "6.1");
        let names: Vec<_> = modules.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["xfs", "snd_pcm"]);
        assert_eq!(modules[0].path, "[xfs]");
        assert!(modules[1].path.ends_with("6.1/kernel/sound/snd-pcm.ko.xz"));
    }

    #[test]
    fn a_list_is_of_this_start_where_the_kernel_lies_as_it_does_now() {
        let text =
            KernelText { start: 0x1000, end: 0x2000, reference: 0x1000, reference_name: "_text" };
        let list = |address: u64| {
            format!("0 A first\n{address:x} T x_text\n{address:x} T _text\n9 t f\t[m]\n")
        };
        assert!(lists(list(0x1000).as_bytes(), &text));
        assert!(!lists(list(0x3000).as_bytes(), &text));
        assert!(!lists(&b"1000 T _text\t[m]\n1000 T _text\n"[..], &text));
        assert!(!lists(&b""[..], &text));
    }

    #[test]
    fn build_ids_are_found_among_other_notes() {
        let mut notes = Vec::new();
        for (name, kind, desc) in [(&b"Xen\0"[..], 6u32, &[1u8, 2, 3][..]), (b"GNU\0", 3, &[9; 20])]
        {
            notes.extend((name.len() as u32).to_ne_bytes());
            notes.extend((desc.len() as u32).to_ne_bytes());
            notes.extend(kind.to_ne_bytes());
            notes.extend(name);
            notes.extend(desc);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_in_notes(&notes).unwrap().as_bytes(), [9; 20]);
        for cut in 0..notes.len() {
            assert_eq!(build_id_in_notes(&notes[..cut]), None, "{cut}");
        }
        let lying = [u32::MAX.to_ne_bytes(); 3].concat();
        assert_eq!(build_id_in_notes(&lying), None);
    }
}
