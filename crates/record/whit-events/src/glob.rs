//! Shell patterns, as perf matches tracepoints and PMUs with them.

/// Whether `name` matches the shell pattern: `*` is any run, `?` any one character, `[abc]`,
/// `[a-z]` and `[!a]` one of a class. A `[` that is never closed stands for itself.
pub fn glob_matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where the last star stood, and up to where it has been tried: enough to back-track to,
    // since a later star can always take what an earlier one would.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(width) = match_one(&pattern[p..], name[n]) {
            p += width;
            n += 1;
        } else if let Some((at, tried)) = star {
            star = Some((at, tried + 1));
            p = at + 1;
            n = tried + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Whether a name holds a shell pattern at all.
pub fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// How many pattern characters match `c`, if they do.
fn match_one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '[' => match class_end(pattern) {
            Some(end) => class_matches(&pattern[1..end], c).then_some(end + 1),
            None => (c == '[').then_some(1),
        },
        &literal => (literal == c).then_some(1),
    }
}

/// Index of the `]` that closes the class; one right after the opening is a member.
fn class_end(pattern: &[char]) -> Option<usize> {
    let first_member = 1 + usize::from(pattern.get(1) == Some(&'!'));
    let offset = pattern.get(first_member + 1..)?.iter().position(|&c| c == ']')?;
    Some(first_member + 1 + offset)
}

fn class_matches(class: &[char], c: char) -> bool {
    let (negated, mut members) = match class.split_first() {
        Some(('!', rest)) => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    while let Some((&first, rest)) = members.split_first() {
        if let ['-', last, tail @ ..] = rest {
            found |= (first..=*last).contains(&c);
            members = tail;
        } else {
            found |= first == c;
            members = rest;
        }
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, expected) in [
            ("sched_*", "sched_switch", true),
            ("*", "", true),
            ("s*w*h", "sched_switch", true),
            ("s*w*x", "sched_switch", false),
            ("sys_?nter", "sys_enter", true),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[!a-c]x", "dx", true),
            ("[", "[", true),
            ("a[b", "a[b", true),
            ("[]]", "]", true),
            ("", "x", false),
        ] {
            assert_eq!(glob_matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
