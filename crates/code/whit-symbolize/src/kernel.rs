//! Finding the symbols of the kernel that was recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use whit_types::{Avma, BuildId, Svma};
use whit_unwind::Bias;

use crate::companion::DebugDirs;
use crate::dso::Source;
use crate::dso_spec::{DsoKind, DsoSpec};
use crate::kallsyms::{MAX_LIST_BYTES, address_in_list};
use crate::kernel_config::{KernelConfig, RunningList};
use crate::read_file::{read_limited, read_reopened};
use crate::reason::Reason;
use crate::symbol_table::SymbolTable;
use whit_elf::{ElfImage, TableKind};

/// Largest `/sys/kernel/notes` that is read.
const MAX_NOTES_BYTES: u64 = 1 << 20;

/// The symbols of the recorded kernel: those named by the user; the running kernel's, if it is the
/// same; perf's copy; an image that has the build id.
pub(crate) fn load(config: &KernelConfig, dirs: &DebugDirs) -> Source {
    if let Some(path) = &config.vmlinux {
        return from_image(path, config);
    }
    if let Some(path) = &config.kallsyms {
        return from_list(path);
    }
    let Some(recorded) = config.build_id else {
        return match &config.other_release {
            Some(release) => {
                Source::Absent(Reason::OtherRelease { release: release.as_str().into() })
            }
            None => from_running_list(config),
        };
    };
    let mut failure = Reason::OtherKernel { recorded };
    // Another start of the machine may have moved the same kernel. A list of the recorded start has its modules too.
    let mut moved = None;
    let running = running_build_id() == Some(recorded);
    let running = running.then(|| read_running_list(config)).into_iter();
    let copies = copies_of_list(dirs, recorded).into_iter();
    let copies = copies.map(read_list);
    for (list, is_running) in
        running.map(|list| (list, true)).chain(copies.map(|copy| (copy, false)))
    {
        match list.and_then(|(text, path)| placed(text, &path, config)) {
            // The list is of another moment than the recording.
            Ok((table, Bias(0))) => return table_of(table.without_bpf_programs(), Bias(0)),
            Ok((table, bias)) => moved = moved.or(Some((table, bias))),
            Err(reason) if is_running => failure = reason,
            Err(_) => {}
        }
    }
    if let Some((table, bias)) = moved {
        return table_of(table.without_modules(), bias);
    }
    let image = DsoSpec::new(DsoKind::Elf, PathBuf::from("/boot/vmlinux"));
    match dirs.open_recorded(&DsoSpec { build_id: Some(recorded), ..image }) {
        Ok(image) => from_opened_image(&image, config),
        Err(_) => Source::Absent(failure),
    }
}

fn copies_of_list(dirs: &DebugDirs, recorded: BuildId) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = dirs.cached(recorded, "kallsyms").into_iter().collect();
    if let Some(cache) = &dirs.perf_cache {
        paths.push(cache.join("[kernel.kallsyms]").join(recorded.to_string()).join("kallsyms"));
    }
    paths
}

fn from_list(path: &Path) -> Source {
    from_table(SymbolTable::from_kallsyms(path))
}

fn table_of(table: SymbolTable, bias: Bias) -> Source {
    Source::Table(Arc::new(table), bias)
}

fn read_running_list(config: &KernelConfig) -> Result<(Vec<u8>, PathBuf), Reason> {
    let path = Path::new(RunningList::PATH);
    let text = match &config.running_list {
        Some(RunningList(file)) => read_reopened(path, file, MAX_LIST_BYTES)?,
        None => read_limited(path, MAX_LIST_BYTES)?,
    };
    Ok((text, path.to_owned()))
}

fn read_list(path: PathBuf) -> Result<(Vec<u8>, PathBuf), Reason> {
    Ok((read_limited(&path, MAX_LIST_BYTES)?, path))
}

/// The symbols of a list, and how far the recorded kernel lies from them.
fn placed(
    text: Vec<u8>,
    path: &Path,
    config: &KernelConfig,
) -> Result<(SymbolTable, Bias), Reason> {
    let bias = config.reference.as_ref().and_then(|(name, actual)| {
        let listed = address_in_list(&text, name).filter(|listed| *listed != 0)?;
        Some(Bias::between(*actual, Svma(listed)))
    });
    let hidden = || Reason::KallsymsHidden { path: path.into() };
    let table = SymbolTable::parse_kallsyms(text.into()).ok_or_else(hidden)?;
    Ok((table, bias.unwrap_or_default()))
}

fn from_running_list(config: &KernelConfig) -> Source {
    let path = Path::new(RunningList::PATH);
    let table = match &config.running_list {
        Some(RunningList(file)) => SymbolTable::from_open_kallsyms(path, file),
        None => SymbolTable::from_kallsyms(path),
    };
    from_table(table.map(SymbolTable::without_bpf_programs))
}

fn from_table(table: Result<SymbolTable, Reason>) -> Source {
    match table {
        Ok(table) => Source::Table(Arc::new(table), Bias(0)),
        Err(reason) => Source::Absent(reason),
    }
}

fn from_image(path: &Path, config: &KernelConfig) -> Source {
    match ElfImage::open(path) {
        Ok(image) => from_opened_image(&image, config),
        Err(error) => Source::Absent(error.into()),
    }
}

