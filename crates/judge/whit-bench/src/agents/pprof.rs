//! Profiles that agents write: pprof. Parts that nobody judges are not read.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use prost::Message;
use whit_export::proto::pprof::{Line, Profile, Sample};

/// A profile larger than that is not read: it would be a defect of the agent.
const MAX_BYTES: u64 = 1 << 30;
/// The first bytes of gzip. Some agents write the profile without it.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Labels that have the name of a thread or a process.
const NAMES_OF_PROCESSES: [&str; 2] = ["process.name", "comm"];

/// Samples of one call chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stack {
    /// Number of them.
    pub(super) samples: u64,
    /// The outermost function first, inlined ones too. A location without a name is an empty text.
    pub(super) frames: Vec<String>,
    /// The name of its process or thread, where a label has it.
    pub(super) process: Option<String>,
}

/// All call chains of a profile, and its comments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Stacks {
    pub(super) stacks: Vec<Stack>,
    pub(super) comments: Vec<String>,
}

impl Stacks {
    pub(super) fn add(&mut self, more: Stacks) {
        self.stacks.extend(more.stacks);
        self.comments.extend(more.comments);
    }
}

/// Reads a profile.
pub(super) fn read(bytes: &[u8]) -> Result<Stacks, String> {
    let plain = plain(bytes)?;
    let profile = Profile::decode(&plain[..]).map_err(|error| format!("is no pprof: {error}"))?;
    if profile.sample.is_empty() && profile.string_table.is_empty() {
        return Err("is no pprof: it has neither samples nor texts".to_owned());
    }
    let names = Names::new(&profile);
    let counts = profile.sample_type.iter().map(|kind| names.text(kind.unit));
    let value = counts.into_iter().position(|unit| unit == "count").unwrap_or(0);
    let stack = |sample: &Sample| Stack {
        samples: sample.value.get(value).copied().and_then(|n| n.try_into().ok()).unwrap_or(0),
        frames: sample.location_id.iter().rev().flat_map(|id| names.frames(*id)).collect(),
        process: names.process(sample),
    };
    Ok(Stacks {
        stacks: profile.sample.iter().map(stack).filter(|stack| stack.samples > 0).collect(),
        comments: profile.comment.iter().map(|text| names.text(*text).to_owned()).collect(),
    })
}

fn plain(bytes: &[u8]) -> Result<Vec<u8>, String> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes.to_vec());
    }
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MAX_BYTES + 1).read_to_end(&mut plain);
    match read {
        Err(error) => Err(format!("cannot be unpacked: {error}")),
        Ok(_) if plain.len() as u64 > MAX_BYTES => Err("has more than 1 GiB".to_owned()),
        Ok(_) => Ok(plain),
    }
}

/// Names by the profile's numbers. A number that stands for nothing has an empty name.
struct Names<'p> {
    texts: &'p [String],
    functions: HashMap<u64, i64>,
    locations: HashMap<u64, &'p [Line]>,
}

impl<'p> Names<'p> {
    fn new(profile: &'p Profile) -> Names<'p> {
        Names {
            texts: &profile.string_table,
            functions: profile.function.iter().map(|it| (it.id, it.name)).collect(),
            locations: profile.location.iter().map(|it| (it.id, &it.line[..])).collect(),
        }
    }

    fn text(&self, index: i64) -> &'p str {
        let found = usize::try_from(index).ok().and_then(|index| self.texts.get(index));
        found.map_or("", String::as_str)
    }

    /// The functions of a location, the outermost first.
    fn frames(&self, location: u64) -> Vec<String> {
        let lines = self.locations.get(&location).copied().unwrap_or_default();
        if lines.is_empty() {
            return vec![String::new()];
        }
        let name =
            |line: &Line| self.functions.get(&line.function_id).map_or("", |at| self.text(*at));
        lines.iter().rev().map(|line| name(line).to_owned()).collect()
    }

    fn process(&self, sample: &Sample) -> Option<String> {
        let label = |key: &&str| sample.label.iter().find(|label| self.text(label.key) == *key);
        let found = NAMES_OF_PROCESSES.iter().find_map(label);
        found.map(|label| self.text(label.str).to_owned())
    }
}
