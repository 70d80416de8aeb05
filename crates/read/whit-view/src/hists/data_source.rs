//! Accesses to memory as `union perf_mem_data_src` describes them, in perf's words.

use std::fmt::Write as _;

/// Bits of the union, by the part of the text that they make.
pub(crate) mod bits {
    /// `mem_lvl`, `mem_lvl_num`, `mem_remote`, `mem_hops`.
    pub(crate) const LEVELS: u64 = 0x3fff << 5 | 0xf << 33 | 1 << 37 | 0x7 << 43;
    /// `mem_snoop`, `mem_snoopx`.
    pub(crate) const SNOOPS: u64 = 0x1f << 19 | 0x3 << 38;
    /// `mem_lock`.
    pub(crate) const LOCK: u64 = 0x3 << 24;
    /// `mem_dtlb`.
    pub(crate) const TLB: u64 = 0x7f << 26;
    /// `mem_blk`.
    pub(crate) const BLOCKED: u64 = 0x7 << 40;
}

/// The names of the set bits of `value`, from its lowest.
fn names(value: u64, names: &[&str], out: &mut Vec<String>) {
    let set = names.iter().enumerate().filter(|(bit, _)| value >> bit & 1 == 1);
    out.extend(set.map(|(_, name)| (*name).to_owned()));
}

const LEVELS: [&str; 14] = [
    "N/A",
    "HIT",
    "MISS",
    "L1",
    "LFB/MAB",
    "L2",
    "L3",
    "Local RAM",
    "Remote RAM (1 hop)",
    "Remote RAM (2 hops)",
    "Remote Cache (1 hop)",
    "Remote Cache (2 hops)",
    "I/O",
    "Uncached",
];
const HOPS: [&str; 8] =
    ["N/A", "core, same node", "node, same socket", "socket, same board", "board", "", "", ""];
const TLB: [&str; 7] = ["N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault"];
const SNOOPS: [&str; 5] = ["N/A", "None", "Hit", "Miss", "HitM"];
const FURTHER_SNOOPS: [&str; 2] = ["Fwd", "Peer"];
/// Hit and miss, in the levels of memory and of the TLB.
const HIT_OR_MISS: u64 = 0b110;

/// ` hit` and ` miss` behind the names.
fn with_outcome(mut text: String, value: u64) -> String {
    if value & 0b010 != 0 {
        text.push_str(" hit");
    }
    if value & 0b100 != 0 {
        text.push_str(" miss");
    }
    text
}

/// The level of memory that had the data.
pub(crate) fn level(source: u64) -> String {
    let value = source >> 5 & 0x3fff;
    let (number, remote, hops) = (source >> 33 & 0xf, source >> 37 & 1, source >> 43 & 0x7);
    let mut text = String::from(if remote == 1 { "Remote " } else { "" });
    let mut found = Vec::new();
    if hops > 0 {
        // Writing to a String cannot fail.
        let _ = write!(text, "{} ", HOPS[hops as usize]);
    } else {
        names(value & !HIT_OR_MISS, &LEVELS, &mut found);
    }
    match number {
        0 => {}
        0x9 => found.push("CXL".into()),
        0xa => found.push("I/O".into()),
        0xb => found.push("Any cache".into()),
        0xc => found.push("LFB/MAB".into()),
        0xd => found.push("RAM".into()),
        0xe => found.push("PMEM".into()),
        0xf => found.push("N/A".into()),
        level => found.push(format!("L{level}")),
    }
    text.push_str(&found.join(" or "));
    if text.is_empty() {
        text.push_str("N/A");
    }
    with_outcome(text, value)
}

/// The level of the TLB that had the address.
pub(crate) fn tlb(source: u64) -> String {
    let value = source >> 26 & 0x7f;
    let mut found = Vec::new();
    names(value & !HIT_OR_MISS, &TLB, &mut found);
    with_outcome(if found.is_empty() { "N/A".into() } else { found.join(" or ") }, value)
}

/// State of the other caches.
pub(crate) fn snoop(source: u64) -> String {
    let mut found = Vec::new();
    names(source >> 19 & 0x1f, &SNOOPS, &mut found);
    names(source >> 38 & 0x3, &FURTHER_SNOOPS, &mut found);
    if found.is_empty() { "N/A".into() } else { found.join(" or ") }
}

/// Whether the access was locked.
pub(crate) fn locked(source: u64) -> &'static str {
    match source >> 24 & 0x3 {
        0 => "No",
        2 => "Yes",
        _ => "N/A",
    }
}

/// Why a load was blocked.
pub(crate) fn blocked(source: u64) -> &'static str {
    match source >> 40 & 0x7 {
        2 => " Data",
        4 => " Addr",
        6 => " Data Addr",
        _ => " N/A",
    }
}

/// All parts as `perf script -F data_src` prints them.
pub(crate) fn whole(source: u64) -> String {
    let operation = match source & 0x1f {
        bits if bits & 1 != 0 => "N/A",
        bits if bits & 2 != 0 => "LOAD",
        bits if bits & 4 != 0 => "STORE",
        bits if bits & 8 != 0 => "PFETCH",
        bits if bits & 16 != 0 => "EXEC",
        _ => "No",
    };
    format!(
        "|OP {operation}|LVL {}|SNP {}|TLB {}|LCK {}|BLK {}",
        level(source),
        snoop(source),
        tlb(source),
        locked(source),
        blocked(source)
    )
}

/// `4K`, `2M` and such: whole units, the larger one from two of them on.
pub(crate) fn page_size(bytes: u64) -> String {
    if bytes == 0 {
        return "N/A".to_owned();
    }
    let (mut value, mut unit) = (bytes, 0);
    while value / 1024 > 1 && unit < 3 {
        value /= 1024;
        unit += 1;
    }
    format!("{value}{}", ["B", "K", "M", "G"][unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_whole_units() {
        let names = [0, 4096, 2 << 20, 1 << 30, u64::MAX].map(page_size);
        assert_eq!(names, ["N/A", "4K", "2M", "1024M", "17179869183G"]);
    }

    #[test]
    fn unknown_parts_are_printed_as_not_available() {
        let nothing = 1 | 1 << 5 | 1 << 19 | 1 << 24 | 1 << 26;
        let text = "|OP N/A|LVL N/A|SNP N/A|TLB N/A|LCK N/A|BLK  N/A";
        assert_eq!(whole(nothing), text);
        assert_eq!(whole(0), text.replace("OP N/A", "OP No").replace("LCK N/A", "LCK No"));
    }

    #[test]
    fn levels_snoops_and_locks_are_named() {
        let load =
            2 | (0b10 | 1 << 3) << 5 | 1 << 33 | 0b10 << 19 | 2 << 24 | (0b010 | 0b1000) << 26;
        assert_eq!(whole(load), "|OP LOAD|LVL L1 or L1 hit|SNP None|TLB L1 hit|LCK Yes|BLK  N/A");
        assert_eq!(level(1 << 37 | 1 << 43 | 0xb << 33), "Remote core, same node Any cache");
        assert_eq!(snoop(0b10000 << 19 | 1 << 38), "HitM or Fwd");
        assert_eq!((blocked(4 << 40), blocked(1 << 40)), (" Addr", " N/A"));
    }
}
