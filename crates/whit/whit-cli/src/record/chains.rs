//! Options of call chains.
// Doc comments of options are the text of --help, where brackets are just brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use super::parse;
use crate::heading;
use whit_capture::options::{CallGraph, ChainPlan, Engine};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct ChainArgs {
    /// Record call chains, also with options that the BPF engine does not take: from dumps of stacks then (with
    /// --engine=ring: by frame pointers)
    #[arg(short, help_heading = heading::CHAINS)]
    pub(super) g: bool,
    /// Record call chains by this method: fp[,FRAMES][,defer] (frame pointers; with defer the kernel
    /// reads the user's stack at the return to user mode), dwarf[,BYTES] (stack dumps), or lbr (the
    /// CPU's branch records)
    #[arg(long, value_name = "MODE", value_parser = parse::call_graph, help_heading = heading::CHAINS)]
    pub(super) call_graph: Option<parse::CallChains>,
    /// Choose what takes call chains: ring (the kernel's own ways), bpf (unwinds in the kernel without
    /// frame pointers), or auto (bpf where the kernel allows it, otherwise stack dumps) [default: auto; with
    /// --call-graph, and for tracepoints without -g: ring]
    #[arg(long, value_name = "ENGINE", value_parser = parse::engine, help_heading = heading::CHAINS)]
    pub(super) engine: Option<Engine>,
    /// Record only the kernel part of call chains
    #[arg(long, help_heading = heading::CHAINS)]
    kernel_callchains: bool,
    /// Record only the user part of call chains
    #[arg(long, help_heading = heading::CHAINS)]
    user_callchains: bool,
}

impl ChainArgs {
    pub(super) fn plan(&self) -> ChainPlan {
        let by_frame_pointers = if self.g { CallGraph::FramePointer } else { CallGraph::None };
        ChainPlan {
            call_graph: self.call_graph.map_or(by_frame_pointers, |chains| chains.mode),
            is_deferred: self.call_graph.is_some_and(|chains| chains.is_deferred),
            kernel_only: self.kernel_callchains,
            user_only: self.user_callchains,
            max_frames: self.call_graph.and_then(|chains| chains.max_stack),
        }
    }
}
