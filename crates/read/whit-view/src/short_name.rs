//! Function names in little room, by the rule of the page: parameters go first, then template arguments, then scopes.
//! The method stays.

use std::borrow::Cow;

/// Stands for the parts that are left out.
const LEFT_OUT: char = '…';
/// Stands behind the name of an inlined function.
const INLINED: &str = " (inlined)";
/// Characters of a name that its mark leaves at least.
const MIN_MARKED: usize = 12;
/// Fewer characters of a type do not tell it from others.
const MIN_OWNER: usize = 4;

/// `name` in at most `max` characters.
pub fn shorten(name: &str, max: usize) -> Cow<'_, str> {
    if name.chars().count() <= max {
        return Cow::Borrowed(name);
    }
    if max < 2 {
        return Cow::Borrowed("");
    }
    let plain = name.strip_suffix(INLINED);
    let room = max.saturating_sub(INLINED.len());
    match plain {
        Some(plain) if room >= MIN_MARKED => Cow::Owned(shorten_plain(plain, room) + INLINED),
        plain => Cow::Owned(shorten_plain(plain.unwrap_or(name), max)),
    }
}

fn shorten_plain(name: &str, max: usize) -> String {
    let fits = |form: &str| form.chars().count() <= max;
    let plain = fold(&name.replace("(anonymous namespace)", "{anon}"), '(', ')', "");
    for form in [name, &plain] {
        if fits(form) {
            return form.to_owned();
        }
    }
    let bare = fold_arguments(&plain);
    if fits(&bare) {
        return bare;
    }
    let mut shortest = &bare[..];
    for end in scope_ends(&bare) {
        let (longer, rest) = (shortest, &bare[end..]);
        if rest.chars().count() < max {
            let owner = longer.strip_suffix(rest).and_then(|owner| owner.strip_suffix("::"));
            let method = owner.and_then(|owner| with_part_of(owner, rest, max));
            return method.unwrap_or_else(|| format!("{LEFT_OUT}{rest}"));
        }
        shortest = rest;
    }
    let mut cut: String = shortest.chars().take(max - 1).collect();
    cut.push(LEFT_OUT);
    cut
}

/// A method alone says little: the beginning of its type stands before it, where there is space. `None` for other names.
fn with_part_of(owner: &str, method: &str, max: usize) -> Option<String> {
    let space = max.checked_sub(method.chars().count() + "…::".chars().count())?;
    let is_method = scope_ends(method).next().is_none();
    (is_method && space >= MIN_OWNER)
        .then(|| format!("{}{LEFT_OUT}::{method}", owner.chars().take(space).collect::<String>()))
}

/// The name with `<…>` for template arguments.
pub(crate) fn fold_arguments(name: &str) -> String {
    fold(name, '<', '>', "<…>")
}

/// Where the text behind each scope begins.
fn scope_ends(name: &str) -> impl Iterator<Item = usize> {
    let ends = name.match_indices("::").map(|(at, scope)| at + scope.len());
    let folders = name.match_indices('/').map(|(at, _)| at + 1);
    let mut ends: Vec<_> = ends.chain(folders).collect();
    ends.sort_unstable();
    let begins_name = |end: &usize| name[*end..].starts_with(|c| c != ':' && c != '/');
    ends.into_iter().filter(begins_name).collect::<Vec<_>>().into_iter()
}

/// Operators, Go's `(*Receiver)`, and `<T as Trait>` of Rust, which is the scope itself.
fn belongs_to_name(before: &str, open: char) -> bool {
    match open {
        '(' => before.ends_with("operator") || before.ends_with('.'),
        _ => before.ends_with("operator") || before.ends_with("operator<"),
    }
}

/// The name with each outermost group in brackets replaced.
fn fold(name: &str, open: char, close: char, filler: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let (mut depth, mut before) = (0usize, ' ');
    for (at, c) in name.char_indices() {
        if c == open && (depth > 0 || !belongs_to_name(&name[..at], open)) {
            if depth == 0 {
                short.push_str(filler);
            }
            depth += 1;
        } else if c == close && depth > 0 && before != '-' {
            depth -= 1;
        } else if depth == 0 {
            short.push(c);
        }
        before = c;
    }
    // Brackets that do not pair up belong to no group; the name stays as it is.
    if depth == 0 && !short.is_empty() { short } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_method_stays() {
        let name = "std::_Rb_tree<int, std::pair<int const, Foo>>::_M_insert_unique(std::pair<int, Foo>&&)";
        assert_eq!(shorten(name, 200), name);
        assert_eq!(
            shorten(name, 73),
            "std::_Rb_tree<int, std::pair<int const, Foo>>::_M_insert_unique"
        );
        assert_eq!(shorten(name, 40), "std::_Rb_tree<…>::_M_insert_unique");
        assert_eq!(shorten(name, 30), "…_Rb_tree<…>::_M_insert_unique");
        assert_eq!(shorten(name, 20), "…_M_insert_unique");
        assert_eq!(shorten(name, 10), "_M_insert…");
        assert_eq!((shorten(name, 1), shorten("x", 1)), ("".into(), "x".into()));
    }

    #[test]
    fn a_method_keeps_the_beginning_of_its_type() {
        let name = "llvm::ModuleToPostOrderCGSCCPassAdaptor::run";
        assert_eq!(shorten(name, 40), "…ModuleToPostOrderCGSCCPassAdaptor::run");
        assert_eq!(shorten(name, 24), "ModuleToPostOrderC…::run");
        assert_eq!(shorten(name, 10), "Modu…::run");
        assert_eq!(shorten(name, 9), "…run");
        assert_eq!(
            shorten("std::_Rb_tree<int>::_M_insert_unique()", 24),
            "_Rb_t…::_M_insert_unique"
        );
        assert_eq!(shorten("github.com/organisation/server.handle", 20), "…server.handle");
    }

    #[test]
    fn brackets_of_names_stay() {
        assert_eq!(shorten("Long::operator<(Other const&)", 20), "Long::operator<");
        assert_eq!(shorten("main.(*Server).handle(int)", 24), "main.(*Server).handle");
        assert_eq!(shorten("std::operator<< <std::char_traits<char> >", 24), "std::operator<< <…>");
        assert_eq!(shorten("broken<unsigned long", 10), "broken<un…");
    }

    #[test]
    fn the_mark_of_an_inlined_function_stays_where_it_has_room() {
        assert_eq!(
            shorten("a::b::long_function(int) (inlined)", 28),
            "…b::long_function (inlined)"
        );
        assert_eq!(shorten("a::b::long_function(int) (inlined)", 16), "…long_function");
    }

    proptest! {
        #[test]
        fn no_name_is_longer_than_its_room(name in "[a-c<>(): \\-/é…]{0,60}", max in 0usize..70) {
            prop_assert!(shorten(&name, max).chars().count() <= max);
        }
    }
}
