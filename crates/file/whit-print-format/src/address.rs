//! Addresses of networks and other identifiers: what `%p` prints with `M`, `I`, `U` and `h`.
//!
//! Source: `Documentation/core-api/printk-formats.rst` in the kernel.

use super::conversion::{append_byte, append_decimal};
use super::text::append_bytes;

/// `AF_INET`.
const FAMILY_IPV4: u16 = 2;
/// `AF_INET6`.
const FAMILY_IPV6: u16 = 10;

/// How an address is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AddressForm {
    /// Six bytes.
    Mac { separator: Option<u8>, reversed: bool },
    /// Four bytes.
    Ipv4 { padded: bool, reversed: bool },
    /// Sixteen bytes.
    Ipv6 { colons: bool, compressed: bool },
    /// A socket address with its family.
    Socket { colons: bool, compressed: bool, port: bool, reversed: bool },
    /// Sixteen bytes.
    Uuid { upper: bool, little_endian: bool },
}

impl AddressForm {
    /// Appends an address; one of a wrong size is named so, as perf does.
    pub(super) fn append(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            AddressForm::Mac { separator, reversed } => {
                match bytes.first_chunk::<6>().filter(|chunk| chunk.len() == bytes.len()) {
                    Some(bytes) => append_mac(*bytes, separator, reversed, out),
                    None => out.extend_from_slice(b"INVALIDMAC"),
                }
            }
            AddressForm::Ipv4 { padded, reversed } => {
                match bytes.first_chunk::<4>().filter(|chunk| chunk.len() == bytes.len()) {
                    Some(bytes) => append_ipv4(*bytes, padded, reversed, out),
                    None => out.extend_from_slice(b"INVALIDIPv4"),
                }
            }
            AddressForm::Ipv6 { colons, compressed } => {
                match bytes.first_chunk::<16>().filter(|chunk| chunk.len() == bytes.len()) {
                    Some(bytes) => append_ipv6(bytes, colons, compressed, out),
                    None => out.extend_from_slice(b"INVALIDIPv6"),
                }
            }
            AddressForm::Socket { colons, compressed, port, reversed } => {
                append_socket(bytes, (colons, compressed, port, reversed), out);
            }
            AddressForm::Uuid { upper, little_endian } => {
                match bytes.first_chunk::<16>().filter(|chunk| chunk.len() == bytes.len()) {
                    Some(bytes) => append_uuid(bytes, upper, little_endian, out),
                    None => out.extend_from_slice(b"INVALIDUUID"),
                }
            }
        }
    }
}

fn append_mac(mut bytes: [u8; 6], separator: Option<u8>, reversed: bool, out: &mut Vec<u8>) {
    if reversed {
        bytes.reverse();
    }
    append_bytes(&bytes, separator.as_slice(), out);
}

fn append_ipv4(mut bytes: [u8; 4], padded: bool, reversed: bool, out: &mut Vec<u8>) {
    if reversed {
        bytes.reverse();
    }
    for (index, byte) in bytes.into_iter().enumerate() {
        if index > 0 {
            out.push(b'.');
        }
        if padded {
            let zeros = usize::from(byte < 100) + usize::from(byte < 10);
            out.resize(out.len() + zeros, b'0');
        }
        append_decimal(u64::from(byte), out);
    }
}

fn append_ipv6(bytes: &[u8; 16], colons: bool, compressed: bool, out: &mut Vec<u8>) {
    if compressed {
        return append_compressed(bytes, out);
    }
    for (index, pair) in bytes.as_chunks::<2>().0.iter().enumerate() {
        if colons && index > 0 {
            out.push(b':');
        }
        append_bytes(pair, b"", out);
    }
}

/// RFC 5952: the longest run of two or more zero words is `::`; mapped IPv4 and ISATAP addresses
/// end in IPv4's form.
fn append_compressed(bytes: &[u8; 16], out: &mut Vec<u8>) {
    let words: [u16; 8] =
        std::array::from_fn(|i| u16::from_be_bytes([bytes[2 * i], bytes[2 * i + 1]]));
    let mapped = words[..5] == [0; 5] && words[5] == 0xffff;
    let isatap = bytes[8] & !2 == 0 && bytes[9..12] == [0, 0x5e, 0xfe];
    let count = if mapped || isatap { 6 } else { 8 };
    let run = longest_zero_run(&words[..count]);
    let mut colon = false;
    let mut index = 0;
    while index < count {
        if Some(index) == run.map(|(start, _)| start) {
            out.extend_from_slice(if colon || index == 0 { b"::" } else { b":" });
            colon = false;
            index += run.map_or(1, |(_, len)| len);
            continue;
        }
        if colon {
            out.push(b':');
        }
        append_word(words[index], out);
        colon = true;
        index += 1;
    }
    if count == 6 {
        if colon {
            out.push(b':');
        }
        append_ipv4([bytes[12], bytes[13], bytes[14], bytes[15]], false, false, out);
    }
}

/// Start and length of the first longest run of at least two zeros.
fn longest_zero_run(words: &[u16]) -> Option<(usize, usize)> {
    let run_at = |start: usize| words[start..].iter().take_while(|word| **word == 0).count();
    let runs = (0..words.len()).map(|start| (start, run_at(start)));
    // `max_by_key` gives the last of several.
    runs.rev().max_by_key(|(_, len)| *len).filter(|(_, len)| *len > 1)
}

