//! Readable names for mangled ones, as perf prints them: Rust without the hash, C++ without
//! parameters and return type.

use std::borrow::Cow;

mod cpp;
mod wording;

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
    if (name.starts_with("_R") || has_legacy_hash(name))
        && let Ok(rust) = rustc_demangle::try_demangle(name)
    {
        let mut out = Bounded(String::new());
        std::fmt::write(&mut out, format_args!("{rust:#}")).ok()?;
        return Some(out.0);
    }
    cpp::demangle(name)
}

/// Whether the last part of a name is a hash, by which Rust's legacy names differ from C++ ones. More
/// may follow, such as `.llvm.1234`.
fn has_legacy_hash(name: &str) -> bool {
    name.rfind("17h").is_some_and(|at| {
        let hash = &name.as_bytes()[at + 3..];
        hash.len() > 16 && hash[16] == b'E' && hash[..16].iter().all(u8::is_ascii_hexdigit)
    })
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
            // A variable; without a hash this is no name of Rust.
            ("_ZN12_GLOBAL__N_15stateE", "(anonymous namespace)::state"),
            // Constructors of all kinds at once.
            ("_ZNSt6threadD5Ev", "std::thread::~thread"),
            ("_ZN2C53C53C5C5Ev", "_ZN2C53C53C5C5Ev"),
            ("_ZN2C53C5AC5Ev", "C5::C5A::C5A"),
            // An expression in the result that the parser does not know.
            (
                "_ZSt4swapINSt6thread2idEENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EESt21is_move_\
                 constructibleIS6_ESt18is_move_assignableIS6_EEE5valueEvE4typeERS6_SG_",
                "std::swap<std::thread::id>",
            ),
            // Template arguments that the parser does not know are no reason to name a part.
            ("_Z1fIXsrSt1aIiE5valueEEvv", "_Z1fIXsrSt1aIiE5valueEEvv"),
            (
                "_ZN4llvm15AnalysisManagerINS_8FunctionEJEE5clearEv",
                "llvm::AnalysisManager<llvm::Function>::clear",
            ),
            ("_Z3idxIJLm0ELm1EEEmv", "idx<0ul, 1ul>"),
            ("_Z1fILj8ELx1ELyn2ELl256ELc97EEvv", "f<8u, 1ll, -2ull, 256l, (char)97>"),
            ("_ZThn8_N1A1fEi", "non-virtual thunk to A::f"),
            ("_ZTv0_n24_N1AD1Ev", "virtual thunk to A::~A"),
            ("_ZTcv0_n24_v0_n32_N1A1fEv", "covariant return thunk to A::f"),
            ("_ZTV1A", "vtable for A"),
            ("_ZTT1A", "VTT for A"),
            ("_ZTC1B0_1A", "construction vtable for A-in-B"),
            ("_Zli3_kmy", "operator\"\" _km"),
            ("_ZNKR1A1fEv", "A::f"),
            ("_ZNK1AcvKiEv", "A::operator int const"),
            ("main", "main"),
            ("_Z", "_Z"),
            ("runtime.mallocgc", "runtime.mallocgc"),
        ] {
            assert_eq!(demangle(mangled.as_bytes()), expected);
        }
    }

    #[test]
    fn deeply_nested_names_fit_a_small_stack() {
        let nested = |open: &str, inner: &str, close: &str, depth: usize| {
            format!("_Z1fI{}{inner}{}Evv", open.repeat(depth), close.repeat(depth))
        };
        std::thread::Builder::new()
            .stack_size(1 << 20)
            .spawn(move || {
                for depth in [10, 50, 90, 180, 1000, 4000] {
                    for (open, inner, close) in [
                        ("P", "i", ""),
                        ("1AI", "i", "E"),
                        ("N1A1BI", "i", "EE"),
                        ("PF", "v", "vE"),
                        ("St4pairIi", "i", "E"),
                        ("Xps", "Li1E", "E"),
                        ("A3_", "i", ""),
                        ("M1A", "i", ""),
                        ("Z1f", "E1A", ""),
                        ("J", "i", "E"),
                    ] {
                        demangle(nested(open, inner, close, depth).as_bytes());
                    }
                }
                assert_eq!(demangle(nested("1AI", "i", "E", 20).as_bytes())[..8], *"f<A<A<A<");
            })
            .expect("a thread")
            .join()
            .expect("no overflow");
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
