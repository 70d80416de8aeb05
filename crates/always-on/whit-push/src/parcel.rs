//! A window in the form in which it is sent, and as a file of a spool.

use crate::settings::Kind;

/// The first word of a file, with the version of its form.
const MAGIC: &str = "whit-push-1";
/// Longest first line.
const HEAD_BYTES_MAX: usize = 128;

/// The body of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Parcel {
    pub(crate) kind: Kind,
    /// The window's beginning.
    pub(crate) start_unix_ns: u64,
    pub(crate) body: Vec<u8>,
}

impl Parcel {
    /// A line that describes the body, and the body.
    pub(crate) fn to_file(&self) -> Vec<u8> {
        let (kind, start, size) = (self.kind.name(), self.start_unix_ns, self.body.len());
        let mut bytes =
            format!("{MAGIC} {kind} {start} {size} {:08x}\n", sum(&self.body)).into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// `None` where it is not whole, or not as it was written.
    pub(crate) fn from_file(kind: Kind, bytes: &[u8]) -> Option<Parcel> {
        let end = bytes.iter().take(HEAD_BYTES_MAX).position(|byte| *byte == b'\n')?;
        let (head, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
        let words: [&str; 5] = head.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let [magic, named, start, size, crc] = words;
        let is_whole = magic == MAGIC
            && named == kind.name()
            && size.parse() == Ok(body.len())
            && u32::from_str_radix(crc, 16) == Ok(sum(body));
        let start_unix_ns = start.parse().ok()?;
        is_whole.then(|| Parcel { kind, start_unix_ns, body: body.to_vec() })
    }
}

fn sum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parcel() -> Parcel {
        Parcel { kind: Kind::Otlp, start_unix_ns: 17, body: b"a\nbody".to_vec() }
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let bytes = parcel().to_file();
        assert_eq!(Parcel::from_file(Kind::Otlp, &bytes), Some(parcel()));
        assert_eq!(Parcel::from_file(Kind::Parca, &bytes), None);
    }

    #[test]
    fn a_file_that_is_cut_or_changed_is_not_sent() {
        let bytes = parcel().to_file();
        for cut in 0..bytes.len() {
            assert_eq!(Parcel::from_file(Kind::Otlp, &bytes[..cut]), None, "{cut}");
        }
        let body = bytes.len() - 6;
        for at in body..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(Parcel::from_file(Kind::Otlp, &changed), None, "{at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_file_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(Parcel::from_file(Kind::Otlp, &bytes), None);
        }
    }
}
