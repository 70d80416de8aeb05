/// Leaves out lines that are comments alone; a comment beside code stays. `Err` is the number of a line that lines alone
/// do not tell apart: code behind the end of a long comment, or a text over several lines.
fn without_comments(source: &str) -> Result<String, usize> {
    let (mut kept, mut in_comment) = (String::with_capacity(source.len()), false);
    for (index, line) in source.lines().enumerate() {
        let text = line.trim();
        if in_comment || text.starts_with("/*") {
            let skipped = if in_comment { 0 } else { "/*".len() };
            let end = text[skipped..].find("*/").map(|at| skipped + at + "*/".len());
            match end {
                None => {
                    in_comment = true;
                    continue;
                }
                Some(end) if end == text.len() => {
                    in_comment = false;
                    continue;
                }
                Some(_) if in_comment => return Err(index + 1),
                // A comment in front of code.
                Some(_) => {}
            }
        } else if text.starts_with("//") {
            continue;
        }
        if text.matches('`').count() % 2 == 1 {
            return Err(index + 1);
        }
        kept.push_str(line);
        kept.push('\n');
    }
    if in_comment { Err(source.lines().count()) } else { Ok(kept) }
}
