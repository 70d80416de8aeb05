//! Text of one sort key of one row.

use std::fmt::Write as _;

use whit_perfdata::sample::BranchEntry;
use whit_profile::Facets;
use whit_profile::model::{Frame, FrameId, Profile, TextId};
use whit_profile::parallelism::Parallelism;
use whit_types::{OutsideText, short_container_id};

use crate::hists::{CACHE_LINE_BYTES, HistRow, SortKey, SourceKey, data_source, without_digits};

/// Digits of an address: the least width that perf gives a binary's column where a symbol is missing.
pub(super) const ADDRESS_DIGITS: usize = 16;

/// With `0x` in front.
const ADDRESS_WIDTH: usize = ADDRESS_DIGITS + 2;

/// Numbers of threads stand right, below their heading.
const PARALLELISM_WIDTH: usize = SortKey::Parallelism.min_width();

/// Appends the text of one sort key.
pub(super) fn write_key(
    profile: &Profile,
    key: SortKey,
    row: &HistRow,
    nanoseconds: bool,
    out: &mut String,
) {
    let comm = |id: Option<whit_profile::model::CommId>| {
        id.map_or(OutsideText::new(""), |c| profile.comms[c.index()].borrowed())
    };
    // Writing to a String cannot fail.
    let _ = match key {
        SortKey::Comm => write!(out, "{}", comm(row.context.comm)),
        SortKey::CommNoDigit => {
            let name = row.context.comm_no_digit.map(|id| profile.comms[id.index()].exact());
            write!(out, "{}", OutsideText::from(without_digits(name.unwrap_or_default())))
        }
        SortKey::Pid | SortKey::Tid => {
            let tid = row.context.tid.map_or(-1, |t| t.0);
            write!(out, "{tid:>7}:{}", comm(row.context.thread_comm))
        }
        SortKey::Tgid => {
            let pid = row.context.pid.map_or(-1, |p| p.0);
            write!(out, "{pid:>7}:{}", comm(row.context.process_comm))
        }
        SortKey::Cpu => match row.context.cpu {
            Some(cpu) => write!(out, "{:03}", cpu.0),
            None => write!(out, "-001"),
        },
        SortKey::Dso => match row.place.dso {
            Some(dso) => write!(out, "{}", profile.dsos[dso.index()].short_name),
            None => write!(out, "[unknown]"),
        },
        SortKey::Symbol => {
            write_symbol(profile, row, out);
            Ok(())
        }
        SortKey::SrcLine | SortKey::SrcFile => write!(out, "{}", source_text(profile, key, row)),
        SortKey::Parallelism => match row.context.parallelism {
            Some(Parallelism::Threads(count)) => write!(out, "{count:>PARALLELISM_WIDTH$}"),
            Some(Parallelism::Unknown) | None => write!(out, "{:>PARALLELISM_WIDTH$}", "unknown"),
        },
        SortKey::Socket => match row.context.socket {
            Some(socket) => write!(out, "   {socket:03}"),
            None => write!(out, "  -001"),
        },
        SortKey::LocalWeight => write!(out, "{}", row.context.weight.unwrap_or(0)),
        SortKey::Weight => {
            let weight = row.context.weight.unwrap_or(0);
            write!(out, "{}", weight.saturating_mul(row.self_samples))
        }
        SortKey::Time => {
            let ns = row.context.time.map_or(0, |time| time.0);
            let (seconds, rest) = (ns / 1_000_000_000, ns % 1_000_000_000);
            match nanoseconds {
                true => write!(out, "{seconds}.{rest:09}"),
                false => write!(out, "{seconds}.{:06}", rest / 1000),
            }
        }
        SortKey::Cgroup | SortKey::Container | SortKey::Pod | SortKey::Unit => {
            let name = row.context.cgroup_name(profile, key).unwrap_or("N/A");
            let short = if key == SortKey::Container { short_container_id(name) } else { name };
            write!(out, "{}", OutsideText::new(short))
        }
        SortKey::Parent => match row.context.parent {
            Some(function) => write!(out, "{}", profile.functions[function.index()].name),
            None => write!(out, "[other]"),
        },
        SortKey::SymbolSize => write_size(row.place.symbol_bytes, out),
        SortKey::DsoSize => write_size(row.place.dso_bytes, out),
        _ => {
            let facets = row.context.facets.and_then(|id| profile.facets.get(id.index()));
            let cell = FacetCell { profile, row, facets: facets.copied().unwrap_or_default() };
            cell.write(key, out);
            Ok(())
        }
    };
}

fn write_size(bytes: Option<u64>, out: &mut String) -> std::fmt::Result {
    match bytes {
        Some(bytes) => write!(out, "{bytes}"),
        None => write!(out, "unknown"),
    }
}

