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
    pub(super) markers: MarkerTable<'a>,
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
pub(super) struct MarkerTable<'a> {
    pub(super) length: usize,
    pub(super) category: Vec<u32>,
    pub(super) data: Vec<MarkerData<'a>>,
    pub(super) start_time: Vec<f64>,
    pub(super) end_time: Vec<Option<f64>>,
    pub(super) name: Vec<u32>,
    /// 0: a moment, 1: an interval.
    pub(super) phase: Vec<u8>,
}

/// The fields of each kind of marker ([`SCHEMAS`](super::markers::SCHEMAS)), by name.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MarkerData<'a> {
    Wait {
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        #[serde(skip_serializing_if = "Option::is_none")]
        certain: Option<Uncertain>,
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<&'static str>,
        switches: u64,
        r#type: MarkerType,
        #[serde(skip_serializing_if = "Option::is_none")]
        waker: Option<WakerName<'a>>,
    },
    Sample {
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        period: u64,
        samples: u64,
        r#type: MarkerType,
    },
    Request {
        #[serde(skip_serializing_if = "Option::is_none")]
        goroutine: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<&'a str>,
        r#type: MarkerType,
    },
    Loss {
        r#type: MarkerType,
    },
    Note {
        text: String,
        r#type: MarkerType,
    },
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MarkerType {
    Wait,
    Sample,
    Request,
    Loss,
    Note,
}

/// The call chain of a marker.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Cause {
    pub(super) stack: u32,
}

/// Losses may hide more switches in the wait.
#[derive(Clone, Copy, Serialize)]
pub(super) enum Uncertain {
    #[serde(rename = "no: records were lost meanwhile")]
    Lossy,
}

/// A thread that made a wake-up, or an interrupt that did while it ran.
pub(super) struct WakerName<'a> {
    pub(super) name: &'a str,
    pub(super) tid: i32,
}

impl Serialize for WakerName<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{} ({})", self.name, self.tid))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_have_the_fields_of_their_kind_alone() {
        let json = |data: MarkerData<'_>| serde_json::to_string(&data).unwrap();
        let wait = |cause, certain, class, waker| MarkerData::Wait {
            cause,
            certain,
            class,
            switches: 2,
            r#type: MarkerType::Wait,
            waker,
        };
        let waker = WakerName { name: "a \"b\"", tid: 7 };
        let (cause, lossy) = (Some(Cause { stack: 3 }), Some(Uncertain::Lossy));
        assert_eq!(
            json(wait(cause, lossy, Some("lock"), Some(waker))),
            r#"{"cause":{"stack":3},"certain":"no: records were lost meanwhile","class":"lock","switches":2,"type":"wait","waker":"a \"b\" (7)"}"#
        );
        assert_eq!(json(wait(None, None, None, None)), r#"{"switches":2,"type":"wait"}"#);
        let (period, samples, r#type) = (5, 1, MarkerType::Sample);
        assert_eq!(
            json(MarkerData::Sample { cause: None, period, samples, r#type }),
            r#"{"period":5,"samples":1,"type":"sample"}"#
        );
        assert_eq!(json(MarkerData::Loss { r#type: MarkerType::Loss }), r#"{"type":"loss"}"#);
        let request = |key| {
            let goroutine = None;
            MarkerData::Request { goroutine, key, r#type: MarkerType::Request }
        };
        assert_eq!(json(request(Some("a \"b\""))), r#"{"key":"a \"b\"","type":"request"}"#);
        assert_eq!(json(request(None)), r#"{"type":"request"}"#);
        let note = MarkerData::Note { text: "<x>".to_owned(), r#type: MarkerType::Note };
        assert_eq!(json(note), r#"{"text":"<x>","type":"note"}"#);
    }
}
