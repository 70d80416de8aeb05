//! The loop that stands in for libFuzzer.

use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fastrand::Rng;

use crate::Verdict;
use crate::mutate::{Material, mutate};

/// Inputs kept for mutation beside the corpus.
const MAX_POOL: usize = 1024;

/// A fuzz target.
pub struct Target<'a> {
    /// Its name, which is that of its corpus folder.
    pub name: &'a str,
    /// The `fuzz` folder.
    pub root: &'a Path,
    /// Tokens that mutations insert.
    pub dictionary: &'a [&'a str],
    /// Runs one input; panics where the code under test is wrong.
    pub one_input: fn(&[u8]) -> Verdict,
}

/// What the command line asks for.
#[derive(Debug)]
struct Options {
    /// Mutated inputs to run after the corpus.
    iterations: u64,
    /// Seed of the generator.
    seed: u64,
    /// Longest input, in bytes.
    max_len: usize,
    /// Inputs to run instead, to reproduce a failure.
    files: Vec<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options =
            Options { iterations: 20_000, seed: 1, max_len: 64 * 1024, files: Vec::new() };
        while let Some(argument) = arguments.next() {
            let mut number = || -> Result<u64, String> {
                let value = arguments.next().ok_or(format!("{argument} needs a number"))?;
                value.parse().map_err(|_| format!("{argument} takes a number, not {value}"))
            };
            match argument.as_str() {
                "--iterations" => options.iterations = number()?,
                "--seed" => options.seed = number()?,
                "--max-len" => options.max_len = number()? as usize,
                flag if flag.starts_with('-') => {
                    return Err(format!(
                        "unknown option {flag}: --iterations N, --seed N, --max-len BYTES, or files"
                    ));
                }
                file => options.files.push(file.into()),
            }
        }
        Ok(options)
    }
}

/// Runs a target as its options ask. Failure: an input made the code under test panic; the input
/// is then kept under `artifacts/`.
pub fn run(target: &Target<'_>, arguments: impl Iterator<Item = String>) -> ExitCode {
    let outcome = Options::parse(arguments).and_then(|options| match options.files.is_empty() {
        true => mutate_corpus(target, &options),
        false => reproduce(target, &options.files),
    });
    match outcome {
        Ok(summary) => {
            println!("{}: {summary}", target.name);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{}: {error}", target.name);
            ExitCode::FAILURE
        }
    }
}

fn reproduce(target: &Target<'_>, files: &[PathBuf]) -> Result<String, String> {
    for file in files {
        let input =
            fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        try_input(target, &input)?;
    }
    Ok(format!("{} inputs, none failed", files.len()))
}

fn mutate_corpus(target: &Target<'_>, options: &Options) -> Result<String, String> {
    let corpus = read_corpus(&target.root.join("corpus").join(target.name))?;
    let mut pool = corpus.clone();
    for input in &corpus {
        try_input(target, input)?;
    }
    let mut rng = Rng::with_seed(options.seed);
    let mut kept = 0_u64;
    for iteration in 0..options.iterations {
        let mut input = rng.choice(&pool).cloned().unwrap_or_default();
        let material =
            Material { dictionary: target.dictionary, pool: &pool, max_len: options.max_len };
        mutate(&mut input, &material, &mut rng);
        let verdict = try_input(target, &input)
            .map_err(|error| format!("{error} (iteration {iteration}, --seed {})", options.seed))?;
        if verdict == Verdict::Keep {
            kept += 1;
            keep(&mut pool, corpus.len(), input, &mut rng);
        }
    }
    let (seeds, iterations, seed) = (corpus.len(), options.iterations, options.seed);
    Ok(format!(
        "{seeds} seeds and {iterations} mutations with --seed {seed}, {kept} accepted, none failed"
    ))
}

/// Adds to the pool; once it is full, in place of one that is no seed.
fn keep(pool: &mut Vec<Vec<u8>>, seeds: usize, input: Vec<u8>, rng: &mut Rng) {
    if pool.len() < MAX_POOL.max(seeds + 1) {
        pool.push(input);
    } else {
        let index = rng.usize(seeds..pool.len());
        pool[index] = input;
    }
}

fn try_input(target: &Target<'_>, input: &[u8]) -> Result<Verdict, String> {
    panic::catch_unwind(AssertUnwindSafe(|| (target.one_input)(input))).map_err(|_| {
        match save(target, input) {
            Ok(path) => format!("an input failed; it is kept in {}", path.display()),
            Err(error) => format!("an input failed, and could not be kept: {error}"),
        }
    })
}

fn save(target: &Target<'_>, input: &[u8]) -> io::Result<PathBuf> {
    let dir = target.root.join("artifacts").join(target.name);
    fs::create_dir_all(&dir)?;
    // FNV-1a: a name that is the same for the same input.
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let path = dir.join(format!("crash-{hash:016x}"));
    fs::write(&path, input)?;
    Ok(path)
}

/// Reads the seeds in the order of their names. A target without any is a mistake.
fn read_corpus(dir: &Path) -> Result<Vec<Vec<u8>>, String> {
    let failed = |error: io::Error| format!("cannot read the corpus {}: {error}", dir.display());
    let mut paths = fs::read_dir(dir)
        .map_err(failed)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<PathBuf>>>()
        .map_err(failed)?;
    paths.sort();
    let inputs = paths.iter().map(fs::read).collect::<io::Result<Vec<_>>>().map_err(failed)?;
    match inputs.is_empty() {
        true => Err(format!("the corpus {} is empty", dir.display())),
        false => Ok(inputs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(root: &Path) -> Target<'_> {
        let one_input = |data: &[u8]| {
            assert!(!data.starts_with(b"bad"), "a bad input");
            if data.starts_with(b"b") { Verdict::Keep } else { Verdict::Reject }
        };
        Target { name: "test", root, dictionary: &["ad"], one_input }
    }

    #[test]
    fn a_failing_input_is_found_kept_and_reproduced() {
        let root = std::env::temp_dir().join(format!("whit-fuzz-{}", std::process::id()));
        fs::create_dir_all(root.join("corpus/test")).unwrap();
        fs::write(root.join("corpus/test/seed"), "b").unwrap();
        let options = Options { iterations: 20_000, seed: 1, max_len: 16, files: Vec::new() };
        let error = mutate_corpus(&target(&root), &options).unwrap_err();
        let path = error.split("kept in ").nth(1).unwrap().split(' ').next().unwrap();
        assert!(fs::read(path).unwrap().starts_with(b"bad"), "{error}");
        assert!(reproduce(&target(&root), &[path.into()]).is_err());
        fs::remove_dir_all(&root).unwrap();
    }

    /// The list of programs in Cargo.toml is written by hand; the folder is the truth.
    #[test]
    fn every_target_has_a_program_and_a_corpus() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let mut targets = 0;
        for entry in fs::read_dir(root.join("fuzz_targets")).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(manifest.contains(&format!("name = \"{name}\"")), "no [[bin]] for {name}");
            assert!(!read_corpus(&root.join("corpus").join(name)).unwrap().is_empty());
            targets += 1;
        }
        assert!(targets > 0);
    }
}
