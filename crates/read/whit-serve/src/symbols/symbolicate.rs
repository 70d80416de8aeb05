//! `/symbolicate/v5`: functions, lines and inlined functions of addresses.

use super::{Binaries, Loaded, Refused, Symbols, base_of, hex};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use whit_profile::model::DsoId;
use whit_profile::{SourceLine, SourceOf};
use whit_types::Svma;

/// Frames of one request.
const MAX_FRAMES: usize = 200_000;
/// Bytes of names in one answer.
const MAX_ANSWER_BYTES: usize = 64 << 20;

#[derive(Deserialize)]
#[serde(untagged)]
enum Request {
    Jobs { jobs: Vec<Job> },
    One(Job),
}

/// Libraries by name and id, and stacks of index of library and address.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    memory_map: Vec<(String, String)>,
    stacks: Vec<Vec<(usize, u64)>>,
}

#[derive(Serialize)]
struct Answer {
    results: Vec<JobAnswer>,
}

#[derive(Serialize)]
struct JobAnswer {
    stacks: Vec<Vec<Frame>>,
    found_modules: BTreeMap<String, bool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    module_errors: BTreeMap<String, Vec<ModuleError>>,
}

#[derive(Serialize)]
struct ModuleError {
    name: &'static str,
    message: String,
}

#[derive(Serialize)]
struct Frame {
    frame: usize,
    module_offset: String,
    module: String,
    #[serde(flatten)]
    symbol: Option<Arc<Symbol>>,
}

#[derive(Serialize)]
struct Symbol {
    function: Arc<str>,
    function_offset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_size: Option<String>,
    #[serde(flatten)]
    place: Place,
    /// The innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlines: Vec<Inline>,
}

#[derive(Serialize)]
struct Inline {
    function: Arc<str>,
    #[serde(flatten)]
    place: Place,
}

#[derive(Serialize, Default)]
struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl From<Option<&SourceLine>> for Place {
    fn from(line: Option<&SourceLine>) -> Place {
        line.map_or_else(Place::default, |line| Place {
            file: Some(line.file.clone()),
            line: Some(line.line).filter(|number| *number > 0),
        })
    }
}

impl Symbol {
    fn size_bytes(&self) -> usize {
        let place = |place: &Place| place.file.as_ref().map_or(0, |file| file.len());
        let inlines =
            self.inlines.iter().map(|inline| inline.function.len() + place(&inline.place));
        self.function.len() + place(&self.place) + inlines.sum::<usize>()
    }
}

/// A library of a job.
enum Module {
    Found(DsoId, Svma),
    Missing(String),
}

impl<C: Binaries> Symbols<'_, C> {
    pub(crate) fn symbolicate(&self, body: &[u8]) -> String {
        self.answer(body, |loaded, request| loaded.jobs(&request))
    }
}

impl<C: Binaries> Loaded<C> {
    fn jobs(&self, request: &Request) -> Result<Answer, Refused> {
        let jobs = match request {
            Request::Jobs { jobs } => &jobs[..],
            Request::One(job) => std::slice::from_ref(job),
        };
        let frames: usize = jobs.iter().flat_map(|job| &job.stacks).map(Vec::len).sum();
        if frames > MAX_FRAMES {
            return Err(format!(
                "a request has {MAX_FRAMES} frames at most, and this one has {frames}: ask for a part"
            ));
        }
        let code = &self.code;
        let mut left_bytes = MAX_ANSWER_BYTES;
        let answer =
            jobs.iter().map(|job| self.job(code, job, &mut left_bytes)).collect::<Result<_, _>>();
        self.libraries.values().for_each(|dso| code.release(*dso));
        Ok(Answer { results: answer? })
    }

    fn job(&self, code: &C, job: &Job, left_bytes: &mut usize) -> Result<JobAnswer, Refused> {
        let module = |(name, id): &(String, String)| {
            let found = self.library(name, id).and_then(|dso| Ok((dso, base_of(code, dso, name)?)));
            found.map_or_else(Module::Missing, |(dso, base)| Module::Found(dso, base))
        };
        let modules: Vec<_> = job.memory_map.iter().map(module).collect();
        let mut known = HashMap::new();
        let mut frame = |position: usize, &(index, address): &(usize, u64)| {
            let (module, (name, _)) =
                modules.get(index).zip(job.memory_map.get(index)).ok_or_else(|| {
                    format!(
                        "a frame names library {index}, and memoryMap has {}",
                        job.memory_map.len()
                    )
                })?;
            let symbol: Option<Arc<Symbol>> = match module {
                Module::Missing(_) => None,
                Module::Found(dso, base) => known
                    .entry((index, address))
                    .or_insert_with(|| {
                        symbol(code, *dso, Svma(base.0.wrapping_add(address))).map(Arc::new)
                    })
                    .clone(),
            };
            let size = name.len() + symbol.as_ref().map_or(0, |symbol| symbol.size_bytes());
            *left_bytes = left_bytes
                .checked_sub(size)
                .ok_or("the answer would be larger than 64 MiB: ask for a part of the frames")?;
            Ok::<_, Refused>(Frame {
                frame: position,
                module_offset: hex(address),
                module: name.clone(),
                symbol,
            })
        };
        let mut stack = |stack: &Vec<(usize, u64)>| -> Result<Vec<Frame>, Refused> {
            stack.iter().enumerate().map(|(at, pair)| frame(at, pair)).collect()
        };
        let stacks = job.stacks.iter().map(&mut stack).collect::<Result<Vec<_>, Refused>>()?;
        Ok(JobAnswer { stacks, ..found(job, &modules) })
    }
}

/// Which libraries were found, as far as stacks name them.
fn found(job: &Job, modules: &[Module]) -> JobAnswer {
    let mut answer = JobAnswer {
        stacks: Vec::new(),
        found_modules: BTreeMap::new(),
        module_errors: BTreeMap::new(),
    };
    let mut is_named = vec![false; modules.len()];
    for (index, _) in job.stacks.iter().flatten() {
        is_named[*index] = true;
    }
    for (index, (name, id)) in
        job.memory_map.iter().enumerate().filter(|(index, _)| is_named[*index])
    {
        let key = format!("{name}/{id}");
        if let Module::Missing(reason) = &modules[index] {
            let error = ModuleError { name: "NotAtHand", message: reason.clone() };
            answer.module_errors.insert(key.clone(), vec![error]);
        }
        answer.found_modules.insert(key, matches!(modules[index], Module::Found(..)));
    }
    answer
}

fn symbol(code: &impl Binaries, dso: DsoId, address: Svma) -> Option<Symbol> {
    let (function, offset) = code.name_at(dso, address)?;
    let size = code.function_at(dso, address).map(|range| hex(range.end.0 - range.start.0));
    let SourceOf { line, inlined } = code.source_of(dso, address);
    let calls = inlined.iter().map(|(_, call)| call.as_ref()).chain([line.as_ref()]);
    // Where each function stands: at the call of the next inner one, the innermost at the address itself.
    let places: Vec<_> = calls.collect();
    let inlines = inlined.iter().zip(&places[1..]);
    let inlines =
        inlines.map(|((name, _), place)| Inline { function: name.clone(), place: (*place).into() });
    Some(Symbol {
        function,
        function_offset: hex(offset),
        function_size: size,
        place: places[0].into(),
        inlines: inlines.rev().collect(),
    })
}
