//! The tables that a page embeds: bounded, and with nothing in them that no row leads to.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use whit_profile::model::{DsoKind, FunctionId, Profile};
use whit_types::OutsideText;

use super::fold::{Bounds, fold};
use super::merge::{
    Interner, Merged, PageFrame, PageNode, PageRow, bound_threads, coalesce, merge,
};
use super::wall;
use super::{HtmlOptions, MAX_NAME_BYTES, PageSummary};

/// Bits of [`FrameColumns::flags`].
pub(crate) const FRAME_INLINED: u64 = 1;
/// Code of the kernel.
pub(crate) const FRAME_KERNEL: u64 = 2;
/// Stands for folded nodes; their number is in the line column.
pub(crate) const FRAME_FOLDED: u64 = 4;

/// Name of the function that stands for folded nodes.
pub(crate) const FOLDED_FUNCTION: &str = "(small frames)";
const FOLDED_DSO: &str = "[folded]";

/// A thread as the page tells it apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageThread {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    pub(crate) comm: u32,
}

/// A binary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PageDso<'a> {
    pub(crate) path: Cow<'a, str>,
    pub(crate) short_name: Cow<'a, str>,
    pub(crate) build_id: Option<String>,
    pub(crate) kind: &'static str,
}

/// A row of the page's table of functions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PageFunction<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) dso: u32,
    pub(crate) known: bool,
}

/// A code location, with indices into this page's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameColumns {
    pub(crate) function: u32,
    /// File and line.
    pub(crate) source: Option<(u32, u32)>,
    pub(crate) flags: u64,
    /// Nodes folded into this one.
    pub(crate) folded: u32,
}

/// All tables of one page.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    pub(crate) comms: Vec<Cow<'a, str>>,
    pub(crate) threads: Vec<PageThread>,
    pub(crate) dsos: Vec<PageDso<'a>>,
    pub(crate) functions: Vec<PageFunction<'a>>,
    pub(crate) files: Vec<Cow<'a, str>>,
    pub(crate) frames: Vec<FrameColumns>,
    pub(crate) nodes: Vec<PageNode>,
    pub(crate) rows: Vec<PageRow>,
    /// For each function of the profile that nodes use, its index here.
    pub(crate) function_of: FxHashMap<FunctionId, u32>,
    /// For each thread of the profile its index here.
    pub(crate) thread_of: Vec<u32>,
    /// For each node of the profile its index here, or [`NO_NODE`](super::merge::NO_NODE).
    pub(crate) node_of: Vec<u32>,
    nodes_before: usize,
    fold_threshold: Option<f64>,
    threads_merged: usize,
}

impl Tables<'_> {
    pub(crate) fn summary(&self) -> PageSummary {
        PageSummary {
            nodes: self.nodes.len(),
            nodes_before: self.nodes_before,
            fold_threshold: self.fold_threshold,
            threads_merged: self.threads_merged,
            rows: self.rows.len(),
        }
    }
}

/// The exact name, cut at a character's end where it is longer than [`MAX_NAME_BYTES`]. The page's
/// script escapes it where it decodes the data.
pub(crate) fn bounded_name(name: &OutsideText) -> Cow<'_, str> {
    let name = name.exact();
    if name.len() <= MAX_NAME_BYTES {
        return Cow::Borrowed(name);
    }
    let end = (0..=MAX_NAME_BYTES).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    Cow::Owned(format!("{}…", &name[..end]))
}

/// Builds the tables of a checked profile.
pub(crate) fn build<'a>(profile: &'a Profile, options: &HtmlOptions) -> Tables<'a> {
    let mut merged = merge(profile);
    let (thread_index, threads_merged) =
        bound_threads(&merged.rows, profile.threads.len(), options.max_threads);
    if threads_merged > 0 {
        merged.rows.iter_mut().for_each(|r| r.thread = thread_index[r.thread as usize]);
        merged.rows = coalesce(std::mem::take(&mut merged.rows));
    }
    let nodes_before = merged.nodes.len();
    let bounds = Bounds { max_nodes: options.max_nodes, max_rows: options.max_rows };
    let (merged, fold_threshold) = fold(merged, bounds);
    let mut tables = Tables {
        comms: profile.comms.iter().map(bounded_name).collect(),
        threads: Vec::new(),
        dsos: Vec::new(),
        functions: Vec::new(),
        files: Vec::new(),
        frames: Vec::new(),
        nodes: merged.nodes.clone(),
        rows: merged.rows.clone(),
        function_of: FxHashMap::default(),
        thread_of: thread_index.clone(),
        node_of: merged.node_of.clone(),
        nodes_before,
        fold_threshold,
        threads_merged,
    };
    tables.fill_threads(profile, &thread_index);
    tables.fill_code(profile, &merged);
    tables
}

