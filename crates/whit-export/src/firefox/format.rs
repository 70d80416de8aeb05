//! The types of the processed profile format.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Kinds of code, and of time off the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Category {
    Other,
    User,
    Kernel,
    Jit,
    Wait,
}

impl Category {
    pub(super) const ALL: [Category; 5] =
        [Category::Other, Category::User, Category::Kernel, Category::Jit, Category::Wait];

    /// Its number in the list.
    pub(super) fn number(self) -> u32 {
        self as u32
    }
}

impl Serialize for Category {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named {
            name: &'static str,
            color: &'static str,
            subcategories: [&'static str; 1],
        }
        let (name, color) = match self {
            Category::Other => ("Other", "grey"),
            Category::User => ("User", "yellow"),
            Category::Kernel => ("Kernel", "orange"),
            Category::Jit => ("JIT", "green"),
            Category::Wait => ("Wait", "blue"),
        };
        Named { name, color, subcategories: ["Other"] }.serialize(serializer)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta<'a> {
    pub(super) product: String,
    /// Milliseconds between samples.
    pub(super) interval: f64,
    /// Milliseconds since the epoch.
    pub(super) start_time: f64,
    pub(super) end_time: f64,
    pub(super) version: u32,
    pub(super) preprocessed_profile_version: u32,
    pub(super) process_type: u32,
    pub(super) symbolicated: bool,
    pub(super) debug: bool,
    pub(super) uses_only_one_stack_type: bool,
    pub(super) source_code_is_not_on_searchfox: bool,
    pub(super) marker_schema: Value,
    pub(super) categories: [Category; 5],
    pub(super) sample_units: SampleUnits,
    pub(super) oscpu: String,
    pub(super) platform: &'static str,
    #[serde(rename = "CPUName")]
    pub(super) cpu_name: &'a str,
    #[serde(rename = "logicalCPUs", skip_serializing_if = "Option::is_none")]
    pub(super) logical_cpus: Option<u32>,
    pub(super) arguments: String,
    #[serde(rename = "importedFrom")]
    pub(super) importer: String,
    pub(super) initial_selected_threads: Vec<u32>,
    pub(super) extra: Vec<ExtraSection>,
}

/// A section of the description of the profile.
#[derive(Serialize)]
pub(super) struct ExtraSection {
    pub(super) label: &'static str,
    pub(super) entries: Vec<ExtraEntry>,
}

#[derive(Serialize)]
pub(super) struct ExtraEntry {
    pub(super) label: &'static str,
    pub(super) format: &'static str,
    pub(super) value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SampleUnits {
    time: &'static str,
    event_delay: &'static str,
    #[serde(rename = "threadCPUDelta")]
    thread_cpu_delta: &'static str,
}

impl Default for SampleUnits {
    fn default() -> Self {
        SampleUnits { time: "ms", event_delay: "ms", thread_cpu_delta: "µs" }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Library {
    pub(super) arch: String,
    pub(super) name: String,
    pub(super) path: String,
    pub(super) debug_name: String,
    pub(super) debug_path: String,
    pub(super) breakpad_id: String,
    pub(super) code_id: Option<String>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Thread<'a> {
    pub(super) name: &'a str,
    pub(super) is_main_thread: bool,
    pub(super) process_name: String,
    pub(super) process_type: &'static str,
    pub(super) process_startup_time: f64,
    pub(super) process_shutdown_time: Option<f64>,
    pub(super) register_time: f64,
    pub(super) unregister_time: Option<f64>,
    pub(super) paused_ranges: [(); 0],
    pub(super) pid: String,
    pub(super) tid: String,
    pub(super) show_markers_in_timeline: bool,
    pub(super) samples: SampleTable,
    pub(super) markers: MarkerTable,
    pub(super) stack_table: StackTable,
    pub(super) frame_table: FrameTable,
    pub(super) func_table: FuncTable,
    pub(super) resource_table: ResourceTable,
    pub(super) native_symbols: NativeSymbols,
    pub(super) string_array: Vec<String>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SampleTable {
    pub(super) length: usize,
    pub(super) weight_type: &'static str,
    pub(super) stack: Vec<Option<u32>>,
    pub(super) time_deltas: Vec<f64>,
    pub(super) weight: Vec<u64>,
    /// Microseconds on the CPU since the sample before.
    #[serde(rename = "threadCPUDelta", skip_serializing_if = "Option::is_none")]
    pub(super) thread_cpu_delta: Option<Vec<u64>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MarkerTable {
    pub(super) length: usize,
    pub(super) category: Vec<u32>,
    pub(super) data: Vec<Value>,
    pub(super) start_time: Vec<f64>,
    pub(super) end_time: Vec<Option<f64>>,
    pub(super) name: Vec<u32>,
    /// 0: a moment, 1: an interval.
    pub(super) phase: Vec<u8>,
}

#[derive(Default, Serialize)]
pub(super) struct StackTable {
    pub(super) length: usize,
    pub(super) prefix: Vec<Option<u32>>,
    pub(super) frame: Vec<u32>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameTable {
    pub(super) length: usize,
    /// Relative to the library; -1 where there is none.
    pub(super) address: Vec<i64>,
    pub(super) inline_depth: Vec<u32>,
    pub(super) category: Vec<u32>,
    pub(super) subcategory: Vec<u32>,
    pub(super) func: Vec<u32>,
    pub(super) native_symbol: Vec<Option<u32>>,
    #[serde(rename = "innerWindowID")]
    pub(super) inner_window_id: Vec<u32>,
    pub(super) line: Vec<Option<u32>>,
    pub(super) column: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FuncTable {
    pub(super) length: usize,
    pub(super) name: Vec<u32>,
    #[serde(rename = "isJS")]
    pub(super) is_js: Vec<bool>,
    #[serde(rename = "relevantForJS")]
    pub(super) relevant_for_js: Vec<bool>,
    /// -1 where there is none.
    pub(super) resource: Vec<i64>,
    pub(super) file_name: Vec<Option<u32>>,
    pub(super) line_number: Vec<Option<u32>>,
    pub(super) column_number: Vec<Option<u32>>,
}

#[derive(Default, Serialize)]
pub(super) struct ResourceTable {
    pub(super) length: usize,
    pub(super) lib: Vec<u32>,
    pub(super) name: Vec<u32>,
    pub(super) host: Vec<Option<u32>>,
    /// 1: a library.
    #[serde(rename = "type")]
    pub(super) kind: Vec<u32>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativeSymbols {
    pub(super) length: usize,
    pub(super) address: Vec<u32>,
    pub(super) function_size: Vec<u32>,
    pub(super) lib_index: Vec<u32>,
    pub(super) name: Vec<u32>,
}
