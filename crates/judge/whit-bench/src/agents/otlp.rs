//! Profiles that an agent sends by OTLP: requests as the collector's file has them, one a line, in JSON.

use serde::{Deserialize, Deserializer};

use super::pprof::{Stack, Stacks};

/// Attributes with the name of a process or a thread.
const NAMES_OF_PROCESSES: [&str; 2] = ["process.executable.name", "thread.name"];
const BUILD_ID: &str = "process.executable.build_id.gnu";

/// Tables that all profiles of a request share. The first element of each stands for nothing.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Dictionary {
    mapping_table: Vec<Mapping>,
    location_table: Vec<Location>,
    function_table: Vec<Function>,
    string_table: Vec<String>,
    attribute_table: Vec<Attribute>,
    stack_table: Vec<CallChain>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Mapping {
    filename_strindex: usize,
    attribute_indices: Vec<usize>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Location {
    mapping_index: usize,
    address: Number,
    /// Innermost first.
    lines: Vec<Line>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Line {
    function_index: usize,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Function {
    name_strindex: usize,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Attribute {
    key_strindex: usize,
    value: Value,
}

/// A text, or its place among the strings. Other values are nothing here.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Value {
    string_value: Option<String>,
    string_value_strindex: usize,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct CallChain {
    /// Innermost first.
    location_indices: Vec<usize>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Request {
    dictionary: Dictionary,
    resource_profiles: Vec<ResourceProfiles>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ResourceProfiles {
    resource: Resource,
    scope_profiles: Vec<ScopeProfiles>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Resource {
    attributes: Vec<Attribute>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ScopeProfiles {
    profiles: Vec<Profile>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Profile {
    time_unix_nano: Number,
    duration_nano: Number,
    samples: Vec<Sample>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Sample {
    stack_index: usize,
    attribute_indices: Vec<usize>,
    timestamps_unix_nano: Vec<Number>,
}

/// JSON has numbers of 64 bits as texts.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Number(u64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(u64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Number(number) => Ok(Number(number)),
            Form::Text(text) => text.parse().map(Number).map_err(serde::de::Error::custom),
        }
    }
}

/// An address of a program without a name.
pub(super) struct Code<'a> {
    /// The last part of its path.
    pub(super) file: &'a str,
    /// In hexadecimal digits.
    pub(super) build_id: Option<&'a str>,
    /// As the file states its addresses; in the call, not behind it.
    pub(super) address: u64,
}

/// Names at an address, the outermost first.
pub(super) type Names<'n> = &'n dyn Fn(&Code<'_>) -> Vec<String>;

/// Reads all whole lines of the file. Samples after `until_ns` (since 1970) are left out.
pub(super) fn read(text: &str, until_ns: u64, names: Names<'_>) -> Result<Stacks, String> {
    let mut all = Stacks::default();
    for request in requests(text) {
        let request = request?;
        let dictionary = &request.dictionary;
        let frames: Vec<Vec<String>> =
            dictionary.location_table.iter().map(|it| dictionary.frames(it, names)).collect();
        for resource in &request.resource_profiles {
            let of_resource =
                dictionary.process(&resource.resource.attributes.iter().collect::<Vec<_>>());
            for sample in resource.profiles().flat_map(|profile| &profile.samples) {
                let own = || dictionary.process(&dictionary.attributes(&sample.attribute_indices));
                let is_in_time = |time: &&Number| time.0 <= until_ns;
                all.stacks.push(Stack {
                    samples: sample.timestamps_unix_nano.iter().filter(is_in_time).count() as u64,
                    frames: dictionary.chain(sample, &frames),
                    process: of_resource.clone().or_else(own),
                });
            }
        }
    }
    all.stacks.retain(|stack| stack.samples > 0);
    Ok(all)
}

/// Nanoseconds since 1970 up to which the last report reaches; 0 where there is none.
pub(super) fn end_ns(text: &str) -> u64 {
    let requests = requests(text).filter_map(Result::ok);
    let end = |profile: &Profile| profile.time_unix_nano.0.saturating_add(profile.duration_nano.0);
    let last = |request: Request| {
        let profiles = request.resource_profiles.iter().flat_map(ResourceProfiles::profiles);
        profiles.map(end).max().unwrap_or(0)
    };
    requests.map(last).max().unwrap_or(0)
}

/// The end of a line comes a moment after its text.
fn requests(text: &str) -> impl Iterator<Item = Result<Request, String>> {
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).map_err(|error| format!("is no OTLP: {error}")))
}

impl ResourceProfiles {
    fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.scope_profiles.iter().flat_map(|scope| &scope.profiles)
    }
}

impl Dictionary {
    fn text(&self, index: usize) -> &str {
        self.string_table.get(index).map_or("", String::as_str)
    }

    fn attributes(&self, indices: &[usize]) -> Vec<&Attribute> {
        indices.iter().filter_map(|index| self.attribute_table.get(*index)).collect()
    }

    fn value<'a>(&'a self, attributes: &[&'a Attribute], key: &str) -> Option<&'a str> {
        let found = attributes.iter().find(|it| self.text(it.key_strindex) == key)?;
        let text = found.value.string_value.as_deref();
        Some(text.unwrap_or_else(|| self.text(found.value.string_value_strindex)))
    }

    fn process(&self, attributes: &[&Attribute]) -> Option<String> {
        NAMES_OF_PROCESSES.iter().find_map(|key| self.value(attributes, key)).map(str::to_owned)
    }

    /// The functions of a location, the outermost first.
    fn frames(&self, location: &Location, names: Names<'_>) -> Vec<String> {
        if location.lines.is_empty() {
            return self.names_by_file(location, names);
        }
        let name = |line: &Line| {
            let function = self.function_table.get(line.function_index);
            function.map_or_else(String::new, |it| self.text(it.name_strindex).to_owned())
        };
        location.lines.iter().rev().map(name).collect()
    }

    fn names_by_file(&self, location: &Location, names: Names<'_>) -> Vec<String> {
        let mapping = self.mapping_table.get(location.mapping_index);
        let Some(mapping) = mapping.filter(|_| location.mapping_index > 0) else {
            return vec![String::new()];
        };
        names(&Code {
            file: self.text(mapping.filename_strindex),
            build_id: self.value(&self.attributes(&mapping.attribute_indices), BUILD_ID),
            address: location.address.0,
        })
    }

    /// The functions of a sample, the outermost first.
    fn chain(&self, sample: &Sample, frames: &[Vec<String>]) -> Vec<String> {
        let chain = self.stack_table.get(sample.stack_index);
        let locations = chain.map_or(&[][..], |chain| &chain.location_indices);
        let known = locations.iter().rev().filter_map(|index| frames.get(*index));
        known.flatten().cloned().collect()
    }
}
