//! `perftools.profiles` (`profile.proto` of github.com/google/pprof).

use prost::Message;

/// A part of a profile. Encoded parts behind one another are one profile.
#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// Types of the values of each sample.
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<ValueType>,
    /// Call chains with their values.
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<Sample>,
    /// Mapped files.
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<Mapping>,
    /// Places in code.
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    /// Functions of these places.
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<Function>,
    /// All texts; the first is empty.
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    /// Nanoseconds since the epoch.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    /// Nanoseconds.
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    /// The measured quantity, as that of samples.
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    /// Between two samples.
    #[prost(int64, tag = "12")]
    pub period: i64,
    /// Indexes of texts.
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    /// Index of the text that a reader shows first.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

/// Type and unit, as indexes of strings.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct ValueType {
    /// Index of a text.
    #[prost(int64, tag = "1")]
    pub kind: i64,
    /// Index of a text.
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

/// A call chain with its values.
#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// Innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    /// In the order of the types of the profile.
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    /// Thread, process and others.
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<Label>,
}

/// A name with a text or a number.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Label {
    /// Index of a text.
    #[prost(int64, tag = "1")]
    pub key: i64,
    /// Index of a text; 0 where the label is a number.
    #[prost(int64, tag = "2")]
    pub str: i64,
    /// The number.
    #[prost(int64, tag = "3")]
    pub num: i64,
}

/// A mapped file.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Mapping {
    /// Number by which others name it.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// First address.
    #[prost(uint64, tag = "2")]
    pub memory_start: u64,
    /// Address behind the last one.
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    /// Index of a text.
    #[prost(int64, tag = "5")]
    pub filename: i64,
    /// Index of a text.
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Whether its places have functions.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    /// Whether they have files.
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    /// Whether they have lines.
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    /// Whether they have inlined functions.
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

/// A place in code.
#[derive(Clone, PartialEq, Message)]
pub struct Location {
    /// Number by which others name it.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Mapped file.
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    /// Address in the process.
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// Innermost inlined function first.
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<Line>,
}

/// A function of a place, inlined or not.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Line {
    /// Number of the called function.
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    /// Line; 0 where it is unknown.
    #[prost(int64, tag = "2")]
    pub line: i64,
}

/// A function with its file.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Function {
    /// Number by which others name it.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Index of a text.
    #[prost(int64, tag = "2")]
    pub name: i64,
    /// Index of a text: the name as linkers have it.
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    /// Index of a text.
    #[prost(int64, tag = "4")]
    pub filename: i64,
}