/// Hexadecimal without leading zeros.
fn append_word(word: u16, out: &mut Vec<u8>) {
    let start = out.len();
    append_bytes(&word.to_be_bytes(), b"", out);
    let zeros = out[start..start + 3].iter().take_while(|digit| **digit == b'0').count();
    out.drain(start..start + zeros);
}

/// `struct sockaddr_in` or `sockaddr_in6`; nothing for other families.
fn append_socket(
    bytes: &[u8],
    (colons, compressed, port, reversed): (bool, bool, bool, bool),
    out: &mut Vec<u8>,
) {
    let word = |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk::<2>()).copied();
    let family = word(0).map_or(0, u16::from_le_bytes);
    let append_port = |out: &mut Vec<u8>| {
        out.push(b':');
        append_decimal(word(2).map_or(0, |port| u64::from(u16::from_be_bytes(port))), out);
    };
    let ipv4 = bytes.get(4..8).filter(|_| bytes.len() >= 16);
    let ipv6 = bytes.get(8..24).filter(|_| bytes.len() >= 28);
    match family {
        FAMILY_IPV4 => {
            let form = AddressForm::Ipv4 { padded: !colons, reversed };
            form.append(ipv4.unwrap_or_default(), out);
            if port && ipv4.is_some() {
                append_port(out);
            }
        }
        FAMILY_IPV6 => {
            if port && ipv6.is_some() {
                out.push(b'[');
            }
            let form = AddressForm::Ipv6 { colons, compressed };
            form.append(ipv6.unwrap_or_default(), out);
            if port && ipv6.is_some() {
                out.push(b']');
                append_port(out);
            }
        }
        _ => {}
    }
}

fn append_uuid(bytes: &[u8; 16], upper: bool, little_endian: bool, out: &mut Vec<u8>) {
    const BIG: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    const LITTLE: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let order = if little_endian { LITTLE } else { BIG };
    let start = out.len();
    for (index, from) in order.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        append_byte(bytes[from], out);
    }
    if upper {
        out[start..].make_ascii_uppercase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    fn text(form: AddressForm, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        form.append(bytes, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hardware_and_ipv4_addresses() {
        let mac = |separator, reversed| AddressForm::Mac { separator, reversed };
        assert_eq!(text(mac(Some(b':'), false), &[0, 1, 2, 0xab, 4, 5]), "00:01:02:ab:04:05");
        assert_eq!(text(mac(None, true), &[0, 1, 2, 0xab, 4, 5]), "0504ab020100");
        assert_eq!(text(mac(None, true), &[0, 1]), "INVALIDMAC");
        let ipv4 = |padded, reversed| AddressForm::Ipv4 { padded, reversed };
        assert_eq!(text(ipv4(false, false), &[10, 0, 200, 7]), "10.0.200.7");
        assert_eq!(text(ipv4(true, true), &[10, 0, 200, 7]), "007.200.000.010");
        assert_eq!(text(ipv4(true, true), &[]), "INVALIDIPv4");
    }

    #[test]
    fn socket_addresses() {
        let form =
            AddressForm::Socket { colons: true, compressed: true, port: true, reversed: false };
        let mut bytes = [0; 28];
        bytes[..8].copy_from_slice(&[2, 0, 0x1f, 0x90, 127, 0, 0, 1]);
        assert_eq!(text(form, &bytes), "127.0.0.1:8080");
        bytes[0] = 10;
        bytes[4..].fill(0);
        bytes[23] = 1;
        assert_eq!(text(form, &bytes), "[::1]:8080");
        assert_eq!(text(form, &bytes[..20]), "INVALIDIPv6");
        assert_eq!(text(form, &[]), "");
    }

    #[test]
    fn uuids() {
        let bytes: [u8; 16] = std::array::from_fn(|i| 0xa0 + i as u8);
        let form = |upper, little_endian| AddressForm::Uuid { upper, little_endian };
        let big = "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf";
        assert_eq!(text(form(false, false), &bytes), big);
        assert_eq!(text(form(true, true), &bytes), "A3A2A1A0-A5A4-A7A6-A8A9-AAABACADAEAF");
    }

    proptest::proptest! {
        /// The standard library prints the same form, but for ISATAP addresses.
        #[test]
        fn compressed_ipv6_is_that_of_the_standard_library(words: [u16; 8], zeros: u8) {
            let words: [u16; 8] =
                std::array::from_fn(|i| if zeros >> i & 1 == 0 { words[i] } else { 0 });
            let bytes = Ipv6Addr::from(words).octets();
            proptest::prop_assume!(bytes[9..12] != [0, 0x5e, 0xfe]);
            let form = AddressForm::Ipv6 { colons: true, compressed: true };
            proptest::prop_assert_eq!(text(form, &bytes), Ipv6Addr::from(words).to_string());
        }
    }

    #[test]
    fn mapped_and_isatap_addresses_end_as_ipv4() {
        let form = AddressForm::Ipv6 { colons: true, compressed: true };
        let of = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
        assert_eq!(text(form, &of("::ffff:1.2.3.4")), "::ffff:1.2.3.4");
        assert_eq!(text(form, &of("fe80::5efe:102:304")), "fe80::5efe:1.2.3.4");
    }
}
