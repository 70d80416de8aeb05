//! Demangled names in the words of binutils, which perf and c++filt print.

use std::borrow::Cow;

/// Integer literals of these types have a suffix instead of a cast.
const SUFFIXES: [(&str, &str); 5] = [
    ("(unsigned int)", "u"),
    ("(long)", "l"),
    ("(unsigned long)", "ul"),
    ("(long long)", "ll"),
    ("(unsigned long long)", "ull"),
];

const QUALIFIERS: [&str; 4] = [" const", " volatile", " &&", " &"];

pub(super) fn of_binutils(mangled: &str, name: &str) -> String {
    let name = special(mangled, name).unwrap_or(Cow::Borrowed(name));
    let mut out = String::with_capacity(name.len());
    let mut rest = &name[..];
    while let Some(at) = rest.find(['(', ',']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        rest = if let Some(end) = behind_empty_packs(from) {
            end
        } else if let Some((digits, suffix, behind)) = literal(from) {
            out.push_str(digits);
            out.push_str(suffix);
            behind
        } else {
            out.push_str(&from[..1]);
            &from[1..]
        };
    }
    out.push_str(rest);
    let end = without_qualifiers(&out).len();
    out.truncate(end);
    out
}

/// Qualifiers of a function belong to its parameters. Those of the type that an operator converts to
/// stay.
fn without_qualifiers(mut name: &str) -> &str {
    let last = name.rfind("::").map_or(name, |at| &name[at + 2..]);
    if last.starts_with("operator ") {
        return name;
    }
    while let Some(shorter) = QUALIFIERS.iter().find_map(|qualifier| name.strip_suffix(qualifier)) {
        name = shorter;
    }
    name
}

/// Names of code and data that compilers make for a class or function.
fn special<'a>(mangled: &str, name: &'a str) -> Option<Cow<'a, str>> {
    let thunk = |kind: &str| {
        let inner = name.strip_prefix("{virtual override thunk(")?.strip_suffix(")}")?;
        Some(format!("{kind} thunk to {}", without_offsets(inner)))
    };
    let text = match mangled.get(2..4)? {
        "TV" => format!("vtable for {}", name.strip_prefix("{vtable(")?.strip_suffix(")}")?),
        "TT" => format!("VTT for {}", name.strip_prefix("{vtt(")?.strip_suffix(")}")?),
        "Th" => thunk("non-virtual")?,
        "Tv" => thunk("virtual")?,
        "Tc" => thunk("covariant return")?,
        "TC" => {
            let (derived, base) =
                name.strip_prefix("construction vtable for ")?.split_once("-in-")?;
            format!("construction vtable for {base}-in-{derived}")
        }
        _ => return literal_operator(name),
    };
    Some(Cow::Owned(text))
}

/// `operator_km::operator ""`, as the parser prints it, is `operator"" _km`.
fn literal_operator(name: &str) -> Option<Cow<'_, str>> {
    let whole = name.strip_suffix("::operator \"\"")?;
    let (scope, suffix) = whole.rsplit_once("operator")?;
    Some(Cow::Owned(format!("{scope}operator\"\" {suffix}")))
}

/// `{offset(-8)}, function` without the offsets.
fn without_offsets(mut thunk: &str) -> &str {
    while let Some((_, behind)) = thunk.strip_prefix('{').and_then(|inner| inner.split_once(")}, "))
    {
        thunk = behind;
    }
    thunk
}

/// Empty packs are no arguments of a template, and no parameters: the end of the list behind them.
fn behind_empty_packs(list: &str) -> Option<&str> {
    let packs = list.strip_prefix(',')?.trim_start_matches([',', ' ']);
    let end = packs.strip_prefix("&&").unwrap_or(packs);
    end.starts_with(['>', ')']).then_some(end)
}

/// The digits of a literal with a cast in front, the suffix for it, and the text behind.
fn literal(text: &str) -> Option<(&str, &'static str, &str)> {
    SUFFIXES.iter().find_map(|(cast, suffix)| {
        let number = text.strip_prefix(cast)?;
        let digits = number.strip_prefix('-').unwrap_or(number);
        let behind = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        (behind.len() < digits.len())
            .then(|| (&number[..number.len() - behind.len()], *suffix, behind))
    })
}
