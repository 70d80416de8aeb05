//! Compares schemas of JSON documents with the files that publish them, for tests.
//!
//! It is apart from `whit-testing`, which all crates' tests use: serde_json in their scope would make the type
//! of an empty array ambiguous.
#![forbid(unsafe_code)]

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

/// Compares the schema of a JSON document, as it is written, with the file that publishes it.
///
/// # Panics
/// If they differ.
pub fn assert_schema<T: JsonSchema>(file: &str) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    whit_testing::assert_published(file, &(text + "\n"));
}