/// Names of `PERF_TXN_*`, in perf's order.
const TRANSACTION: [(u64, &str); 8] = [
    (1 << 0, "EL "),
    (1 << 1, "TX "),
    (1 << 2, "SYNC "),
    (1 << 3, "ASYNC "),
    (1 << 4, "RETRY "),
    (1 << 5, "CON "),
    (1 << 6, "CAP-WRITE "),
    (1 << 7, "CAP-READ "),
];

/// The facets of a row, to be printed.
struct FacetCell<'a> {
    profile: &'a Profile,
    row: &'a HistRow,
    facets: Facets,
}

impl FacetCell<'_> {
    fn write(&self, key: SortKey, out: &mut String) {
        let (facets, row) = (&self.facets, self.row);
        let source = facets.data_src.unwrap_or(0);
        let latency = u64::from(facets.instruction_latency.unwrap_or(0));
        // Writing to a String cannot fail.
        let _ = match key {
            SortKey::LocalInsLat => write!(out, "{latency}"),
            SortKey::InsLat => write!(out, "{}", latency.saturating_mul(row.self_samples)),
            SortKey::Transaction => {
                write_transaction(facets.transaction.unwrap_or(0), out);
                Ok(())
            }
            SortKey::Trace => {
                let text = facets.trace.map(|text| &self.profile.texts[text.index()]);
                match text {
                    Some(text) => write!(out, "{text}"),
                    None => write!(out, "N/A"),
                }
            }
            SortKey::Addr => match facets.address.map_or(0, |address| address.0) {
                0 => write!(out, "0"),
                address => write!(out, "{address:#x}"),
            },
            SortKey::CodePageSize => {
                write!(out, "{}", data_source::page_size(facets.code_page_size_bytes.unwrap_or(0)))
            }
            SortKey::DataPageSize => {
                write!(out, "{}", data_source::page_size(facets.data_page_size_bytes.unwrap_or(0)))
            }
            SortKey::Mem => write!(out, "{}", data_source::level(source)),
            SortKey::Tlb => write!(out, "{}", data_source::tlb(source)),
            SortKey::Snoop => write!(out, "{}", data_source::snoop(source)),
            SortKey::Locked => write!(out, "{}", data_source::locked(source)),
            SortKey::Blocked => write!(out, "{}", data_source::blocked(source)),
            SortKey::PhysDaddr => {
                // perf has the level of whichever sample came first.
                let in_kernel = row.self_period > 0 && row.kernel_period == row.self_period;
                out.push_str(level(in_kernel));
                write_address(facets.phys_addr.unwrap_or(0), out);
                Ok(())
            }
            SortKey::SymbolDaddr | SortKey::DcacheLine | SortKey::DsoDaddr => {
                self.write_data(key, out);
                Ok(())
            }
            _ => {
                self.write_branch(key, out);
                Ok(())
            }
        };
    }

    fn write_data(&self, key: SortKey, out: &mut String) {
        let Some(data) = self.facets.data else {
            match key {
                SortKey::DsoDaddr => out.push_str("[unknown]"),
                _ => {
                    out.push_str(if key == SortKey::DcacheLine { "[X] " } else { "[.] " });
                    write_address(0, out);
                }
            }
            return;
        };
        if key == SortKey::DsoDaddr {
            match data.dso {
                Some(dso) => out.push_str(&self.profile.dsos[dso.index()].short_name.escaped()),
                None => out.push_str("[unknown]"),
            }
            return;
        }
        let is_line = key == SortKey::DcacheLine;
        let unmapped = is_line && data.dso.is_none();
        out.push_str(if unmapped { "[X] " } else { level(data.kernel) });
        let behind = if is_line { data.address % CACHE_LINE_BYTES } else { 0 };
        match data.symbol {
            // The line may begin in front of the variable.
            Some(symbol) if data.offset >= behind => {
                self.write_text(symbol, out);
                // Code has no offset in perf's text.
                if !data.is_code {
                    let _ = write!(out, "+0x{:x}", data.offset - behind);
                }
            }
            _ => write_address(data.address - behind, out),
        }
    }

    fn write_text(&self, text: TextId, out: &mut String) {
        out.push_str(&self.profile.texts[text.index()].escaped());
    }

    fn write_branch(&self, key: SortKey, out: &mut String) {
        let Some(branch) = self.facets.branch else { return out.push_str("N/A") };
        let flags = branch.flags;
        let letter = |bit: u64, letter: &'static str| if flags & bit == 0 { "." } else { letter };
        match key {
            SortKey::Mispredict => out.push_str(match flags & BranchEntry::PREDICTION {
                0 => "N/A",
                1 => "Y",
                _ => "N",
            }),
            SortKey::InTx => out.push_str(letter(BranchEntry::IN_TRANSACTION, "T")),
            SortKey::Abort => out.push_str(letter(BranchEntry::ABORT, "A")),
            SortKey::Cycles => match (flags & BranchEntry::CYCLES) >> 4 {
                0 => out.push('-'),
                cycles => {
                    let _ = write!(out, "{cycles}");
                }
            },
            SortKey::DsoFrom | SortKey::SymbolFrom | SortKey::SrcLineFrom => {
                self.write_end(branch.from, key, out);
            }
            _ => self.write_end(branch.to, key, out),
        }
    }

    fn write_end(&self, end: Option<FrameId>, key: SortKey, out: &mut String) {
        let Some(frame) = end.and_then(|frame| self.profile.frames.get(frame.index())) else {
            return out.push_str("N/A");
        };
        let function = &self.profile.functions[frame.function.index()];
        match key {
            SortKey::SymbolFrom | SortKey::SymbolTo => write_function(self.profile, frame, out),
            SortKey::SrcLineFrom | SortKey::SrcLineTo => {
                out.push_str(&line_text(self.profile, frame).escaped());
            }
            _ => out.push_str(&self.profile.dsos[function.dso.index()].short_name.escaped()),
        }
    }
}

