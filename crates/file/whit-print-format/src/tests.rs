//! Formats as kernels write them, and formats that no kernel would write.

use super::*;
use proptest::prelude::*;

const FIELDS: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:int error;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:u32 flags;\toffset:20;\tsize:4;\tsigned:0;\n\
    \tfield:unsigned long args[2];\toffset:24;\tsize:16;\tsigned:0;\n\
    \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;\n\
    \tfield:__rel_loc u8[] bytes;\toffset:44;\tsize:4;\tsigned:0;\n\
    \tfield:const char * text;\toffset:48;\tsize:8;\tsigned:0;\n\
    \tfield:s16 small;\toffset:56;\tsize:2;\tsigned:1;\n\n";

fn event(print_fmt: &str) -> TraceEvent {
    let text = format!("name: e\nID: 7\nformat:\n{FIELDS}print fmt: {print_fmt}\n");
    TraceEvent::parse("test", &text, 8).unwrap()
}

fn record() -> Vec<u8> {
    let mut raw = vec![7, 0, 0, 0, 42, 0, 0, 0];
    raw.extend(b"sleepy\0x");
    raw.extend((-11i32).to_le_bytes());
    raw.extend(0x8000_0005u32.to_le_bytes());
    raw.extend(0x1234u64.to_le_bytes());
    raw.extend(u64::MAX.to_le_bytes());
    raw.extend([60, 0, 6, 0]);
    raw.extend([18, 0, 3, 0]);
    raw.extend(0xffff_8000u64.to_le_bytes());
    raw.extend((-3i16).to_le_bytes());
    raw.extend([0, 0]);
    raw.extend(b"eth-0\0");
    raw.extend([0xde, 0xad, 0x01]);
    raw
}

fn functions(address: u64) -> Option<(Arc<str>, u64)> {
    (address == 0x1234).then(|| ("do_it".into(), 0x14))
}

