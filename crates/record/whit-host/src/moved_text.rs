//! Text of a binary that a process moved to anonymous memory, as programs do that want it in huge pages.
//!
//! `/proc/PID/maps` names no file for such memory. It is the file's text where it lies at the place of an executable
//! segment of the image that it lies in, and its bytes are those of the file. Both are looked at; a place alone proves
//! nothing, since code of a JIT compiler may lie anywhere.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use whit_elf::{ElfError, ElfImage, Segment};
use whit_sys::maps::{MapsLine, flag};
use whit_sys::process_files::{Identity, OpenError, ProcessFile, WantedFile};
use whit_sys::system;
use whit_types::Pid;

use crate::processes;
use crate::roots::Roots;

/// Pages of one mapping that are compared at most, evenly spread.
const PAGES_COMPARED_MAX: u64 = 256;

/// Memory at the place of an image's text that stays without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnnamedText {
    /// The process.
    pub pid: Pid,
    /// The first of its addresses.
    pub start: u64,
    /// The file of the image, as the kernel names it.
    pub path: Vec<u8>,
    /// Why it has no name.
    pub why: Unnamed,
}

/// Why memory in an image has no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// The file of the image cannot be opened.
    Unopened(OpenError),
    /// The process's memory cannot be read.
    Unreadable(i32),
    /// The process waits for one of its pages, which does not come.
    NoAnswer,
    /// The bytes in memory are others.
    OtherBytes,
}

impl fmt::Display for Unnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unnamed::Unopened(error) => write!(f, "the file cannot be opened: {error}"),
            Unnamed::NoAnswer => f.write_str(
                "the memory cannot be read: a program that has to give one of its pages does not answer",
            ),
            Unnamed::Unreadable(errno) => {
                write!(f, "the memory cannot be read: {}", io::Error::from_raw_os_error(*errno))
            }
            Unnamed::OtherBytes => f.write_str("the bytes in memory are not those of the file"),
        }
    }
}

/// Lines of `/proc/PID/maps` in which moved text has the name of its file again.
pub struct NamedLines<'a, I> {
    roots: &'a Roots,
    pid: Pid,
    lines: I,
    /// The nearest mapping of a file below.
    below: Option<Vec<u8>>,
    /// A line that was read ahead.
    ahead: Option<Vec<u8>>,
    unnamed: Vec<UnnamedText>,
}

impl<'a, I: Iterator<Item = Vec<u8>>> NamedLines<'a, I> {
    /// The lines of this process.
    pub fn new(roots: &'a Roots, pid: Pid, lines: I) -> NamedLines<'a, I> {
        NamedLines { roots, pid, lines, below: None, ahead: None, unnamed: Vec::new() }
    }

    /// Takes the mappings that lie at the place of text and stay without a name.
    pub fn take_unnamed(&mut self) -> Vec<UnnamedText> {
        std::mem::take(&mut self.unnamed)
    }

    /// The line of moved text with the name of its file.
    fn named(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let moved = MapsLine::parse(line).filter(may_be_moved)?;
        self.ahead = self.lines.next();
        let neighbours = [self.below.as_deref(), self.ahead.as_deref()];
        let neighbours = neighbours.into_iter().flatten().filter_map(MapsLine::parse);
        let mut why = None;
        for neighbour in neighbours.filter(MapsLine::is_file) {
            match self.as_part_of(&moved, &neighbour) {
                Some(Ok(offset)) => return Some(renamed(&moved, &neighbour, offset)),
                Some(Err(reason)) => {
                    let path = neighbour.path.to_vec();
                    let text = UnnamedText { pid: self.pid, start: moved.start, path, why: reason };
                    why.get_or_insert(text);
                }
                None => {}
            }
        }
        self.unnamed.extend(why);
        None
    }

    /// The offset in the neighbour's file that a mapping shows; `None` where it lies at no text of it.
    fn as_part_of(
        &self,
        moved: &MapsLine<'_>,
        neighbour: &MapsLine<'_>,
    ) -> Option<Result<u64, Unnamed>> {
        // Code of a JIT compiler lies beside many a file: the memory between tells whether it may be an image's.
        if moved.start != neighbour.end && moved.end != neighbour.start {
            return None;
        }
        let image = match self.open(neighbour) {
            Ok(Ok(image)) => image,
            Ok(Err(_)) => return None,
            Err(error) => return Some(Err(Unnamed::Unopened(error))),
        };
        let places = places(image.segments(), moved, neighbour);
        let memory = processes::open_living(self.roots, self.pid, "mem");
        places
            .into_iter()
            .map(|place| place.compare(&image, memory.as_ref(), moved).map(|()| place.offset))
            .reduce(Result::or)
    }

    fn open(&self, line: &MapsLine<'_>) -> Result<Result<ElfImage, ElfError>, OpenError> {
        let wanted = WantedFile {
            pid: Some(self.pid.0),
            relatives: &[],
            range: Some(line.range()),
            identity: Identity::Mapping(line.file_id()),
            path: line.path,
        };
        let file = wanted.open(&self.roots.proc)?;
        Ok(ElfImage::from_foreign(Path::new("a mapped file"), &file))
    }
}

impl<I: Iterator<Item = Vec<u8>>> Iterator for NamedLines<'_, I> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let line = self.ahead.take().or_else(|| self.lines.next())?;
        let line = self.named(&line).unwrap_or(line);
        if MapsLine::parse(&line).is_some_and(|line| line.is_file()) {
            self.below = Some(line.clone());
        }
        Some(line)
    }
}