/// The function of one end of a branch; `None` where there is none.
pub(crate) fn branch_end<'p>(
    profile: &'p Profile,
    row: &HistRow,
    key: SortKey,
) -> Option<&'p Frame> {
    let branch = profile.facets.get(row.context.facets?.index())?.branch?;
    let end = match key {
        SortKey::DsoFrom | SortKey::SymbolFrom | SortKey::SrcLineFrom => branch.from,
        _ => branch.to,
    };
    profile.frames.get(end?.index())
}

fn line_text(profile: &Profile, frame: &Frame) -> OutsideText {
    match frame.source {
        Some((file, line)) => {
            format!("{}:{line}", profile.files[file.index()].base_name().exact()).into()
        }
        None => profile.functions[frame.function.index()].name.clone(),
    }
}

fn write_function(profile: &Profile, frame: &Frame, out: &mut String) {
    out.push_str(level(frame.kernel));
    let function = &profile.functions[frame.function.index()];
    match super::symbol_address(function) {
        Some(address) => write_address(address, out),
        None => out.push_str(&function.name.escaped()),
    }
}

fn level(kernel: bool) -> &'static str {
    if kernel { "[k] " } else { "[.] " }
}

fn write_address(address: u64, out: &mut String) {
    let _ = match address {
        // C's `%#x` gives zero no prefix.
        0 => write!(out, "{:0>ADDRESS_DIGITS$}", ""),
        address => write!(out, "{address:#0ADDRESS_WIDTH$x}"),
    };
}

fn write_transaction(flags: u64, out: &mut String) {
    for (flag, name) in TRANSACTION {
        if flags & flag != 0 {
            out.push_str(name);
        }
    }
    if flags != 0 && flags & 0b1100 == 0 {
        out.push_str("NEITHER ");
    }
    if flags >> 32 != 0 {
        let _ = write!(out, ":{:x}", flags >> 32);
    }
}

fn write_symbol(profile: &Profile, row: &HistRow, out: &mut String) {
    out.push_str(level(row.place.kernel));
    let Some(function) = row.place.function else { return };
    let function = &profile.functions[function.index()];
    match super::symbol_address(function) {
        Some(address) => write_address(address, out),
        None => out.push_str(&function.name.escaped()),
    }
    if row.place.inlined {
        out.push_str(" (inlined)");
    }
}

/// Source file or line, or its stand-in.
pub(crate) fn source_text(profile: &Profile, key: SortKey, row: &HistRow) -> OutsideText {
    let base = |file: whit_profile::model::FileId| profile.files[file.index()].base_name();
    match row.place.source {
        SourceKey::Line(file, line) if key == SortKey::SrcLine => {
            format!("{}:{line}", base(file).exact()).into()
        }
        SourceKey::Line(file, _) | SourceKey::File(file) => base(file).exact().into(),
        SourceKey::Function(_) | SourceKey::Address(..) if key == SortKey::SrcFile => {
            OutsideText::default()
        }
        SourceKey::Function(f) => profile.functions[f.index()].name.clone(),
        SourceKey::Address(dso, address) => {
            let dso = profile.dsos[dso.index()].short_name.exact();
            format!("{dso}[{address:x}]").into()
        }
        SourceKey::Unused | SourceKey::NoFile => OutsideText::default(),
    }
}
