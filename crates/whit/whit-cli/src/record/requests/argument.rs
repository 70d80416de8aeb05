//! Arguments of the probes that programs were built with, in the kernel's language.
//!
//! The assembler writes `8@%rdi`, `-4@$7` or `8@-24(%rbp)`; the kernel wants `%di:u64`, `\7:s32` and `-24(%bp):u64`.

/// `arg1` or `arg1:string`, as a field; `None` where the argument has another form.
pub(super) fn field(key: &str, arguments: &str) -> Option<String> {
    let (argument, kind) =
        key.split_once(':').map_or((key, None), |(name, kind)| (name, Some(kind)));
    let number: usize = argument.strip_prefix("arg")?.parse().ok()?;
    let (size, operand) =
        arguments.split_whitespace().nth(number.checked_sub(1)?)?.split_once('@')?;
    let operand = operand_of(operand)?;
    Some(match kind {
        // The argument is the address of the text.
        Some(kind @ ("string" | "ustring")) => format!("+0({operand}):{kind}"),
        Some(kind) => format!("{operand}:{kind}"),
        None => format!("{operand}:{}", type_of(size)?),
    })
}

fn type_of(size: &str) -> Option<&'static str> {
    Some(match size {
        "1" => "u8",
        "2" => "u16",
        "4" => "u32",
        "8" => "u64",
        "-1" => "s8",
        "-2" => "s16",
        "-4" => "s32",
        "-8" => "s64",
        _ => return None,
    })
}

fn operand_of(operand: &str) -> Option<String> {
    if let Some(register) = operand.strip_prefix('%') {
        return Some(format!("%{}", register_of(register)?));
    }
    if let Some(number) = operand.strip_prefix('$') {
        return number.parse::<i64>().ok().map(|number| format!("\\{number}"));
    }
    let (offset, register) = operand.strip_suffix(')')?.split_once("(%")?;
    let offset = if offset.is_empty() { 0 } else { offset.parse::<i64>().ok()? };
    Some(format!("{offset:+}(%{})", register_of(register)?))
}

/// The kernel's name of a register of x86-64 or of a part of one.
fn register_of(name: &str) -> Option<String> {
    if let Some(number) = name.strip_prefix('r').map(|rest| rest.trim_end_matches(['d', 'w', 'b']))
        && matches!(number.parse(), Ok(8u8..=15))
    {
        return Some(format!("r{number}"));
    }
    let name = name.strip_prefix(['r', 'e']).unwrap_or(name);
    let name = match name {
        "al" | "bl" | "cl" | "dl" => return Some(format!("{}x", &name[..1])),
        "sil" | "dil" | "bpl" | "spl" => &name[..2],
        name => name,
    };
    ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"].contains(&name).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_the_kernel_s_words() {
        let arguments = "8@%rdi -4@$-7 8@-24(%rbp) 1@%r10b 4@%eax 2@(%rsp) 8@name(%rip) 8@%xmm0";
        for (key, wanted) in [
            ("arg1", Some("%di:u64")),
            ("arg1:string", Some("+0(%di):string")),
            ("arg2", Some("\\-7:s32")),
            ("arg3", Some("-24(%bp):u64")),
            ("arg3:ustring", Some("+0(-24(%bp)):ustring")),
            ("arg4", Some("%r10:u8")),
            ("arg5:x32", Some("%ax:x32")),
            ("arg6", Some("+0(%sp):u16")),
            ("arg7", None),
            ("arg8", None),
            ("arg9", None),
            ("arg0", None),
            ("di", None),
        ] {
            assert_eq!(field(key, arguments).as_deref(), wanted, "{key}");
        }
        assert_eq!(register_of("r8"), Some("r8".to_owned()));
        assert_eq!(register_of("sil"), Some("si".to_owned()));
        assert_eq!(register_of("rip"), None);
    }
}