fn from_opened_image(image: &ElfImage, config: &KernelConfig) -> Source {
    if let (Some(recorded), found) = (config.build_id, image.build_id())
        && found != Some(recorded)
    {
        let path = image.path().clone();
        return Source::Absent(Reason::BuildIdDiffers { path, recorded, found });
    }
    let table = SymbolTable::from_elf(image, image);
    if table.is_empty() {
        return Source::Absent(Reason::NoSymbols { path: image.path().clone() });
    }
    let bias = config
        .reference
        .as_ref()
        .and_then(|(name, actual)| Some(Bias::between(*actual, stated_address(image, name)?)));
    Source::Table(Arc::new(table), bias.unwrap_or_default())
}

/// The address of a symbol as the image states it. A table of symbols has one name for each address, and other symbols
/// lie where the kernel begins.
pub(crate) fn stated_address(image: &ElfImage, name: &str) -> Option<Svma> {
    let names = image.string_table(TableKind::Symtab)?;
    let mut found = None;
    image.for_each_symbol(TableKind::Symtab, |symbol| {
        let text =
            names.get(symbol.name as usize..).and_then(|text| text.strip_prefix(name.as_bytes()));
        if found.is_none() && text.is_some_and(|rest| rest.first() == Some(&0)) {
            found = Some(Svma(symbol.value));
        }
    });
    found
}

/// The address of a symbol in the running kernel's list.
pub(crate) fn running_address(config: &KernelConfig, name: &str) -> Result<Option<Avma>, Reason> {
    let (text, path) = read_running_list(config)?;
    match address_in_list(&text, name) {
        // The kernel hides its addresses so.
        Some(0) => Err(Reason::KallsymsHidden { path: path.as_path().into() }),
        found => Ok(found.map(Avma)),
    }
}

/// The build id of the running kernel, from the notes in `/sys/kernel/notes`.
pub fn running_build_id() -> Option<BuildId> {
    find_build_id(&read_limited(Path::new("/sys/kernel/notes"), MAX_NOTES_BYTES).ok()?)
}

/// ELF notes: sizes of name and contents, type, name, contents, each padded to four bytes.
fn find_build_id(mut notes: &[u8]) -> Option<BuildId> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let word = |bytes: &[u8], at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
    };
    loop {
        let (name_size, size) = (word(notes, 0)? as usize, word(notes, 4)? as usize);
        let kind = word(notes, 8)?;
        let name = notes.get(12..12usize.checked_add(name_size)?)?;
        let start = 12 + name_size.checked_next_multiple_of(4)?;
        let contents = notes.get(start..start.checked_add(size)?)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return BuildId::new(contents);
        }
        notes = notes.get(start + size.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn notes_name_the_kernel() {
        let mut notes = Vec::new();
        for (name, kind, contents) in
            [(&b"Xen\0"[..], 6u32, &b"abcde"[..]), (b"GNU\0", 3, b"\x01\x02")]
        {
            for word in [name.len() as u32, contents.len() as u32, kind] {
                notes.extend(word.to_ne_bytes());
            }
            notes.extend(name);
            notes.extend(contents);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(find_build_id(&notes), BuildId::new(&[1, 2]));
    }

    #[test]
    fn another_release_is_not_named_by_the_running_kernel() {
        let other_release = Some("2.6.32-golden".to_owned());
        let config = KernelConfig { other_release, ..KernelConfig::default() };
        let Source::Absent(reason) = load(&config, &DebugDirs::none()) else { panic!() };
        assert_eq!(reason, Reason::OtherRelease { release: "2.6.32-golden".into() });
        assert!(reason.to_string().contains("--kallsyms"));
    }

    #[test]
    fn a_list_of_another_start_names_the_kernel_without_its_modules() {
        let cache = tempfile::tempdir().unwrap();
        let id = BuildId::new(&[0xab; 20]).unwrap();
        let copy = cache.path().join("[kernel.kallsyms]").join(id.to_string());
        std::fs::create_dir_all(&copy).unwrap();
        let list = "1000 T _text\n1100 T first\n1200 T second\n9000 t driver\t[module]\n";
        std::fs::write(copy.join("kallsyms"), list).unwrap();
        let dirs = DebugDirs::with_cache(Some(cache.path().to_owned()));
        let name = |text_at: u64, address: u64| {
            let reference = Some(("_text".to_owned(), Avma(text_at)));
            let config = KernelConfig { build_id: Some(id), reference, ..KernelConfig::default() };
            let Source::Table(table, bias) = load(&config, &dirs) else { panic!() };
            let found = table.find(bias.to_svma(Avma(address)));
            found.map(|found| String::from_utf8(found.name.to_vec()).unwrap())
        };
        assert_eq!(name(0x1000, 0x1110).as_deref(), Some("first"));
        assert_eq!(name(0x1000, 0x9000).as_deref(), Some("driver"));
        assert_eq!(name(0x51000, 0x51110).as_deref(), Some("first"));
        assert_eq!(name(0x51000, 0x59000), None);
    }

    proptest! {
        #[test]
        fn arbitrary_notes_are_survived(notes in prop::collection::vec(any::<u8>(), 0..100)) {
            find_build_id(&notes);
        }
    }
}
