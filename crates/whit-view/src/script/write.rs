//! The text of one sample.

use std::io::{self, Write};

use super::branches::append_branches;
use super::fields::Fields;
use super::instructions::append_instructions;
use super::registers::append_registers;
use super::sample::{ScriptFrame, ScriptSample, TraceRecord};
use super::text::{append_dso, append_symbol, decimal, hex, left, pad, right, signed, zero_padded};
use crate::hists::data_source;
use whit_perfdata::record::misc;
use whit_types::{CpuId, OutsideText, Pid, Tid, TimestampNs, escape_appended};

/// How samples of one event are laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// The fields to print.
    pub fields: Fields,
    /// Width of the event's name: that of the longest of the recording, as they are printed.
    pub event_width: usize,
    /// Print time stamps to the nanosecond.
    pub nanoseconds: bool,
    /// The event is recorded with call chains: frames then stand in lines of their own.
    pub has_callchain: bool,
}

/// Appends the sample's text, with the line end, to `out`.
pub fn append_sample(out: &mut Vec<u8>, sample: &ScriptSample<'_>, layout: &Layout) {
    let fields = layout.fields;
    append_start(out, sample, layout);
    if fields.has(Fields::PERIOD) {
        decimal(out, sample.period, 10);
        out.push(b' ');
    }
    if fields.has(Fields::EVENT) {
        right(out, &sample.event.escaped(), layout.event_width);
        out.extend_from_slice(b": ");
    }
    if fields.has(Fields::FLAGS) {
        out.extend_from_slice(b"  ");
        left(out, sample.flags, 21);
        out.push(b' ');
    }
    if fields.has(Fields::TRACE)
        && let Some(TraceRecord { format, raw, context }) = sample.trace
    {
        let start = out.len();
        format.append(raw, &context, out);
        // Strings of the record, and the format itself.
        escape_appended(out, start);
    }
    if fields.has(Fields::ADDR) {
        hex(out, sample.addr, 16);
        if let Some(frame) = &sample.addr_frame {
            append_symbol(out, frame, fields);
            append_dso(out, frame, fields);
        }
    }
    if fields.has(Fields::DATA_SRC) {
        hex(out, sample.data_src, 16);
        out.push(b' ');
        out.extend_from_slice(data_source::whole(sample.data_src).as_bytes());
    }
    if fields.has(Fields::WEIGHT) {
        decimal(out, sample.weight, 16);
    }
    if fields.has(Fields::INS_LAT) {
        decimal(out, u64::from(sample.instruction_latency), 16);
    }
    if fields.has(Fields::IP) {
        out.push(if layout.has_callchain { b'\n' } else { b' ' });
        (sample.frames)(out);
    }
    if fields.has(Fields::IREGS) {
        append_registers(out, sample.intr_regs, sample.arch);
    }
    if fields.has(Fields::UREGS) {
        append_registers(out, sample.user_regs, sample.arch);
    }
    if fields.has(Fields::BRSTACK | Fields::BRSTACKSYM) {
        append_branches(out, sample, fields);
    }
    if let Some(bytes) = sample.bpf_output.filter(|_| fields.has(Fields::BPF_OUTPUT)) {
        append_bpf_output(out, bytes);
    }
    if fields.has(Fields::BRSTACKINSN) {
        append_instructions(out, sample);
    }
    if fields.has(Fields::PHYS_ADDR) {
        hex(out, sample.phys_addr, 16);
    }
    let (data_page, code_page) = sample.page_sizes_bytes;
    for (field, bytes) in [(Fields::DATA_PAGE_SIZE, data_page), (Fields::CODE_PAGE_SIZE, code_page)]
    {
        if fields.has(field) {
            out.push(b' ');
            out.extend_from_slice(data_source::page_size(bytes).as_bytes());
        }
    }
    if fields.has(Fields::CGROUP) {
        out.push(b' ');
        sample.cgroup.unwrap_or(OutsideText::new("unknown")).append_to(out);
    }
    out.push(b'\n');
}

/// Writes the sample's text to `out`, by way of `buffer`, whose room is used again.
///
/// # Errors
/// The error of `out`.
pub fn write_sample(
    out: &mut impl Write,
    sample: &ScriptSample<'_>,
    layout: &Layout,
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    buffer.clear();
    append_sample(buffer, sample, layout);
    out.write_all(buffer)
}