fn may_be_moved(line: &MapsLine<'_>) -> bool {
    line.is_executable() && line.path.is_empty() && line.flags == flag::MAP_PRIVATE
}

/// A line of `/proc/PID/maps` as if the file were mapped there.
fn renamed(moved: &MapsLine<'_>, file: &MapsLine<'_>, offset: u64) -> Vec<u8> {
    let bit = |bit, letter| if moved.protection & bit != 0 { letter } else { '-' };
    let (r, w) = (bit(flag::PROT_READ, 'r'), bit(flag::PROT_WRITE, 'w'));
    let mut line = format!(
        "{:x}-{:x} {r}{w}xp {offset:08x} {:02x}:{:02x} {} ",
        moved.start, moved.end, file.major, file.minor, file.inode
    )
    .into_bytes();
    line.extend_from_slice(file.path);
    line
}

/// A place in a file that a mapping may show.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// The offset of the mapping's first byte.
    offset: u64,
    /// Offsets of the segment's bytes in the mapping.
    text: Range<u64>,
}

/// Where a mapping lies in the executable segments of an image, by the place of another mapping of the image.
fn places(segments: &[Segment], moved: &MapsLine<'_>, neighbour: &MapsLine<'_>) -> Vec<Place> {
    let page = system::page_size() as u64;
    let mut places = Vec::new();
    for shown in segments {
        let end = shown.offset.0.saturating_add(shown.file_size_bytes);
        let shown_end = neighbour.file_offset.saturating_add(neighbour.end - neighbour.start);
        if shown.offset.0 >= shown_end || end <= neighbour.file_offset {
            continue;
        }
        let svma = shown.svma.0.wrapping_add(neighbour.file_offset).wrapping_sub(shown.offset.0);
        let bias = neighbour.start.wrapping_sub(svma);
        for text in segments.iter().filter(|segment| segment.executable) {
            places.extend(place(text, bias, moved, page));
        }
    }
    places.sort_by_key(|place| place.offset);
    places.dedup();
    places
}

fn place(text: &Segment, bias: u64, moved: &MapsLine<'_>, page: u64) -> Option<Place> {
    let begin = text.svma.0.wrapping_add(bias);
    let end = begin.checked_add(text.file_size_bytes)?;
    let is_inside =
        begin & !(page - 1) <= moved.start && moved.end <= end.checked_next_multiple_of(page)?;
    is_inside.then(|| Place {
        offset: text.offset.0.wrapping_add(moved.start).wrapping_sub(begin),
        text: begin.saturating_sub(moved.start)..end.min(moved.end) - moved.start,
    })
}

