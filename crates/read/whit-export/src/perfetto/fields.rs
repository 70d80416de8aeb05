//! Messages written field by field, without a value for each: a trace has hundreds of thousands of packets.

use prost::Message;
use prost::encoding::{WireType, message};

/// The fields of a message, which are written in order of their tags.
pub(super) struct Fields<'b> {
    bytes: &'b mut Vec<u8>,
}

impl Fields<'_> {
    /// Adds fields to these bytes.
    pub(super) fn at_end_of(bytes: &mut Vec<u8>) -> Fields<'_> {
        Fields { bytes }
    }

    pub(super) fn number(&mut self, tag: u32, number: u64) {
        key(self.bytes, tag, WireType::Varint);
        varint(self.bytes, number);
    }

    /// A number of 32 bits with a sign; the format lengthens it.
    pub(super) fn signed(&mut self, tag: u32, number: i32) {
        self.number(tag, i64::from(number) as u64);
    }

    /// A text of several parts.
    pub(super) fn text(&mut self, tag: u32, parts: &[&str]) {
        key(self.bytes, tag, WireType::LengthDelimited);
        varint(self.bytes, parts.iter().map(|part| part.len() as u64).sum());
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part.as_bytes()));
    }

    /// A message that is a value.
    pub(super) fn value<M: Message>(&mut self, tag: u32, value: &M) {
        message::encode(tag, value, self.bytes);
    }

    /// A message whose fields are there.
    pub(super) fn encoded(&mut self, tag: u32, fields: &[u8]) {
        key(self.bytes, tag, WireType::LengthDelimited);
        varint(self.bytes, fields.len() as u64);
        self.bytes.extend_from_slice(fields);
    }

    /// Fields that are there.
    pub(super) fn append(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
    }

    /// A message of fields.
    pub(super) fn message(&mut self, tag: u32, fill: impl FnOnce(&mut Fields<'_>)) {
        key(self.bytes, tag, WireType::LengthDelimited);
        let start = self.bytes.len();
        // Most lengths have one byte; longer ones push the content back.
        self.bytes.push(0);
        fill(self);
        let length = (self.bytes.len() - start - 1) as u64;
        match u8::try_from(length) {
            Ok(length @ ..0x80) => self.bytes[start] = length,
            _ => {
                let mut prefix = Vec::new();
                varint(&mut prefix, length);
                self.bytes.splice(start..=start, prefix);
            }
        }
    }
}

fn key(bytes: &mut Vec<u8>, tag: u32, wire_type: WireType) {
    varint(bytes, u64::from(tag << 3 | wire_type as u32));
}

/// prost's asks for room byte by byte, in each place that it is copied to.
#[inline(never)]
fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    let (mut digits, mut length) = ([0u8; 10], 0);
    while number >= 0x80 {
        digits[length] = number as u8 | 0x80;
        number >>= 7;
        length += 1;
    }
    digits[length] = number as u8;
    bytes.extend_from_slice(&digits[..=length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::perfetto::{Process, ProcessTree, Thread, TracePacket};

    /// Contents around each length at which a length takes one more byte.
    #[test]
    fn fields_are_the_bytes_of_a_message() {
        for length in [0, 1, 100, 110, 115, 120, 125, 127, 128, 16_000, 16_370, 16_384, 3_000_000] {
            let name = "n".repeat(length);
            let thread = Thread { tid: Some(-7), name: Some(name.clone()), tgid: Some(9) };
            let process =
                Process { pid: Some(i32::MAX), cmdline: vec![name.clone()], cmdline_is_comm: None };
            let tree = ProcessTree { processes: vec![process.clone()], threads: vec![thread] };
            let packet = TracePacket {
                process_tree: Some(tree),
                timestamp: Some(u64::MAX),
                ..TracePacket::default()
            };
            let mut written = b"before".to_vec();
            let mut fields = Fields::at_end_of(&mut written);
            fields.message(2, |tree| {
                tree.value(1, &process);
                tree.message(2, |thread| {
                    thread.signed(1, -7);
                    let (one, other) = name.split_at(length / 3);
                    thread.text(2, &[one, other, ""]);
                    thread.signed(3, 9);
                });
            });
            fields.number(8, u64::MAX);
            assert_eq!(written, [&b"before"[..], &packet.encode_to_vec()].concat(), "{length}");
        }
        let mut written = Vec::new();
        Fields::at_end_of(&mut written).message(1, |_| ());
        assert_eq!(written, [0x0a, 0], "an empty message");
    }
}
