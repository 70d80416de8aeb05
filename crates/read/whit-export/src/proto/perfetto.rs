//! `perfetto.protos`: the packets and interned data that the writer uses.

use prost::Message;

/// `SEQ_INCREMENTAL_STATE_CLEARED`.
pub(crate) const STATE_CLEARED: u32 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`.
pub(crate) const NEEDS_STATE: u32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacket {
    #[prost(message, optional, tag = "2")]
    pub(crate) process_tree: Option<ProcessTree>,
    #[prost(uint64, optional, tag = "8")]
    pub(crate) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "12")]
    pub(crate) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(crate) sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "59")]
    pub(crate) trace_packet_defaults: Option<TracePacketDefaults>,
    #[prost(message, optional, tag = "60")]
    pub(crate) track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub(crate) processes: Vec<Process>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) threads: Vec<Thread>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Process {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub(crate) cmdline: Vec<String>,
    #[prost(bool, optional, tag = "9")]
    pub(crate) cmdline_is_comm: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Thread {
    #[prost(int32, optional, tag = "1")]
    pub(crate) tid: Option<i32>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    pub(crate) tgid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub(crate) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) parent_uuid: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ThreadDescriptor {
    #[prost(int32, optional, tag = "1")]
    pub(crate) pid: Option<i32>,
    #[prost(int32, optional, tag = "2")]
    pub(crate) tid: Option<i32>,
    #[prost(string, optional, tag = "5")]
    pub(crate) thread_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DebugAnnotation {
    #[prost(uint64, optional, tag = "3")]
    pub(crate) uint_value: Option<u64>,
    #[prost(string, optional, tag = "6")]
    pub(crate) string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedData {
    #[prost(message, repeated, tag = "5")]
    pub(crate) function_names: Vec<InternedString>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) frames: Vec<Frame>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) callstacks: Vec<Callstack>,
    #[prost(message, repeated, tag = "16")]
    pub(crate) build_ids: Vec<InternedString>,
    #[prost(message, repeated, tag = "17")]
    pub(crate) mapping_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "18")]
    pub(crate) source_paths: Vec<InternedString>,
    #[prost(message, repeated, tag = "19")]
    pub(crate) mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "50")]
    pub(crate) counter_descriptors: Vec<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InternedString {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) str: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Frame {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) function_name_id: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub(crate) mapping_id: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) rel_pc: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) source_path_iid: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    pub(crate) line_number: Option<u32>,
}

/// Frames from the outermost to the innermost.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Callstack {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "2")]
    pub(crate) frame_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Mapping {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub(crate) build_id: Option<u64>,
    #[prost(uint64, optional, tag = "4")]
    pub(crate) start: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) end: Option<u64>,
    #[prost(uint64, repeated, packed = "false", tag = "7")]
    pub(crate) path_string_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TracePacketDefaults {
    #[prost(message, optional, tag = "12")]
    pub(crate) perf_sample_defaults: Option<PerfSampleDefaults>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PerfSampleDefaults {
    #[prost(message, optional, tag = "1")]
    pub(crate) timebase: Option<Timebase>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Timebase {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) period: Option<u64>,
    #[prost(string, optional, tag = "10")]
    pub(crate) name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CounterDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    /// 1: nanoseconds, 9: count.
    #[prost(int32, optional, tag = "3")]
    pub(crate) unit: Option<i32>,
}
