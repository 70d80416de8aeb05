//! The text of one sample.

use std::io::Write;

use super::branches::append_branches;
use super::fields::Fields;
use super::instructions::append_instructions;
use super::registers::append_registers;
use super::text::{append_dso, append_symbol, decimal, hex, left, pad, right, signed, zero_padded};
use crate::hists::data_source;
use whit_perfdata::attr::{AttrFlags, pmu_type};
use whit_perfdata::feature::EventDesc;
use whit_perfdata::record::misc;
use whit_print_format::TraceContext;
use whit_profile::Tracepoints;
use whit_profile::script::{RecordStart, ScriptedFrame, ScriptedSample};
use whit_types::{Arch, Avma, OutsideText, escape_appended};

/// `PERF_COUNT_SW_PAGE_FAULTS`, and its minor and major ones.
const PAGE_FAULTS: [u64; 3] = [2, 5, 6];
/// `PERF_COUNT_SW_BPF_OUTPUT`.
const BPF_OUTPUT: u64 = 10;
/// `PERF_COUNT_HW_BRANCH_INSTRUCTIONS`.
const BRANCHES: u64 = 4;

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

/// Facts about a recording by which its samples are printed.
#[derive(Debug, Default)]
pub struct SampleContext {
    /// Formats of its tracepoints.
    pub tracepoints: Tracepoints,
    /// The machine that registers belong to; without it they have no names.
    pub arch: Option<Arch>,
}

/// Appends the sample's text, with the line end, to `out`.
pub fn append_sample(
    out: &mut Vec<u8>,
    scripted: &ScriptedSample<'_>,
    layout: &Layout,
    recorded: &SampleContext,
) {
    let (fields, sample) = (layout.fields, scripted.sample);
    append_line_start(out, &scripted.start, "", layout);
    if fields.has(Fields::PERIOD) {
        decimal(out, scripted.period, 10);
        out.push(b' ');
    }
    if fields.has(Fields::EVENT) {
        right(out, &OutsideText::new(&scripted.event_desc.name).escaped(), layout.event_width);
        out.extend_from_slice(b": ");
    }
    if fields.has(Fields::FLAGS) {
        out.extend_from_slice(b"  ");
        // perf fills it for branches that it makes of processor traces.
        left(out, "", 21);
        out.push(b' ');
    }
    if fields.has(Fields::TRACE) {
        append_trace(out, scripted, recorded);
    }
    if fields.has(Fields::ADDR) {
        let address = Avma(sample.addr.unwrap_or(0));
        hex(out, address.0, 16);
        if has_data_symbol(scripted.event_desc) {
            let code = scripted.lookup.data_at(address);
            append_symbol(out, &code.frame(address), fields);
            append_dso(out, &code.frame(address), fields);
        }
    }
    if fields.has(Fields::DATA_SRC) {
        let bits = sample.data_src.unwrap_or(0);
        hex(out, bits, 16);
        out.push(b' ');
        out.extend_from_slice(data_source::whole(bits).as_bytes());
    }
    if fields.has(Fields::WEIGHT) {
        decimal(out, sample.weight.unwrap_or(0), 16);
    }
    if fields.has(Fields::INS_LAT) {
        decimal(out, u64::from(sample.instruction_latency), 16);
    }
    if fields.has(Fields::IP) {
        out.push(if layout.has_callchain { b'\n' } else { b' ' });
        scripted.chain.append(out);
    }
    if fields.has(Fields::IREGS) {
        append_registers(out, sample.intr_regs, recorded.arch);
    }
    if fields.has(Fields::UREGS) {
        append_registers(out, sample.user_regs, recorded.arch);
    }
    if fields.has(Fields::BRSTACK | Fields::BRSTACKSYM) {
        append_branches(out, scripted, fields);
    }
    let is_shown = fields.has(Fields::BPF_OUTPUT) && is_bpf_output(scripted.event_desc);
    if let Some(bytes) = sample.raw.filter(|_| is_shown) {
        append_bpf_output(out, bytes);
    }
    if fields.has(Fields::BRSTACKINSN) {
        append_instructions(out, scripted);
    }
    if fields.has(Fields::PHYS_ADDR) {
        hex(out, sample.phys_addr.unwrap_or(0), 16);
    }
    for (field, bytes) in [
        (Fields::DATA_PAGE_SIZE, sample.data_page_size_bytes),
        (Fields::CODE_PAGE_SIZE, sample.code_page_size_bytes),
    ] {
        if fields.has(field) {
            out.push(b' ');
            out.extend_from_slice(data_source::page_size(bytes.unwrap_or(0)).as_bytes());
        }
    }
    if fields.has(Fields::CGROUP) {
        out.push(b' ');
        let path = sample.cgroup.and_then(|number| scripted.lookup.cgroup(number));
        path.unwrap_or(OutsideText::new("unknown")).append_to(out);
    }
    out.push(b'\n');
}

