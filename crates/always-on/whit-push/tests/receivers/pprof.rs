//! Pprof, as far as tests look at it.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use prost::Message;

/// A profile.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Pprof {
    #[prost(message, repeated, tag = "1")]
    pub(crate) sample_type: Vec<Pair>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Pair>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Pair>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub(crate) time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub(crate) duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub(crate) period_type: Option<Pair>,
    #[prost(int64, tag = "12")]
    pub(crate) period: i64,
}

/// Two numbers: type and unit, key and text, id and name, id of a function and line.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Pair {
    #[prost(int64, tag = "1")]
    pub(crate) first: i64,
    #[prost(int64, tag = "2")]
    pub(crate) second: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Pair>,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Pair>,
}

impl Pprof {
    pub(crate) fn from_gzip(gzip: &[u8]) -> Pprof {
        let mut bytes = Vec::new();
        GzDecoder::new(gzip).read_to_end(&mut bytes).expect("gzip");
        Pprof::decode(&bytes[..]).expect("pprof")
    }

    pub(crate) fn text(&self, at: i64) -> &str {
        &self.string_table[at as usize]
    }

    /// True where mappings, functions and locations have the numbers from 1 on: Parca takes no others.
    pub(crate) fn has_plain_numbers(&self) -> bool {
        let is_plain = |ids: Vec<u64>| ids.iter().copied().eq(1..=ids.len() as u64);
        is_plain(self.mapping.iter().map(|it| it.first as u64).collect())
            && is_plain(self.function.iter().map(|it| it.first as u64).collect())
            && is_plain(self.location.iter().map(|it| it.id).collect())
    }

    /// A value of all samples by the name of the innermost function.
    pub(crate) fn sums(&self, value: usize) -> BTreeMap<String, u64> {
        let function: BTreeMap<i64, &str> =
            self.function.iter().map(|it| (it.first, self.text(it.second))).collect();
        let name =
            |location: &Location| Some((location.id, function[&location.line.first()?.first]));
        let innermost: BTreeMap<u64, &str> = self.location.iter().filter_map(name).collect();
        let mut sums = BTreeMap::new();
        for sample in &self.sample {
            let name = innermost.get(&sample.location_id[0]).copied().unwrap_or("?");
            *sums.entry(name.to_owned()).or_default() += sample.value[value] as u64;
        }
        sums
    }

    /// The values of each label.
    pub(crate) fn labels(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut labels: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for label in self.sample.iter().flat_map(|sample| &sample.label) {
            let values = labels.entry(self.text(label.first)).or_default();
            if !values.contains(&self.text(label.second)) {
                values.push(self.text(label.second));
            }
        }
        labels
    }
}
