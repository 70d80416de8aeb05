//! `opentelemetry.proto.profiles.v1development` of opentelemetry-proto 1.9 to 1.11, with the messages of `common` and `resource`
//! that it needs. The signal is Alpha: field numbers may change in later versions.

use prost::{Message, Oneof};

/// A part of the data. Encoded parts behind one another are one.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ProfilesDictionary {
    #[prost(message, repeated, tag = "1")]
    pub(crate) mapping_table: Vec<Mapping>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) location_table: Vec<Location>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) function_table: Vec<Function>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) link_table: Vec<Link>,
    #[prost(string, repeated, tag = "5")]
    pub(crate) string_table: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) attribute_table: Vec<KeyValueAndUnit>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) stack_table: Vec<Stack>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")]
    pub(crate) value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Int(i64),
}

/// A part of a profile.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Profile {
    #[prost(message, optional, tag = "1")]
    pub(crate) sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
    #[prost(fixed64, tag = "3")]
    pub(crate) time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    pub(crate) period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    pub(crate) period: i64,
    #[prost(bytes = "vec", tag = "7")]
    pub(crate) profile_id: Vec<u8>,
    #[prost(int32, repeated, tag = "11")]
    pub(crate) attribute_indices: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Link {}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct ValueType {
    #[prost(int32, tag = "1")]
    pub(crate) type_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(crate) unit_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Sample {
    #[prost(int32, tag = "1")]
    pub(crate) stack_index: i32,
    #[prost(int32, repeated, tag = "2")]
    pub(crate) attribute_indices: Vec<i32>,
    #[prost(int64, repeated, tag = "4")]
    pub(crate) values: Vec<i64>,
    #[prost(fixed64, repeated, tag = "5")]
    pub(crate) timestamps_unix_nano: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Mapping {
    #[prost(uint64, tag = "2")]
    pub(crate) memory_limit: u64,
    #[prost(int32, tag = "4")]
    pub(crate) filename_strindex: i32,
    #[prost(int32, repeated, tag = "5")]
    pub(crate) attribute_indices: Vec<i32>,
}

/// Locations from the innermost to the outermost.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Stack {
    #[prost(int32, repeated, tag = "1")]
    pub(crate) location_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Location {
    #[prost(int32, tag = "1")]
    pub(crate) mapping_index: i32,
    #[prost(uint64, tag = "2")]
    pub(crate) address: u64,
    /// Innermost inlined function first.
    #[prost(message, repeated, tag = "3")]
    pub(crate) lines: Vec<Line>,
    #[prost(int32, repeated, tag = "4")]
    pub(crate) attribute_indices: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Line {
    #[prost(int32, tag = "1")]
    pub(crate) function_index: i32,
    #[prost(int64, tag = "2")]
    pub(crate) line: i64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Function {
    #[prost(int32, tag = "1")]
    pub(crate) name_strindex: i32,
    #[prost(int32, tag = "2")]
    pub(crate) system_name_strindex: i32,
    #[prost(int32, tag = "3")]
    pub(crate) filename_strindex: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValueAndUnit {
    #[prost(int32, tag = "1")]
    pub(crate) key_strindex: i32,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
    #[prost(int32, tag = "3")]
    pub(crate) unit_strindex: i32,
}
