//! The header of a perf.data file and of a pipe. Source: `struct perf_file_header` and
//! `struct perf_pipe_file_header` in `tools/perf/util/header.h`.

use crate::bytes::Cursor;
use crate::feature::Feature;

/// First eight bytes of every recording of version 2.
pub const MAGIC: &[u8; 8] = b"PERFILE2";
/// The same, written by a machine of the other byte order.
pub const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
/// First eight bytes of recordings before Linux 2.6.33, without features.
pub const MAGIC_V1: &[u8; 8] = b"PERFFILE";
/// Size of `struct perf_file_header`.
pub const FILE_HEADER_SIZE_BYTES: usize = 104;
/// Size of the header of a pipe: magic and this size.
pub const PIPE_HEADER_SIZE_BYTES: usize = 16;
/// Number of bits in the feature bit map.
const FEATURE_BITS: usize = 256;

/// A part of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Section {
    /// Where it starts.
    pub offset: u64,
    /// How long it is.
    pub size_bytes: u64,
}

impl Section {
    /// Encoded size.
    pub const SIZE_BYTES: usize = 16;

    /// Decodes sixteen bytes.
    pub fn parse(bytes: &[u8]) -> Option<Section> {
        let mut c = Cursor::new(bytes);
        Some(Section { offset: c.u64()?, size_bytes: c.u64()? })
    }

    /// Encodes.
    pub fn to_bytes(self) -> [u8; Self::SIZE_BYTES] {
        let mut out = [0; Self::SIZE_BYTES];
        out[..8].copy_from_slice(&self.offset.to_le_bytes());
        out[8..].copy_from_slice(&self.size_bytes.to_le_bytes());
        out
    }

    /// First offset past the section, unless that overflows.
    pub fn end(self) -> Option<u64> {
        self.offset.checked_add(self.size_bytes)
    }
}

/// The first bytes of a file: places of its sections, and a bit for each feature.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileHeader {
    /// Size of one entry of the attribute section: `perf_event_attr` and a [`Section`] of ids.
    pub attr_entry_size_bytes: u64,
    /// The attributes.
    pub attrs: Section,
    /// The records.
    pub data: Section,
    /// Feature bit map, 256 bits.
    pub features: [u64; FEATURE_BITS / 64],
}

impl FileHeader {
    /// Decodes the header; `None` for too few bytes. The magic is not looked at.
    pub fn parse(bytes: &[u8]) -> Option<FileHeader> {
        let mut c = Cursor::new(bytes);
        c.take(MAGIC.len())?;
        let _size = c.u64()?;
        let attr_entry_size_bytes = c.u64()?;
        let attrs = Section::parse(c.take(Section::SIZE_BYTES)?)?;
        let data = Section::parse(c.take(Section::SIZE_BYTES)?)?;
        c.take(Section::SIZE_BYTES)?; // event types, unused since 2.6.38
        let mut features = [0; FEATURE_BITS / 64];
        for word in &mut features {
            *word = c.u64()?;
        }
        Some(FileHeader { attr_entry_size_bytes, attrs, data, features })
    }

    /// Encodes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend((FILE_HEADER_SIZE_BYTES as u64).to_le_bytes());
        out.extend(self.attr_entry_size_bytes.to_le_bytes());
        out.extend(self.attrs.to_bytes());
        out.extend(self.data.to_bytes());
        out.extend(Section::default().to_bytes());
        out.extend(self.features.iter().flat_map(|word| word.to_le_bytes()));
        out
    }

    /// Marks a feature as present.
    pub fn add_feature(&mut self, feature: Feature) {
        self.features[usize::from(feature.0) / 64] |= 1 << (feature.0 % 64);
    }

    /// The features that are present, in the order of their sections.
    pub fn present_features(&self) -> impl Iterator<Item = Feature> + '_ {
        (0..=u8::MAX)
            .filter(|bit| self.features[usize::from(*bit) / 64] & 1 << (bit % 64) != 0)
            .map(Feature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let mut header = FileHeader {
            attr_entry_size_bytes: 144,
            attrs: Section { offset: 104, size_bytes: 144 },
            data: Section { offset: 248, size_bytes: 9 },
            ..FileHeader::default()
        };
        header.add_feature(Feature::HOSTNAME);
        header.add_feature(Feature::WHIT_LEDGER);
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), FILE_HEADER_SIZE_BYTES);
        let back = FileHeader::parse(&bytes).unwrap();
        assert_eq!(back, header);
        let present: Vec<_> = back.present_features().collect();
        assert_eq!(present, [Feature::HOSTNAME, Feature::WHIT_LEDGER]);
        assert!(FileHeader::parse(&bytes[..103]).is_none());
    }
}
