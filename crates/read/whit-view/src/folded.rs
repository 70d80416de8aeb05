//! Folded stacks, `comm;root;…;leaf weight` by line: the input of flame-graph tools.
//!
//! Names follow `stackcollapse-perf.pl` without options: blanks of the command become `_`, a
//! semicolon in a name becomes `:`, a function without a symbol is named for its binary in
//! brackets, kernel functions carry no mark. Line ends in names are escaped as in text (`\x0a`), so
//! that no name makes a line; other control characters stay, since programs read this form. Equal stacks are joined, whatever their addresses;
//! lines stand in order of command, then of names from the root.

use std::borrow::Cow;
use std::io::{self, Write};

use rustc_hash::FxHashMap;
use whit_profile::model::{DsoKind, EventId, Frame, NodeId, Profile, SampleRow};
use whit_types::escape;

/// The number at the end of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FoldedWeight {
    /// Sum of periods.
    #[default]
    Period,
    /// Number of samples.
    Samples,
}

/// How to fold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoldedOptions {
    /// The number at the end of a line.
    pub weight: FoldedWeight,
    /// Show inlined functions.
    pub inline: bool,
}

impl Default for FoldedOptions {
    fn default() -> Self {
        FoldedOptions { weight: FoldedWeight::default(), inline: true }
    }
}

/// Writes the folded stacks of `event`.
///
/// # Errors
/// The error of `out`.
pub fn write_folded(
    out: &mut impl Write,
    profile: &Profile,
    event: EventId,
    options: &FoldedOptions,
) -> io::Result<()> {
    let stacks = Stacks::new(profile, options.inline);
    let mut weights: FxHashMap<(Cow<'_, str>, u32), u64> = FxHashMap::default();
    for row in profile.rows.iter().filter(|r| r.event == event) {
        let comm = command(profile, row);
        let stack = stacks.of_node[row.node.index()];
        *weights.entry((comm, stack)).or_default() += weigh(row, options.weight);
    }
    let rank = stacks.ranks();
    let mut lines: Vec<((Cow<'_, str>, u32), u64)> =
        weights.into_iter().filter(|l| l.1 > 0).collect();
    lines.sort_unstable_by(|((a, x), _), ((b, y), _)| {
        (a, rank[*x as usize]).cmp(&(b, rank[*y as usize]))
    });
    let (mut line, mut path) = (Vec::new(), Vec::new());
    for ((comm, stack), weight) in lines {
        line.clear();
        line.extend_from_slice(bounded(&comm).replace(' ', "_").as_bytes());
        stacks.push_path(stack, &mut path, &mut line);
        writeln!(line, " {weight}")?;
        out.write_all(&line)?;
    }
    Ok(())
}

/// An empty name would make a line that begins with a separator, which tools read as a stack without a command: the
/// thread has the name that threads without any have.
fn command<'p>(profile: &'p Profile, row: &SampleRow) -> Cow<'p, str> {
    match profile.comms[row.comm.index()].exact() {
        "" => Cow::Owned(format!(":{}", profile.threads[row.thread.index()].tid.0)),
        name => Cow::Borrowed(name),
    }
}

fn weigh(row: &SampleRow, weight: FoldedWeight) -> u64 {
    match weight {
        FoldedWeight::Period => row.period,
        FoldedWeight::Samples => row.samples,
    }
}

/// No stack above: a root.
const NONE: u32 = u32::MAX;

/// The call tree with equal names joined.
struct Stacks {
    names: Vec<String>,
    /// By joined node: node above and name. Nodes above come first.
    list: Vec<(u32, u32)>,
    /// By node of the profile: its joined node.
    of_node: Vec<u32>,
}

impl Stacks {
    fn new(profile: &Profile, inline: bool) -> Stacks {
        let (names, name_of_frame) = names(profile);
        let mut index = FxHashMap::default();
        let mut stacks =
            Stacks { names, list: Vec::new(), of_node: Vec::with_capacity(profile.nodes.len()) };
        for node in &profile.nodes {
            let above = match node.parent {
                NodeId::NONE => NONE,
                parent => stacks.of_node[parent.index()],
            };
            let skipped = !inline && profile.frames[node.frame.index()].inlined && above != NONE;
            let stack = if skipped {
                above
            } else {
                let key = (above, name_of_frame[node.frame.index()]);
                *index.entry(key).or_insert_with(|| {
                    stacks.list.push(key);
                    stacks.list.len() as u32 - 1
                })
            };
            stacks.of_node.push(stack);
        }
        stacks
    }

    /// Each joined node's place in a depth-first walk with children in order of names.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.list.len() as u32).collect();
        let key = |&stack: &u32| {
            let (above, name) = self.list[stack as usize];
            (above, std::cmp::Reverse(self.names[name as usize].as_str()))
        };
        order.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        // Children stand together now, last name first; roots (above NONE) at the end.
        let mut start = vec![(0, 0); self.list.len() + 1];
        let slot = |above: u32| if above == NONE { self.list.len() } else { above as usize };
        for (i, &stack) in order.iter().enumerate() {
            let range: &mut (usize, usize) = &mut start[slot(self.list[stack as usize].0)];
            *range = if range.1 == 0 { (i, i + 1) } else { (range.0, i + 1) };
        }
        let children = |above: u32| &order[start[slot(above)].0..start[slot(above)].1];
        let mut rank = vec![0; self.list.len()];
        let mut stack = children(NONE).to_vec();
        let mut next = 0;
        while let Some(node) = stack.pop() {
            rank[node as usize] = next;
            next += 1;
            stack.extend_from_slice(children(node));
        }
        rank
    }

    fn push_path(&self, stack: u32, path: &mut Vec<u32>, line: &mut Vec<u8>) {
        path.clear();
        let mut node = stack;
        while node != NONE {
            let (above, name) = self.list[node as usize];
            path.push(name);
            node = above;
        }
        for &name in path.iter().rev() {
            line.push(b';');
            line.extend_from_slice(self.names[name as usize].as_bytes());
        }
    }
}