impl<'a> Tables<'a> {
    fn fill_threads(&mut self, profile: &Profile, thread_index: &[u32]) {
        let others = PageThread { pid: -1, tid: -1, comm: self.comms.len() as u32 };
        let kept = profile.threads.len() - self.threads_merged;
        self.threads = vec![others; kept + usize::from(self.threads_merged > 0)];
        for (thread, &index) in profile.threads.iter().zip(thread_index) {
            if (index as usize) < kept {
                let (pid, tid, comm) = (thread.pid.0, thread.tid.0, thread.comm.0);
                self.threads[index as usize] = PageThread { pid, tid, comm };
            }
        }
        if self.threads_merged > 0 {
            self.comms.push(Cow::Owned(format!("({} other threads)", self.threads_merged)));
        }
    }

    /// Fills functions, binaries, files and frames with the entries that nodes use, in order of
    /// use.
    fn fill_code(&mut self, profile: &'a Profile, merged: &Merged) {
        let mut frames = Interner::new();
        for node in &mut self.nodes {
            node.frame = frames.id(node.frame);
        }
        let mut functions = Interner::new();
        let mut files = Interner::new();
        for &frame in &frames.items {
            self.frames.push(match merged.frames[frame as usize] {
                PageFrame::Code { function, source, inlined, kernel } => FrameColumns {
                    function: functions.id(Some(function)),
                    source: source.map(|(file, line)| (files.id(file), line)),
                    flags: u64::from(inlined) * FRAME_INLINED + u64::from(kernel) * FRAME_KERNEL,
                    folded: 0,
                },
                PageFrame::Folded { nodes } => FrameColumns {
                    function: functions.id(None),
                    source: None,
                    flags: FRAME_FOLDED,
                    folded: nodes,
                },
            });
        }
        self.files = files.items.iter().map(|f| bounded_name(&profile.files[f.index()])).collect();
        let mut dsos = Interner::new();
        for (index, function) in functions.items.iter().enumerate() {
            self.function_of.extend(function.map(|function| (function, index as u32)));
        }
        for function in functions.items {
            let dso = dsos.id(function.map(|f| profile.functions[f.index()].dso));
            self.functions.push(match function.map(|f| &profile.functions[f.index()]) {
                Some(f) => PageFunction { name: bounded_name(&f.name), dso, known: f.known },
                None => PageFunction { name: FOLDED_FUNCTION.into(), dso, known: false },
            });
        }
        self.dsos = dsos.items.into_iter().map(|dso| page_dso(profile, dso)).collect();
    }
}

fn page_dso(profile: &Profile, dso: Option<whit_profile::model::DsoId>) -> PageDso<'_> {
    let Some(dso) = dso.map(|d| &profile.dsos[d.index()]) else {
        let name = Cow::Borrowed(FOLDED_DSO);
        return PageDso { path: name.clone(), short_name: name, build_id: None, kind: "folded" };
    };
    PageDso {
        path: bounded_name(&dso.path),
        short_name: bounded_name(&dso.short_name),
        build_id: dso.build_id.map(|id| id.to_string()),
        kind: match dso.kind {
            DsoKind::Elf => "elf",
            DsoKind::Kernel => "kernel",
            DsoKind::KernelModule => "module",
            DsoKind::Vdso => "vdso",
            DsoKind::Jit => "jit",
            DsoKind::Unknown => wall::kind_of(dso.path.exact()).unwrap_or("unknown"),
        },
    }
}
