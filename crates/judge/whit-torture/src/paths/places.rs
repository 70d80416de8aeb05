//! Paths that a process chooses, and recordings that lead to them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::super::hostile::dwarf::{
    FUNCTION, UNIT_WITH_LINES, abbreviations, lines, named, unit, whole_range,
};
use super::super::hostile::elf::{Section, file, one_symbol};
use super::super::hostile::recording::{PROCESS, of, with_further};
use super::jitdumps;

const BUILD_ID: [u8; 20] = [0xab; 20];
const FIRST_OF_ID: &str = "ab";

/// A recording, and the path in it.
pub(super) struct Place {
    pub(super) data: PathBuf,
    pub(super) path: PathBuf,
    pub(super) options: Vec<OsString>,
    pub(super) variables: Vec<(&'static str, PathBuf)>,
    /// Contents for a file of the right form.
    pub(super) damaged: Vec<u8>,
}

type Random = fastrand::Rng;
type Make = fn(&Path, &mut Random) -> Result<Place>;

pub(super) const ALL: [(&str, Make); 9] = [
    ("binary", binary),
    ("perf-map", perf_map),
    ("jitdump", jitdump),
    ("debug link", debug_link),
    ("shared debug information", supplement),
    ("source", source),
    ("kept copy", kept_copy),
    ("fetched companion", fetched),
    ("symfs", symfs),
];

fn place(scratch: &Path, path: PathBuf, damaged: Vec<u8>) -> Result<Place> {
    let data = scratch.join("perf.data");
    fs::write(&data, of(&scratch.join("hostile")))?;
    Ok(Place { data, path, options: Vec::new(), variables: Vec::new(), damaged })
}

/// A stripped binary that names debug information.
fn stripped(scratch: &Path) -> Result<()> {
    let link = [&b"hostile.debug\0\0\0"[..], &[1, 2, 3, 4]].concat();
    let sections = [Section::build_id(&BUILD_ID), Section::debug(".gnu_debuglink", link)];
    Ok(fs::write(scratch.join("hostile"), file(sections))?)
}

/// A file with the same build id, some of its bytes changed.
fn companion(random: &mut Random) -> Vec<u8> {
    let sections = one_symbol().into_iter().chain([Section::build_id(&BUILD_ID)]);
    let mut bytes = file(sections);
    for _ in 0..random.usize(0..8) {
        let at = random.usize(0..bytes.len());
        bytes[at] = random.u8(..);
    }
    bytes
}

fn binary(scratch: &Path, random: &mut Random) -> Result<Place> {
    place(scratch, scratch.join("hostile"), companion(random))
}

fn perf_map(scratch: &Path, random: &mut Random) -> Result<Place> {
    let data = scratch.join("perf.data");
    fs::write(&data, of(Path::new("//anon")))?;
    let mut damaged = Vec::new();
    for number in 0..random.u32(0..10_000) {
        let (start, size) = (random.u64(..) >> random.u32(0..63), random.u64(0..1 << 20));
        damaged.extend(format!("{start:x} {size:x} f{number}\n").into_bytes());
    }
    let path = PathBuf::from(format!("/tmp/perf-{PROCESS}.map"));
    Ok(Place { data, path, options: Vec::new(), variables: Vec::new(), damaged })
}

fn jitdump(scratch: &Path, random: &mut Random) -> Result<Place> {
    let (data, path) = (scratch.join("perf.data"), scratch.join(format!("jit-{PROCESS}.dump")));
    fs::write(&data, with_further(Path::new("//anon"), &[&path]))?;
    let damaged = jitdumps::damaged(random);
    Ok(Place { data, path, options: Vec::new(), variables: Vec::new(), damaged })
}

fn debug_link(scratch: &Path, random: &mut Random) -> Result<Place> {
    stripped(scratch)?;
    let name = if random.bool() { "hostile.debug" } else { ".debug/hostile.debug" };
    place(scratch, scratch.join(name), companion(random))
}

/// A binary with lines, in a source file of the scratch directory, and with a file that it shares with others.
fn with_lines(scratch: &Path) -> Result<()> {
    let directory = scratch.as_os_str().as_encoded_bytes();
    let own = [&[UNIT_WITH_LINES], directory, &[0], &whole_range()[..], &[0; 4]].concat();
    let info = unit(&[own, named(FUNCTION, "f"), vec![0, 0]].concat());
    let shared = [scratch.join("shared").as_os_str().as_encoded_bytes(), &[0], &BUILD_ID].concat();
    let sections = [
        abbreviations(&[]),
        Section::debug(".debug_info", info),
        Section::debug(".debug_line", lines(b"a.c\0\0\0\0", &[34; 100])),
        Section::debug(".gnu_debugaltlink", shared),
    ];
    Ok(fs::write(scratch.join("hostile"), file(sections.into_iter().chain(one_symbol())))?)
}

fn supplement(scratch: &Path, random: &mut Random) -> Result<Place> {
    with_lines(scratch)?;
    place(scratch, scratch.join("shared"), companion(random))
}

fn source(scratch: &Path, random: &mut Random) -> Result<Place> {
    with_lines(scratch)?;
    let text = (0..random.usize(0..1 << 20)).map(|_| random.u8(..)).collect();
    place(scratch, scratch.join("a.c"), text)
}

fn rest_of_id() -> String {
    FIRST_OF_ID.repeat(BUILD_ID.len() - 1)
}

fn kept_copy(scratch: &Path, random: &mut Random) -> Result<Place> {
    stripped(scratch)?;
    let cache = scratch.join("cache");
    let entry = cache.join(".build-id").join(FIRST_OF_ID).join(rest_of_id());
    // Also in place of the directory.
    let path = match random.u8(0..3) {
        0 => entry,
        1 => entry.join("elf"),
        _ => entry.join("debug"),
    };
    let place = place(scratch, path, companion(random))?;
    Ok(Place { variables: vec![("PERF_BUILDID_DIR", cache)], ..place })
}

fn fetched(scratch: &Path, random: &mut Random) -> Result<Place> {
    stripped(scratch)?;
    let cache = scratch.join("fetched");
    let folder = cache.join(FIRST_OF_ID.to_owned() + &rest_of_id());
    fs::create_dir_all(&folder)?;
    let path = match random.u8(0..4) {
        0 => folder.join("debuginfo"),
        1 => folder.join("section-.symtab"),
        2 => folder.join("section-.debug_info"),
        // The time for that a failed query is remembered: the other file says that there was one.
        _ => {
            fs::write(folder.join("debuginfo"), "")?;
            cache.join("cache_miss_s")
        }
    };
    let place = place(scratch, path, companion(random))?;
    // A server that refuses: the cache alone has files.
    let options = vec!["--debuginfod=http://127.0.0.1:1".into()];
    Ok(Place { options, variables: vec![("DEBUGINFOD_CACHE_PATH", cache)], ..place })
}

fn symfs(scratch: &Path, random: &mut Random) -> Result<Place> {
    let root = scratch.join("symfs");
    let below = scratch.join("hostile");
    let path = root.join(below.strip_prefix("/")?);
    let place = place(scratch, path, companion(random))?;
    Ok(Place { options: vec!["--symfs".into(), root.into()], ..place })
}
