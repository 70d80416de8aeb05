//! Copies of files with their holes: a file that takes nothing of its owner's disk must not fill ours.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use rustix::fs::SeekFrom as SeekTo;
use rustix::io::Errno;

/// Copies the first bytes. A file that another process cuts meanwhile gives fewer.
pub(super) fn copy(source: &File, size_bytes: u64, copy: &mut File) -> io::Result<()> {
    let mut at = 0;
    while at < size_bytes {
        let data = match rustix::fs::seek(source, SeekTo::Data(at)) {
            Ok(data) if data < size_bytes => data,
            // A hole up to the end.
            Ok(_) | Err(Errno::NXIO) => break,
            // A file system that knows no holes.
            Err(Errno::INVAL) => at,
            Err(errno) => return Err(errno.into()),
        };
        let end = rustix::fs::seek(source, SeekTo::Hole(data)).unwrap_or(size_bytes);
        let bytes = end.min(size_bytes).saturating_sub(data);
        let mut from = source;
        from.seek(SeekFrom::Start(data))?;
        copy.seek(SeekFrom::Start(data))?;
        if bytes == 0 || io::copy(&mut from.take(bytes), copy)? < bytes {
            break;
        }
        at = data + bytes;
    }
    copy.set_len(size_bytes.min(source.metadata()?.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileExt, MetadataExt};

    #[test]
    fn holes_stay_holes_and_bytes_stay_bytes() {
        const SIZE: u64 = 256 << 20;
        let source = tempfile::tempfile().unwrap();
        source.set_len(SIZE).unwrap();
        for (text, at) in [("begin", 0), ("middle", 100 << 20), ("end", SIZE - 3)] {
            source.write_all_at(text.as_bytes(), at).unwrap();
        }
        let [mut whole, mut part] = [(); 2].map(|()| tempfile::tempfile().unwrap());
        copy(&source, SIZE, &mut whole).unwrap();
        let (stated, held) = (whole.metadata().unwrap(), source.metadata().unwrap());
        assert_eq!(stated.len(), SIZE);
        assert!(stated.blocks() <= 2 * held.blocks(), "{} of {}", stated.blocks(), held.blocks());
        let read = |at, size| {
            let mut bytes = vec![0; size];
            whole.read_exact_at(&mut bytes, at).unwrap();
            bytes
        };
        assert_eq!((read(0, 6), read(SIZE - 4, 4)), (b"begin\0".to_vec(), b"\0end".to_vec()));
        assert_eq!(read((100 << 20) - 1, 7), b"\0middle");
        copy(&source, 1 << 20, &mut part).unwrap();
        assert_eq!(part.metadata().unwrap().len(), 1 << 20);
        // Fewer bytes than were asked for.
        copy(&source, 2 * SIZE, &mut part).unwrap();
        assert_eq!(part.metadata().unwrap().len(), SIZE);
    }
}
