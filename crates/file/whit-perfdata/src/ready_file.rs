//! The file that ended a wait for several: the first that an epoll call finds ready.
//!
//! The BPF engine writes it in front of the switch with which the thread comes. It is a BPF_EVENT record of a type that the
//! kernel has not, as an [account](crate::cpu_account) is. The sample id has the thread, the CPU and the time.
//! `docs/format.md` has the layout.

use crate::bytes::Cursor;

/// In the place of the kernel's 1 for a program that is loaded, and 2 for one that goes.
pub(crate) const RECORD_TYPE: u16 = 0x6679;
/// Version of the layout.
const VERSION: u16 = 1;

/// The body of the record without the sample id. `description` is that of an object, in words.
pub(crate) fn body(description: &[u8]) -> impl Iterator<Item = u8> {
    let size = description.len() as u64;
    let head = u64::from(RECORD_TYPE) | u64::from(VERSION) << 16 | size << 32;
    head.to_le_bytes().into_iter().chain(description.iter().copied())
}

/// The description from the body of a BPF_EVENT record; `None` for those of other types and versions, and where it is cut.
pub(crate) fn parse(body: &[u8]) -> Option<&[u8]> {
    let mut c = Cursor::new(body);
    if (c.u16()?, c.u16()?) != (RECORD_TYPE, VERSION) {
        return None;
    }
    let size = c.u32()? as usize;
    body.get(8..)?.get(..size)
}

/// Whether the body of a BPF_EVENT record is that of a ready file.
#[inline]
pub(crate) fn is_ready_file(body: &[u8]) -> bool {
    body.starts_with(&RECORD_TYPE.to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read_as_they_were_written() {
        let description = [3u64, 77].map(u64::to_le_bytes).concat();
        let mut record: Vec<u8> = body(&description).collect();
        record.extend([9; 16]);
        assert!(is_ready_file(&record));
        assert_eq!(parse(&record), Some(&description[..]));
        assert_eq!(parse(&record[..20]), None);
        record[2] = 2;
        assert_eq!(parse(&record), None);
        record[0] = 1;
        assert!(!is_ready_file(&record));
    }
}
