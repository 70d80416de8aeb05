//! Requests by probes: the calls of a function, or the time between two probes of a program.

use super::super::probes::Probes;
use super::{FORM, SHOWN, found, go, usdt};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::str::FromStr;
use whit_capture::event::EventSpec;
use whit_elf::ElfImage;
use whit_host::roots::Roots;
use whit_host::user_probe::{ProbeAt, ProbePlace};
use whit_perfdata::request::{Edge, KEY, STACK_POINTER, event_name};
use whit_symbolize::{DebugDirs, DsoKind, DsoSpec, Symbolizer, SymbolizerConfig, demangle};
use whit_types::Svma;

/// `BINARY:FUNCTION`, or `BINARY:BEGIN..END`, with or without `,key=FIELD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Probed {
    binary: PathBuf,
    function: String,
    /// A field of the probe, in the kernel's language.
    key: Option<String>,
}

impl FromStr for Probed {
    type Err = String;

    fn from_str(text: &str) -> Result<Probed, String> {
        let (rest, key) = match text.split_once(",key=") {
            Some((rest, key)) => (rest, Some(key.to_owned())),
            None => (text, None),
        };
        if key.as_ref().is_some_and(|key| key.is_empty() || key.contains(char::is_whitespace)) {
            return Err("a key is a register as %di, or memory as +0(%di):string".to_owned());
        }
        let (binary, function) = rest.split_once(':').ok_or(FORM)?;
        if binary.is_empty() || function.is_empty() {
            return Err(FORM.to_owned());
        }
        let numbered = key.as_deref().and_then(|key| key.strip_prefix("arg"));
        let is_argument =
            numbered.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if is_argument && !function.contains("..") {
            return Err(
                "arg1 and the like are arguments of probes (BEGIN..END); a function has its first argument in %di, the second \
                 in %si: ,key=%di"
                    .to_owned(),
            );
        }
        Ok(Probed { binary: binary.into(), function: function.to_owned(), key })
    }
}

impl Probed {
    /// The events of both ends, and the file where they are calls of a Go program.
    pub(super) fn events(
        &self,
        request: &str,
        roots: &Roots,
        probes: &mut Probes,
    ) -> Result<([EventSpec; 2], Option<PathBuf>)> {
        let path = found(&self.binary)?;
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let image = ElfImage::from_file(&path, &file)?;
        let is_go_function = image.is_go() && !self.function.contains("..");
        let [begin, end] = match self.function.split_once("..") {
            None if is_go_function => {
                let (start, size) = self.function(&image)?;
                let fields = go::fields(&path, self.key.as_deref().map(with_type).as_deref());
                let [begin, end] = go::places(&image, (start, size), fields)
                    .with_context(|| format!("function '{}'", self.function))?;
                [Ok((ProbeAt::Entry, begin)), Ok((ProbeAt::Entry, end))]
            }
            Some((begin, end)) => {
                let at = |name, key| Ok((ProbeAt::Entry, usdt::places(&image, name, key)?));
                [at(begin, self.key.as_deref()), at(end, None)]
            }
            None => self.function_places(&image).map(|[begin, end]| {
                [Ok((ProbeAt::Entry, vec![begin])), Ok((ProbeAt::Return, vec![end]))]
            })?,
        };
        let mut event = |edge, place: Result<(ProbeAt, Vec<ProbePlace>)>| {
            let (at, places) = place?;
            let name = event_name(request, edge);
            let place = (at, &places[..]);
            let mut event = probes.add(("--request", roots), &name, (&path, &file), place)?;
            event.is_without_chains = true;
            Ok::<_, anyhow::Error>(event)
        };
        let events = [event(Edge::Begin, begin)?, event(Edge::End, end)?];
        Ok((events, is_go_function.then_some(path)))
    }

    /// The places where a function begins and returns.
    fn function_places(&self, image: &ElfImage) -> Result<[ProbePlace; 2]> {
        let (start, _) = self.function(image)?;
        let offset = image.file_offset_of(start);
        let offset = offset.with_context(|| format!("'{}' is not in the file", self.function))?.0;
        let stack_pointer = format!("{STACK_POINTER}=%sp:u64");
        let begin = match &self.key {
            Some(key) => format!("{stack_pointer} {KEY}={}", with_type(key)),
            None => stack_pointer.clone(),
        };
        Ok([begin, stack_pointer].map(|fields| ProbePlace { offset, counter: None, fields }))
    }

    /// Address and size of the function: by its name in the binary, or by the readable one.
    fn function(&self, image: &ElfImage) -> Result<(Svma, u64)> {
        let path = image.path();
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let config = SymbolizerConfig::new(DebugDirs::standard(home.as_deref()));
        let binary = Symbolizer::new(config).open(&DsoSpec::new(DsoKind::Elf, path.to_path_buf()));
        let table =
            binary.symbol_table().with_context(|| format!("{} has no symbols", path.display()))?;
        let mut found: BTreeSet<(Svma, u64)> = BTreeSet::new();
        let mut alike = BTreeSet::new();
        for symbol in table.iter() {
            let readable = demangle(symbol.name);
            if symbol.name == self.function.as_bytes() || readable == self.function {
                found.insert((symbol.start, symbol.size_bytes));
            } else if readable.contains(&self.function) && alike.len() < SHOWN {
                alike.insert(readable.into_owned());
            }
        }
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some(function), None) => Ok(function),
            (Some(_), Some(_)) => bail!(
                "{} has several functions '{}': give the name that nm prints",
                path.display(),
                self.function
            ),
            (None, _) => {
                let alike = alike.into_iter().collect::<Vec<_>>().join(", ");
                let hint = match alike.is_empty() {
                    false => format!("; it has {alike}"),
                    true if image.section(".symtab").is_none() => {
                        "; it has no symbol table of its own (stripped, or built with -ldflags=-s)"
                            .to_owned()
                    }
                    true => String::new(),
                };
                bail!("{} has no function '{}'{hint}", path.display(), self.function)
            }
        }
    }
}

/// A register is a number, whose type the kernel takes for hexadecimal without one.
fn with_type(key: &str) -> String {
    if key.contains(':') { key.to_owned() } else { format!("{key}:u64") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn probes_are_a_function_of_a_file_or_two_of_its_probes() {
        let probed: Probed = "./srv:ns::handle(int),key=+0(%di):string".parse().unwrap();
        assert_eq!(probed.binary, Path::new("./srv"));
        assert_eq!(probed.function, "ns::handle(int)");
        assert_eq!(probed.key.as_deref(), Some("+0(%di):string"));
        for wrong in ["b", ":c", "b:", "b:c,key=", "b:c,key=%di x"] {
            assert!(wrong.parse::<Probed>().is_err(), "{wrong}");
        }
        let error = "b:c,key=arg1:string".parse::<Probed>().unwrap_err();
        assert!(error.ends_with(",key=%di"), "{error}");
        assert!("b:c..d,key=arg1:string".parse::<Probed>().is_ok());
    }

    #[test]
    fn registers_are_decimal_numbers() {
        assert_eq!(with_type("%di"), "%di:u64");
        assert_eq!(with_type("+0(%si):string"), "+0(%si):string");
    }
}