fn append_start(out: &mut Vec<u8>, sample: &ScriptSample<'_>, layout: &Layout) {
    let ScriptSample { comm, pid, tid, cpu, time, misc, .. } = *sample;
    append_line_start(out, &LineStart { comm, pid, tid, cpu, time, misc, marks: "" }, layout);
}

/// The fields that samples and other records begin with.
#[derive(Clone, Copy, Debug)]
pub struct LineStart<'a> {
    /// Command name.
    pub comm: OutsideText<&'a str>,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// CPU, where recorded.
    pub cpu: Option<CpuId>,
    /// Time stamp.
    pub time: TimestampNs,
    /// `misc` of the record.
    pub misc: u16,
    /// Letters that the type of the record adds to those of the mode of the CPU.
    pub marks: &'a str,
}

/// Appends the fields that a line begins with.
pub fn append_line_start(out: &mut Vec<u8>, sample: &LineStart<'_>, layout: &Layout) {
    let fields = layout.fields;
    if fields.has(Fields::COMM) {
        let width = if fields.has(Fields::IP) && layout.has_callchain { 0 } else { 16 };
        right(out, &sample.comm.escaped(), width);
        out.push(b' ');
    }
    if fields.has(Fields::PID) {
        signed(out, sample.pid.0, 5);
        if fields.has(Fields::TID) {
            out.push(b'/');
            let start = out.len();
            signed(out, sample.tid.0, 0);
            pad(out, 5usize.saturating_sub(out.len() - start));
        }
        out.push(b' ');
    } else if fields.has(Fields::TID) {
        signed(out, sample.tid.0, 5);
        out.push(b' ');
    }
    if fields.has(Fields::CPU) {
        out.push(b'[');
        match sample.cpu {
            Some(cpu) => zero_padded(out, u64::from(cpu.0), 3),
            None => out.extend_from_slice(b"-01"),
        }
        out.extend_from_slice(b"] ");
    }
    if fields.has(Fields::MISC) {
        append_misc(out, sample.misc, sample.marks);
    }
    if fields.has(Fields::TIME) {
        append_time(out, sample.time.0, layout.nanoseconds);
    }
}

/// Modes of the CPU by their letters. perf prints each whose bits are all set, not only the mode itself.
const MODES: [(u16, u8); 5] = [
    (misc::KERNEL, b'K'),
    (misc::USER, b'U'),
    (misc::HYPERVISOR, b'H'),
    (misc::GUEST_KERNEL, b'G'),
    (misc::GUEST_USER, b'g'),
];
/// Width of the field, with the blanks behind it.
const MISC_WIDTH: usize = 6;

fn append_misc(out: &mut Vec<u8>, bits: u16, marks: &str) {
    let start = out.len();
    out.extend(MODES.iter().filter(|(mode, _)| bits & mode == *mode).map(|(_, letter)| letter));
    out.extend_from_slice(marks.as_bytes());
    let length = out.len() - start;
    pad(out, MISC_WIDTH.saturating_sub(length).max(1));
}

/// Bytes in a line of a BPF program's output.
const BPF_LINE_BYTES: usize = 8;

/// Lines of bytes, as numbers and as characters, and the text where they are one.
fn append_bpf_output(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'\n');
    for (line, part) in bytes.chunks(BPF_LINE_BYTES).enumerate() {
        right(out, if line == 0 { "BPF output:" } else { "           " }, 17);
        // Writing to a Vec cannot fail.
        let _ = write!(out, " {:04x}:", line * BPF_LINE_BYTES);
        part.iter().for_each(|byte| drop(write!(out, " {byte:02x}")));
        let missing = BPF_LINE_BYTES - part.len();
        pad(out, 3 * missing + 2);
        let shown = |byte: &u8| if matches!(byte, b' '..=b'~') { *byte } else { b'.' };
        out.extend(part.iter().map(shown));
        pad(out, missing);
        out.push(b'\n');
    }
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let is_text = text.len() < bytes.len()
        && text.iter().all(|byte| matches!(byte, b' '..=b'~'))
        && bytes[text.len()..].iter().all(|byte| *byte == 0);
    if is_text {
        right(out, "BPF string:", 17);
        out.extend_from_slice(b" \"");
        out.extend_from_slice(text);
        out.extend_from_slice(b"\"\n");
    }
}

