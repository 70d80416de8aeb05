//! Readable names for mangled ones, as perf prints them: Rust without the hash, C++ without
//! parameters and return type.

use std::borrow::Cow;

use cpp_demangle::{DemangleOptions, Symbol};

/// Mangled names beyond this length are left as they are: some C++ templates make names of
/// megabytes, on which demangling takes seconds.
const MAX_MANGLED_BYTES: usize = 16 << 10;

/// A demangled name beyond this length is dropped for the mangled one: back references in a mangled
/// name can grow without bound.
const MAX_DEMANGLED_BYTES: usize = 64 << 10;

/// The readable form of `name`, or `name` itself (with replacement characters for bytes that are
/// not UTF-8) where it is not mangled.
///
/// The part behind an `@` (a symbol version, `@plt`) is kept.
pub fn demangle(name: &[u8]) -> Cow<'_, str> {
    let name = match std::str::from_utf8(name) {
        Ok(name) => name,
        Err(_) => return String::from_utf8_lossy(name),
    };
    let (mangled, suffix) = name.split_at(name.find('@').unwrap_or(name.len()));
    match demangle_whole(mangled) {
        Some(mut readable) => {
            readable.push_str(suffix);
            Cow::Owned(readable)
        }
        None => Cow::Borrowed(name),
    }
}

fn demangle_whole(name: &str) -> Option<String> {
    if !name.starts_with('_') || name.len() > MAX_MANGLED_BYTES {
        return None;
    }
    // Rust first: a legacy Rust name is a valid C++ one as well.
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let mut out = Bounded(String::new());
        std::fmt::write(&mut out, format_args!("{rust:#}")).ok()?;
        return Some(out.0);
    }
    if !name.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(name).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// Refuses to grow beyond the limit.
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > MAX_DEMANGLED_BYTES {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_read_as_perf_prints_them() {
        for (mangled, expected) in [
            ("_ZN2ns5outerERSt6vectorIiSaIiEE", "ns::outer"),
            (
                "_ZNK2ns2OpclEiRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                "ns::Op::operator()",
            ),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_ZN2ns5outerEv@plt", "ns::outer@plt"),
            ("memcpy@@GLIBC_2.14", "memcpy@@GLIBC_2.14"),
            ("main", "main"),
            ("_Z", "_Z"),
            ("runtime.mallocgc", "runtime.mallocgc"),
        ] {
            assert_eq!(demangle(mangled.as_bytes()), expected);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_names_are_survived(name in prop::collection::vec(any::<u8>(), 0..60)) {
            demangle(&name);
        }

        #[test]
        fn almost_mangled_names_are_survived(
            prefix in prop_oneof![Just("_ZN"), Just("_Z"), Just("_R"), Just("_RNv")],
            tail in "[A-Za-z0-9_$.]{0,60}",
        ) {
            demangle(format!("{prefix}{tail}").as_bytes());
        }
    }
}
