//! Compiled programs as the executable has them: compressed.

use std::io::Read;

use flate2::read::DeflateDecoder;

/// An object of BPF programs that the build script compressed.
#[derive(Clone, Copy)]
pub(crate) struct PackedObject {
    /// A stream of DEFLATE (RFC 1951).
    pub(crate) packed: &'static [u8],
}

impl PackedObject {
    /// The object, in memory of the heap: libelf wants it aligned. Empty if the stream is damaged; libbpf refuses that.
    pub(crate) fn unpacked(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match DeflateDecoder::new(self.packed).read_to_end(&mut bytes) {
            Ok(_) => bytes,
            Err(_) => Vec::new(),
        }
    }
}

/// The object of a program's source, by the name without `.bpf.c`.
macro_rules! packed_object {
    ($program:literal) => {
        $crate::packed_object::PackedObject {
            packed: include_bytes!(concat!(env!("OUT_DIR"), "/", $program, ".bpf.o.deflate")),
        }
    };
}
pub(crate) use packed_object;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_unpacked_as_the_compiler_wrote_them() {
        let compiled = include_bytes!(concat!(env!("OUT_DIR"), "/stacks.bpf.o"));
        let object = crate::stacks::OBJECT;
        assert!(object.unpacked() == compiled, "another object");
        assert!(object.packed.len() < compiled.len() / 2, "{} bytes", object.packed.len());
    }

    #[test]
    fn a_damaged_stream_is_no_object() {
        let packed = &crate::stacks::OBJECT.packed[..1000];
        assert!(PackedObject { packed }.unpacked().is_empty());
    }
}