fn append_time(out: &mut Vec<u8>, time_ns: u64, nanoseconds: bool) {
    let (seconds, rest) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    decimal(out, seconds, 5);
    out.push(b'.');
    if nanoseconds {
        zero_padded(out, rest, 9);
    } else {
        zero_padded(out, rest / 1000, 6);
    }
    out.extend_from_slice(b": ");
}

/// Appends a frame of a call chain as a line, or the place where a sample without one was taken.
pub fn append_frame(out: &mut Vec<u8>, frame: &ScriptFrame<'_>, layout: &Layout) {
    let fields = layout.fields;
    if layout.has_callchain {
        out.push(b'\t');
    }
    hex(out, frame.ip, 16);
    append_symbol(out, frame, fields);
    if !frame.inlined {
        append_dso(out, frame, fields);
    }
    append_source(out, frame, fields);
    if frame.inlined {
        out.extend_from_slice(b" (inlined)");
    }
    if layout.has_callchain {
        out.push(b'\n');
    }
}

/// File and line in a line of their own; without them binary and address.
fn append_source(out: &mut Vec<u8>, frame: &ScriptFrame<'_>, fields: Fields) {
    if !fields.has(Fields::SRCLINE) {
        return;
    }
    match (frame.source, frame.dso) {
        (Some((file, line)), _) => {
            out.extend_from_slice(b"\n  ");
            file.base_name().append_to(out);
            out.push(b':');
            decimal(out, u64::from(line), 0);
        }
        (None, Some(dso)) => {
            out.extend_from_slice(b"\n  ");
            dso.base_name().append_to(out);
            out.push(b'[');
            hex(out, frame.ip, 0);
            out.push(b']');
        }
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_perfdata::sample::BranchStack;
    use whit_print_format::{TraceContext, TraceEvent, TraceFormat};

    const FRAME: ScriptFrame<'static> = ScriptFrame {
        ip: 0x55aa,
        symbol: Some(OutsideText::new("leaf")),
        symbol_offset: 0x2b,
        dso: Some(OutsideText::new("/bin/app")),
        source: Some((OutsideText::new("src/app.c"), 7)),
        inlined: false,
    };
    const UNKNOWN: ScriptFrame<'static> =
        ScriptFrame { symbol: None, dso: None, source: None, ..FRAME };
    const CHAIN: [ScriptFrame<'static>; 4] = [
        ScriptFrame {
            symbol: Some(OutsideText::new("inner")),
            source: Some((OutsideText::new("app.c"), 3)),
            inlined: true,
            ..FRAME
        },
        FRAME,
        ScriptFrame { source: None, symbol: Some(OutsideText::new("main")), ..FRAME },
        UNKNOWN,
    ];

    fn trace_format() -> TraceFormat {
        let text = "name: exit\nID: 1\nformat:\n\tfield:int nr;\toffset:0;\tsize:4;\tsigned:1;\n\n\
                    print fmt: \"nr=%d ret=0\", REC->nr\n";
        TraceFormat::new(&TraceEvent::parse("raw_syscalls", text, 8).unwrap(), 8)
    }

    fn sample() -> ScriptSample<'static> {
        ScriptSample {
            comm: OutsideText::new("app"),
            pid: Pid(7),
            tid: Tid(-1),
            cpu: Some(CpuId(1)),
            time: TimestampNs(943_886_252_999),
            ip: None,
            period: 250_000,
            event: OutsideText::new("page-faults"),
            trace: None,
            flags: "call",
            addr: 0x1234,
            addr_frame: Some(UNKNOWN),
            weight: 9,
            phys_addr: 0xfff,
            misc: 2,
            data_src: 0,
            instruction_latency: 0,
            page_sizes_bytes: (4096, 0),
            bpf_output: None,
            cgroup: Some(OutsideText::new("/a\tb")),
            intr_regs: None,
            user_regs: None,
            arch: None,
            branch_stack: BranchStack::default(),
            code_at: &|_, _| {},
            code_bytes: &|_, _, _| None,
            frames: &|_| {},
        }
    }

    fn print(sample: &ScriptSample<'_>, frames: &[ScriptFrame<'_>], fields: Fields) -> String {
        let has_callchain = frames.len() > 1;
        let layout = Layout { fields, event_width: 14, nanoseconds: false, has_callchain };
        let append = |out: &mut Vec<u8>| frames.iter().for_each(|f| append_frame(out, f, &layout));
        let sample = ScriptSample { frames: &append, ..*sample };
        let (mut out, mut buffer) = (Vec::new(), b"old".to_vec());
        write_sample(&mut out, &sample, &layout, &mut buffer).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn chains_show_inlined_frames_lines_and_unknown_code() {
        let fields = Fields::COMM
            | Fields::TID
            | Fields::TIME
            | Fields::PERIOD
            | Fields::EVENT
            | Fields::IP
            | Fields::SYM
            | Fields::SYMOFF
            | Fields::DSO
            | Fields::SRCLINE;
        assert_eq!(
            print(&sample(), &CHAIN, fields),
            "app    -1   943.886252:     250000    page-faults: \n\
             \t            55aa inner+0x2b\n  app.c:3 (inlined)\n\
             \t            55aa leaf+0x2b (/bin/app)\n  app.c:7\n\
             \t            55aa main+0x2b (/bin/app)\n  app[55aa]\n\
             \t            55aa [unknown] ([unknown])\n\n"
        );
    }

    #[test]
    fn single_samples_show_address_flags_and_all() {
        let fields = Fields::COMM
            | Fields::PID
            | Fields::TID
            | Fields::CPU
            | Fields::EVENT
            | Fields::FLAGS
            | Fields::TRACE
            | Fields::ADDR
            | Fields::SYM
            | Fields::DSO
            | Fields::WEIGHT
            | Fields::IP
            | Fields::PHYS_ADDR;
        let context = TraceContext { strings: &(), function_at: &|_| None };
        let trace = Some(TraceRecord { format: &trace_format(), raw: &[3, 0, 0, 0], context });
        assert_eq!(
            print(&ScriptSample { trace, ..sample() }, &CHAIN[1..2], fields),
            "             app     7/-1    [001]    page-faults:   call                  \
             nr=3 ret=0            1234 [unknown] ([unknown])               9 \
             \x20           55aa leaf (/bin/app)             fff\n"
        );
    }

    #[test]
    fn marks_of_records_stand_before_the_time() {
        let line = |misc, marks| {
            let fields = Fields::MISC | Fields::TIME;
            let layout =
                Layout { fields, event_width: 0, nanoseconds: false, has_callchain: false };
            let ScriptSample { comm, pid, tid, cpu, time, .. } = sample();
            let mut out = Vec::new();
            append_line_start(
                &mut out,
                &LineStart { comm, pid, tid, cpu, time, misc, marks },
                &layout,
            );
            String::from_utf8(out).unwrap()
        };
        assert_eq!(line(2, "Sp"), "USp     943.886252: ");
        // perf takes a hypervisor for kernel and user, too.
        assert_eq!(line(3, ""), "KUH     943.886252: ");
    }

    #[test]
    fn bytes_of_bpf_programs_are_shown_as_numbers_and_as_text() {
        let mut out = Vec::new();
        append_bpf_output(&mut out, b"hi there\0");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "\n      BPF output: 0000: 68 69 20 74 68 65 72 65  hi there\n\
             \x20                 0008: 00                       .       \n\
             \x20     BPF string: \"hi there\"\n"
        );
    }

    #[test]
    fn numbers_of_every_length_fit() {
        let mut out = Vec::new();
        decimal(&mut out, u64::MAX, 0);
        hex(&mut out, u64::MAX, 0);
        signed(&mut out, i32::MIN, 0);
        zero_padded(&mut out, 0, 3);
        let text = format!("{}{:x}{}000", u64::MAX, u64::MAX, i32::MIN);
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    proptest::proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(value: u64, id: i32, width in 0..25usize) {
            let mut out = Vec::new();
            decimal(&mut out, value, width);
            hex(&mut out, value, width);
            signed(&mut out, id, width);
            zero_padded(&mut out, value, width);
            let expected =
                format!("{value:width$}{value:width$x}{id:width$}{value:0width$}");
            proptest::prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