impl Place {
    fn compare(
        &self,
        image: &ElfImage,
        memory: Result<&ProcessFile, &io::Error>,
        moved: &MapsLine<'_>,
    ) -> Result<(), Unnamed> {
        let unreadable = |error: &io::Error| match error.kind() {
            io::ErrorKind::TimedOut => Unnamed::NoAnswer,
            _ => Unnamed::Unreadable(error.raw_os_error().unwrap_or(0)),
        };
        let memory = memory.map_err(unreadable)?;
        let page = system::page_size() as u64;
        let pages = (moved.end - moved.start) / page;
        let compared = pages.min(PAGES_COMPARED_MAX);
        for number in 0..compared {
            let begin = number * pages / compared * page;
            let part = begin.max(self.text.start)..(begin + page).min(self.text.end);
            if part.is_empty() {
                continue;
            }
            let mut bytes = vec![0; (part.end - part.start) as usize];
            memory
                .read_exact_at(&mut bytes, moved.start + part.start)
                .map_err(|error| unreadable(&error))?;
            let at = self.offset.wrapping_add(part.start);
            let of_file = image.bytes().slice(at..at.wrapping_add(part.end - part.start));
            if of_file.is_none_or(|of_file| *of_file != *bytes) {
                return Err(Unnamed::OtherBytes);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use whit_sys::process_files::id_when_mapped;

    /// A tree in which this test's own program is process 7, mapped at 0x10000000, with its text moved: the file of
    /// memory has other bytes where `is_changed`.
    fn moved(is_changed: bool) -> (tempfile::TempDir, Roots, Vec<Vec<u8>>, u64) {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots { proc: dir.path().to_owned(), ..Roots::default() };
        let program = std::env::current_exe().unwrap();
        let image = ElfImage::open(&program).unwrap();
        let text = *image.segments().iter().find(|s| s.executable).unwrap();
        let file = File::open(&program).unwrap();
        let id = id_when_mapped(&file).unwrap();
        let page = system::page_size() as u64;
        let bias = 0x1000_0000;
        let start = bias + (text.svma.0 & !(page - 1));
        let end = bias + (text.svma.0 + text.file_size_bytes).next_multiple_of(page);
        let offset = text.offset.0 & !(page - 1);
        std::fs::create_dir_all(dir.path().join("7")).unwrap();
        let memory = File::create(dir.path().join("7/mem")).unwrap();
        let mut bytes = image
            .bytes()
            .slice(text.offset.0..text.offset.0 + text.file_size_bytes)
            .unwrap()
            .to_vec();
        if is_changed {
            bytes.iter_mut().for_each(|byte| *byte = !*byte);
        }
        memory.write_all_at(&bytes, bias + text.svma.0).unwrap();
        let lines = vec![
            format!(
                "{bias:x}-{start:x} r--p 00000000 {:02x}:{:02x} {} {}",
                id.device.0,
                id.device.1,
                id.inode,
                program.display()
            )
            .into_bytes(),
            format!("{start:x}-{end:x} r-xp 00000000 00:00 0 ").into_bytes(),
            format!("{:x}-{:x} rwxp 00000000 00:00 0 ", end + page, end + 2 * page).into_bytes(),
        ];
        (dir, roots, lines, offset)
    }

    #[test]
    fn moved_text_has_the_name_of_its_file() {
        let (_dir, roots, lines, offset) = moved(false);
        let mut named = NamedLines::new(&roots, Pid(7), lines.clone().into_iter());
        let found: Vec<_> = named.by_ref().collect();
        assert_eq!((&found[0], &found[2], found.len()), (&lines[0], &lines[2], 3));
        let (file, text) =
            (MapsLine::parse(&found[0]).unwrap(), MapsLine::parse(&found[1]).unwrap());
        assert_eq!((text.path, text.file_id()), (file.path, file.file_id()));
        assert_eq!(
            (text.file_offset, text.protection),
            (offset, flag::PROT_READ | flag::PROT_EXEC)
        );
        assert_eq!(named.take_unnamed(), []);
    }

    #[test]
    fn other_bytes_at_that_place_have_no_name_and_a_reason() {
        let (_dir, roots, lines, _) = moved(true);
        let mut named = NamedLines::new(&roots, Pid(7), lines.clone().into_iter());
        assert_eq!(named.by_ref().collect::<Vec<_>>(), lines);
        let unnamed = named.take_unnamed();
        assert_eq!(
            unnamed.iter().map(|text| &text.why).collect::<Vec<_>>(),
            [&Unnamed::OtherBytes]
        );
    }
}