fn printed(print_fmt: &str, raw: &[u8]) -> String {
    let context = TraceContext { strings: &(), function_at: &functions };
    let mut out = Vec::new();
    TraceFormat::new(&event(print_fmt), 8).append(raw, &context, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn print(print_fmt: &str) -> String {
    printed(print_fmt, &record())
}

#[test]
fn fields_of_all_kinds() {
    assert_eq!(print(r#""comm=%s pid=%d", REC->comm, REC->common_pid"#), "comm=sleepy pid=42");
    assert_eq!(print(r#""%s|%s", __get_str(name), __get_rel_str(bytes)"#), "eth-0|\u{7ad}\u{1}");
    assert_eq!(
        print(r#""%lx %016lx %d", REC->args[0], REC->args[1], REC->error"#),
        "1234 ffffffffffffffff -11"
    );
    assert_eq!(
        print(r#""%u %hd %5d|%-5d|", REC->flags, REC->small, REC->small, REC->small"#),
        "2147483653 -3    -3|-3   |"
    );
    assert_eq!(print(r#""%c%c 100%% \"x\"", REC->comm[0], 'y'"#), "sy 100% \"x\"");
    assert_eq!(print(r#""%s", REC->text"#), "ffff8000");
    assert_eq!(print(r#""%p %p", (void *)REC->args[0], ((void *)0)"#), "0x1234 (nil)");
    assert_eq!(
        print(r#""%pS %ps %pS", (void *)REC->args[0], (void *)REC->args[0], (void *)REC->text"#),
        "do_it+0x14 do_it 0xffff8000"
    );
}

#[test]
fn flags_symbols_and_bytes() {
    let flags =
        r#""%s", __print_flags(REC->flags, "|", { 1, "A" }, { 2, "B" }, { (1UL << 2), "C" })"#;
    assert_eq!(print(flags), "A|C|0x80000000");
    let symbol = r#""%s", __print_symbolic(REC->error, { -11, "EAGAIN" }, { UNKNOWN, "?" })"#;
    assert_eq!(print(symbol), "EAGAIN");
    assert_eq!(print(r#""%s", __print_symbolic(REC->small, { 3, "x" })"#), "0xfffffffffffffffd");
    let hex = r#""%s %s", __print_hex(__get_dynamic_array(bytes), __get_dynamic_array_len(bytes)), __print_hex_str(__get_rel_dynamic_array(bytes), 2)"#;
    assert_eq!(print(hex), "de ad 01 dead");
    assert_eq!(
        print(r#""%s", __print_array(REC->args, 2, sizeof(u64))"#),
        "{0x1234,0xffffffffffffffff}"
    );
    assert_eq!(
        print(r#""%*phC|%*phN", 2, __get_dynamic_array(bytes), 9, __get_dynamic_array(bytes)"#),
        "de:ad|dead01"
    );
    assert_eq!(
        print(r#""%s %s", __get_cpumask(bytes), __get_bitmask(bytes)"#),
        "1-4,6-8,10-11,13,15-16 01adde"
    );
    assert_eq!(print(r#""%*pbl", 8, __get_dynamic_array(bytes)"#), "1-4,6-7");
}

#[test]
fn expressions_follow_c() {
    let number = |expression: &str| print(&format!(r#""%lld", {expression}"#));
    assert_eq!(number("1 + 2 * 3 - 4 / 2"), "5");
    assert_eq!(number("REC->error / 2 + (REC->error < 0 ? 100 : 200)"), "95");
    assert_eq!(number("(REC->flags & ~0x5) >> 31"), "1");
    assert_eq!(number("REC->flags >> 31 == 1 && !0 || 0"), "1");
    assert_eq!(number("(unsigned char)REC->error"), "245");
    assert_eq!(number("(int)(short)0xfffe"), "-2");
    assert_eq!(number("REC->error >> 1"), "-6");
    assert_eq!(number("REC->args[1] >> 60"), "15");
    assert_eq!(number("1 ? 2 : 0 ? 3 : 4"), "2");
    assert_eq!(number("7 % 0 + 7 / 0"), "0");
    assert_eq!(number("(REC)->small"), "-3");
    assert_eq!(number("((u8 *)__get_dynamic_array(bytes))[1]"), "173");
    assert_eq!(number("__builtin_expect(!!(REC->error), 0)"), "1");
    assert_eq!(number("((dev_t)REC->flags) >> 20 | sizeof(REC->comm)"), "2056");
    assert_eq!(number("__get_str(name)[3]"), "45");
    let state = r#""%s%s", (REC->flags & 7) ? __print_flags(REC->flags & 7, "|", { 1, "S" }, { 4, "T" }) : "R", REC->flags & 8 ? "+" : """#;
    assert_eq!(print(state), "S|T");
}

#[test]
fn unsupported_formats_are_printed_field_by_field() {
    let fields = " comm=sleepy error=-11 flags=2147483653 args=ARRAY[34, 12, 00, 00, 00, 00, 00, 00, \
                  ff, ff, ff, ff, ff, ff, ff, ff] name=eth-0 bytes=ARRAY[de, ad, 01] text=0xffff8000 small=-3";
    for print_fmt in [
        r#""%d", mc_event_error_type(REC->error)"#,
        r#""%d", ({ int x = 1; x; })"#,
        r#""%d %d", REC->error"#,
        r#""%d", REC->nothing"#,
        r#""%d", __get_str(name)"#,
        r#""%d", (REC->error"#,
        r#""%d" REC->error"#,
        "",
    ] {
        let event = event(print_fmt);
        let format = TraceFormat::new(&event, 8);
        assert!(!format.error().unwrap().to_string().is_empty());
        assert_eq!(print(print_fmt), format!("[FAILED TO PARSE]{fields}"), "{print_fmt}");
    }
}

#[test]
fn depth_is_bounded() {
    let error = |expression: String| {
        TraceFormat::new(&event(&format!(r#""%d", {expression}"#)), 8).error().cloned()
    };
    assert_eq!(error("(".repeat(100_000)), Some(TraceFormatError::TooDeep));
    assert_eq!(error("-".repeat(100_000)), Some(TraceFormatError::TooDeep));
    assert_eq!(error("(u32)".repeat(100_000)), Some(TraceFormatError::TooDeep));
    assert_eq!(error("REC->error + ".repeat(100_000) + "1"), Some(TraceFormatError::TooDeep));
    assert_eq!(error("REC->error ? 1 : ".repeat(100_000) + "1"), Some(TraceFormatError::TooDeep));
    assert_eq!(error("REC->error + ".repeat(100) + "1"), None);
}

#[test]
fn padding_is_bounded() {
    assert!(print(r#""%999999999d", 1"#).len() < 2000);
    assert!(print(r#""%*d", 0x7fffffff, 1"#).len() < 2000);
}

proptest! {
    #[test]
    fn records_of_any_bytes_and_length(raw in proptest::collection::vec(any::<u8>(), 0..80)) {
        let everything = r#""%s %s %d %lx %s %s %s %pI4 %pISpc %pU %*ph %s %c", REC->comm, __get_str(name),
            REC->error / REC->small, REC->args[REC->error], REC->text,
            __print_flags(REC->flags, "|", { 1, "A" }), __print_hex(REC->comm, REC->error),
            REC->error, __get_sockaddr(bytes), REC->args, REC->error, __get_dynamic_array(bytes),
            __print_array(__get_dynamic_array(bytes), REC->error, REC->small), REC->comm[REC->small]"#;
        prop_assert!(!printed(everything, &raw).contains("FAILED"));
        printed("", &raw);
    }

    #[test]
    fn formats_of_any_words(words in proptest::collection::vec(0usize..32, 0..24)) {
        const WORDS: [&str; 32] = [
            "REC->error", "REC->comm", "REC->name", "__get_str(", "name", "bytes", ")", "(", ",", "{", "}",
            "__print_flags(", "__print_symbolic(", "__print_hex(", "sizeof(", "unsigned", "long", "*", "-",
            "~", "!", "?", ":", "[", "]", "0x1f", "1ULL", "\"s\"", "'c'", "&&", ">>", "__get_dynamic_array(",
        ];
        let mut text = String::from("\"%d %s %p\", ");
        words.iter().for_each(|word| text.push_str(WORDS[*word]));
        print(&text);
    }
}
