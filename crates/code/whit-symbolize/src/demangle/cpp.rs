//! Names of C++ compilers (Itanium ABI).

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};

use super::{Bounded, wording};

/// Constructors and destructors of a name that are tried under another number.
const MAX_CONSTRUCTORS: usize = 64;

/// Nested productions of a name. LLVM's own names have up to 112; the parser's default is 96. A thread of
/// 1 MiB survives names of this depth.
const MAX_DEPTH: u32 = 192;

pub(super) fn demangle(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    parse(name).or_else(|| parse_unified(name))
}

/// Types of parameters and results are not printed, so one that the parser does not know is no
/// reason to refuse the name in front of it. GCC's `sr` expressions in results are such types.
fn parse(name: &str) -> Option<String> {
    let options = ParseOptions::default().recursion_limit(MAX_DEPTH);
    let (symbol, rest) = BorrowedSymbol::with_tail_and_options(name.as_bytes(), &options).ok()?;
    if !ends_the_name(rest) {
        return None;
    }
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(MAX_DEPTH);
    let mut out = Bounded(String::new());
    symbol.structured_demangle(&mut out, &options).ok()?;
    Some(wording::of_binutils(name, &out.0))
}

/// Whether text that the parser leaves belongs to no name: template arguments (`I`) and tags (`B`)
/// would. Types begin with a letter or a digit.
fn ends_the_name(rest: &[u8]) -> bool {
    rest.first()
        .is_none_or(|&first| first.is_ascii_alphanumeric() && !matches!(first, b'I' | b'B' | b'E'))
}

/// GCC's number 5 stands for all variants of a constructor or destructor (`C5`, `D5`, `CI5`); the
/// parser knows 1 to 4.
fn parse_unified(name: &str) -> Option<String> {
    name.match_indices('5')
        .filter(|&(at, _)| ["C", "D", "CI"].iter().any(|kind| name[..at].ends_with(kind)))
        .take(MAX_CONSTRUCTORS)
        .find_map(|(at, _)| parse(&format!("{}1{}", &name[..at], &name[at + 1..])))
}