/// The distinct names, and the name of each frame.
fn names(profile: &Profile) -> (Vec<String>, Vec<u32>) {
    let mut names = Vec::new();
    let mut index: FxHashMap<String, u32> = FxHashMap::default();
    let of_function: Vec<u32> = (0..profile.functions.len())
        .map(|i| {
            let name = name(profile, i);
            *index.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        })
        .collect();
    let of = |f: &Frame| of_function[f.function.index()];
    (names, profile.frames.iter().map(of).collect())
}

fn name(profile: &Profile, function: usize) -> String {
    let function = &profile.functions[function];
    let dso = &profile.dsos[function.dso.index()];
    if function.known {
        bounded(function.name.exact()).into_owned()
    } else if dso.kind == DsoKind::Unknown {
        "[unknown]".to_owned()
    } else {
        let bare = dso.short_name.exact().trim_start_matches('[').trim_end_matches(']');
        format!("[{}]", bounded(bare))
    }
}

/// The exact name, but for the characters that would make two names or two lines of it.
pub(crate) fn bounded(name: &str) -> Cow<'_, str> {
    if !name.contains([';', '\n', '\r']) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.replace(';', ":").replace('\n', &escape("\n")).replace('\r', &escape("\r")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{Builder, Who, at};

    const MAIN: Who<'static> = Who { comm: "my app", pid: 7, tid: 7, cpu: None };

    fn folded(profile: &Profile, options: &FoldedOptions) -> String {
        let mut out = Vec::new();
        write_folded(&mut out, profile, EventId(0), options).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn profile() -> Profile {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        let other = builder.event("faults");
        let main = at("main", "/bin/app", 1);
        let chains = [
            vec![main.clone(), at("work", "/bin/app", 0x10)],
            vec![main.clone(), at("work", "/bin/app", 0x14)],
            vec![main.clone(), at("a;b", "/bin/app", 2), at("in", "/bin/app", 2).inlined()],
            vec![main.clone(), at("read", "[kernel.kallsyms]", 3).kernel()],
            vec![main.clone(), at("0x99", "/lib/libx.so", 0x99).unknown()],
            vec![at("0x77", "[unknown]", 0x77).unknown()],
            vec![main.clone()],
        ];
        for chain in &chains {
            builder.sample(event, MAIN, chain, 10);
        }
        builder.sample(event, Who { comm: "a", ..MAIN }, &chains[6], 5);
        builder.sample(other, MAIN, &chains[6], 1000);
        builder.profile
    }

    #[test]
    fn stacks_are_joined_and_named_as_flame_graph_tools_want() {
        assert_eq!(
            folded(&profile(), &FoldedOptions::default()),
            "a;main 5\n\
             my_app;[unknown] 10\n\
             my_app;main 10\n\
             my_app;main;[libx.so] 10\n\
             my_app;main;a:b;in 10\n\
             my_app;main;read 10\n\
             my_app;main;work 20\n"
        );
    }

    #[test]
    fn samples_can_be_counted_and_inlined_frames_left_out() {
        let options = FoldedOptions { weight: FoldedWeight::Samples, inline: false };
        let text = folded(&profile(), &options);
        assert!(text.contains("my_app;main;a:b 1\n"), "{text}");
        assert!(text.contains("my_app;main;work 2\n"), "{text}");
        assert!(!text.contains(";in"), "{text}");
    }

    #[test]
    fn a_name_makes_no_line_and_no_further_frame() {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        let who = Who { comm: "a\nb;c 1\r", ..MAIN };
        let hostile = [at("f;g\n\x1b[2J\u{202e}", "/bin/a", 1), at("0x7", "/x\ny;z", 7).unknown()];
        builder.sample(event, who, &hostile, 5);
        assert_eq!(
            folded(&builder.profile, &FoldedOptions::default()),
            "a\\x0ab:c_1\\x0d;f:g\\x0a\x1b[2J\u{202e};[x\\x0ay:z] 5\n"
        );
    }

    #[test]
    fn a_thread_with_an_empty_name_is_named_by_its_number() {
        let mut builder = Builder::default();
        let event = builder.event("cycles");
        builder.sample(event, Who { comm: "", tid: 8, ..MAIN }, &[at("main", "/bin/a", 1)], 5);
        assert_eq!(folded(&builder.profile, &FoldedOptions::default()), ":8;main 5\n");
    }

    #[test]
    fn nothing_folds_to_nothing() {
        assert_eq!(folded(&Profile::default(), &FoldedOptions::default()), "");
    }
}