fn append_trace(out: &mut Vec<u8>, scripted: &ScriptedSample<'_>, recorded: &SampleContext) {
    let format = recorded.tracepoints.format(scripted.event);
    let Some((format, raw)) = format.zip(scripted.sample.raw) else { return };
    let function_at = |address| scripted.lookup.kernel_function_at(address);
    let context = TraceContext { strings: &recorded.tracepoints.data, function_at: &function_at };
    let start = out.len();
    format.append(raw, &context, out);
    // Strings of the record, and the format itself.
    escape_appended(out, start);
}

/// True for events whose data address perf names: page faults, and branches one by one.
fn has_data_symbol(event: &EventDesc) -> bool {
    let attr = &event.attr;
    match attr.pmu_type {
        pmu_type::SOFTWARE => PAGE_FAULTS.contains(&attr.config),
        pmu_type::HARDWARE => {
            attr.config == BRANCHES && attr.sample_period_or_freq == 1 && !attr.has(AttrFlags::FREQ)
        }
        _ => false,
    }
}

/// An event through which BPF programs write.
fn is_bpf_output(event: &EventDesc) -> bool {
    event.attr.pmu_type == pmu_type::SOFTWARE && event.attr.config == BPF_OUTPUT
}

/// Appends the fields that a line begins with. The type of a record adds `marks` to the letters of the CPU's mode.
pub(super) fn append_line_start(
    out: &mut Vec<u8>,
    start: &RecordStart<'_>,
    marks: &str,
    layout: &Layout,
) {
    let fields = layout.fields;
    if fields.has(Fields::COMM) {
        let width = if fields.has(Fields::IP) && layout.has_callchain { 0 } else { 16 };
        match start.comm {
            Some(comm) => right(out, &comm.escaped(), width),
            None => right(out, &format!(":{}", start.comm_tid.0), width),
        }
        out.push(b' ');
    }
    if fields.has(Fields::PID) {
        signed(out, start.pid.0, 5);
        if fields.has(Fields::TID) {
            out.push(b'/');
            let before = out.len();
            signed(out, start.tid.0, 0);
            pad(out, 5usize.saturating_sub(out.len() - before));
        }
        out.push(b' ');
    } else if fields.has(Fields::TID) {
        signed(out, start.tid.0, 5);
        out.push(b' ');
    }
    if fields.has(Fields::CPU) {
        out.push(b'[');
        match start.cpu {
            Some(cpu) => zero_padded(out, u64::from(cpu.0), 3),
            None => out.extend_from_slice(b"-01"),
        }
        out.extend_from_slice(b"] ");
    }
    if fields.has(Fields::MISC) {
        append_misc(out, start.misc, marks);
    }
    if fields.has(Fields::TIME) {
        let shown_ns = start.time.0.saturating_sub(start.shown_since.0);
        append_time(out, shown_ns, layout.nanoseconds);
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
pub fn append_frame(out: &mut Vec<u8>, frame: &ScriptedFrame<'_>, layout: &Layout) {
    let fields = layout.fields;
    if layout.has_callchain {
        out.push(b'\t');
    }
    hex(out, frame.address.0, 16);
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
fn append_source(out: &mut Vec<u8>, frame: &ScriptedFrame<'_>, fields: Fields) {
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
            hex(out, frame.address.0, 0);
            out.push(b']');
        }
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use whit_perfdata::attr::Attr;
    use whit_perfdata::sample::Sample;
    use whit_print_format::{TraceEvent, TraceFormat};
    use whit_profile::script::{ChainText, CodeAt, CodeLookup};
    use whit_types::{CpuId, Pid, Tid, TimestampNs};

    const FRAME: ScriptedFrame<'static> = ScriptedFrame {
        address: Avma(0x55aa),
        function: Some(OutsideText::new("leaf")),
        function_offset: 0x2b,
        dso: Some(OutsideText::new("/bin/app")),
        source: Some((OutsideText::new("src/app.c"), 7)),
        inlined: false,
    };
    const UNKNOWN: ScriptedFrame<'static> =
        ScriptedFrame { function: None, dso: None, source: None, ..FRAME };
    const CHAIN: [ScriptedFrame<'static>; 4] = [
        ScriptedFrame {
            function: Some(OutsideText::new("inner")),
            source: Some((OutsideText::new("app.c"), 3)),
            inlined: true,
            ..FRAME
        },
        FRAME,
        ScriptedFrame { source: None, function: Some(OutsideText::new("main")), ..FRAME },
        UNKNOWN,
    ];

    fn trace_format() -> TraceFormat {
        let text = "name: exit\nID: 1\nformat:\n\tfield:int nr;\toffset:0;\tsize:4;\tsigned:1;\n\n\
                    print fmt: \"nr=%d ret=0\", REC->nr\n";
        TraceFormat::new(&TraceEvent::parse("raw_syscalls", text, 8).unwrap(), 8)
    }

    /// Looks nothing up but one cgroup.
    struct Nowhere;

    impl CodeLookup for Nowhere {
        fn cgroup(&self, number: u64) -> Option<OutsideText<&str>> {
            (number == 5).then_some(OutsideText::new("/a\tb"))
        }
        fn kernel_function_at(&self, _: u64) -> Option<(Arc<str>, u64)> {
            None
        }
        fn data_at(&self, _: Avma) -> CodeAt {
            CodeAt::default()
        }
        fn code_at(&self, _: Avma) -> CodeAt {
            CodeAt::default()
        }
        fn code_bytes(&self, _: Avma, _: usize, _: &mut Vec<u8>) -> Option<u32> {
            None
        }
    }

    const START: RecordStart<'static> = RecordStart {
        comm: Some(OutsideText::new("app")),
        comm_tid: Tid(-1),
        pid: Pid(7),
        tid: Tid(-1),
        cpu: Some(CpuId(1)),
        time: TimestampNs(943_886_252_999),
        shown_since: TimestampNs(0),
        misc: 2,
    };

    fn sample() -> Sample<'static> {
        Sample {
            addr: Some(0x1234),
            weight: Some(9),
            phys_addr: Some(0xfff),
            data_page_size_bytes: Some(4096),
            cgroup: Some(5),
            raw: Some(&[3, 0, 0, 0]),
            ..Sample::default()
        }
    }

    fn print(
        start: RecordStart<'_>,
        recorded: &SampleContext,
        frames: &[ScriptedFrame<'_>],
        fields: Fields,
    ) -> String {
        let has_callchain = frames.len() > 1;
        let layout = Layout { fields, event_width: 14, nanoseconds: false, has_callchain };
        let mut text = Vec::new();
        frames.iter().for_each(|frame| append_frame(&mut text, frame, &layout));
        let attr = Attr { pmu_type: pmu_type::SOFTWARE, config: PAGE_FAULTS[0], ..Attr::default() };
        let event_desc = EventDesc { attr, name: "page-faults".into(), ..EventDesc::default() };
        let whole = std::iter::once(0..text.len()).collect::<Vec<_>>();
        let sample = ScriptedSample {
            event: 0,
            event_desc: &event_desc,
            start,
            period: 250_000,
            sample: &sample(),
            chain: ChainText::new(&text, &whole),
            lookup: &Nowhere,
        };
        let mut out = Vec::new();
        append_sample(&mut out, &sample, &layout, recorded);
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
            print(START, &SampleContext::default(), &CHAIN, fields),
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
        let tracepoints = Tracepoints::with_formats(vec![Some(trace_format())]);
        let recorded = SampleContext { tracepoints, arch: None };
        assert_eq!(
            print(START, &recorded, &CHAIN[1..2], fields),
            "             app     7/-1    [001]    page-faults:                         \
             nr=3 ret=0            1234 [unknown] ([unknown])               9 \
             \x20           55aa leaf (/bin/app)             fff\n"
        );
    }

    #[test]
    fn threads_without_a_command_name_are_named_by_their_number() {
        let unnamed = RecordStart { comm: None, comm_tid: Tid(17), ..START };
        let recorded = SampleContext::default();
        let fields = Fields::COMM | Fields::CGROUP;
        assert_eq!(print(unnamed, &recorded, &[], fields), "             :17  /a\\x09b\n");
    }

    #[test]
    fn times_are_shown_since_a_moment() {
        let start = RecordStart { shown_since: TimestampNs(943_000_000_000), ..START };
        assert_eq!(print(start, &SampleContext::default(), &[], Fields::TIME), "    0.886252: \n");
    }

    #[test]
    fn marks_of_records_are_written_before_the_time() {
        let line = |misc, marks| {
            let fields = Fields::MISC | Fields::TIME;
            let layout =
                Layout { fields, event_width: 0, nanoseconds: false, has_callchain: false };
            let mut out = Vec::new();
            append_line_start(&mut out, &RecordStart { misc, ..START }, marks, &layout);
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
