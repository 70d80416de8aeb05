//! Where the names of code come from.

use crate::companions::Companions;
use crate::machine_model::machine::ThisMachine;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use whit_symbolize::{Symbolizer, SymbolizerConfig};

/// Files that are kept between two readings.
const KEPT_FILES_MAX: usize = 512;

/// Places of binaries and their symbols.
#[derive(Clone, Debug)]
pub struct NameSources {
    /// Where symbols come from.
    pub symbols: SymbolizerConfig,
    /// This machine: where it made the recording, files are told from others at their paths by their numbers,
    /// and opened through processes that still run. `None` takes files by their paths.
    pub machine: Option<ThisMachine>,
    /// Binaries and the kernel's symbols that earlier readings opened. For recordings of one kernel alone.
    pub kept_symbols: Option<KeptSymbols>,
    /// Whether debug companions that are not at hand are fetched.
    pub companions: Companions,
}

impl NameSources {
    /// Files by their paths; nothing is kept or fetched.
    pub fn new(symbols: SymbolizerConfig) -> NameSources {
        NameSources { symbols, machine: None, kept_symbols: None, companions: Companions::Off }
    }

    /// The same sources, with a note of each name that any reading asks for.
    pub(crate) fn with_notes(mut self) -> NameSources {
        self.symbols.notes = true;
        self.kept_symbols = Some(KeptSymbols::default());
        self
    }

    /// Opens what a reading looks names up in.
    pub(crate) fn symbolizer(&self, config: SymbolizerConfig) -> Arc<Symbolizer> {
        match &self.kept_symbols {
            Some(kept) => kept.symbolizer(config),
            None => Arc::new(Symbolizer::new(config)),
        }
    }
}

/// Symbols that one reading opens and the next ones use.
#[derive(Clone, Default)]
pub struct KeptSymbols(Arc<Mutex<Option<Arc<Symbolizer>>>>);

impl KeptSymbols {
    fn symbolizer(&self, config: SymbolizerConfig) -> Arc<Symbolizer> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert_with(|| Arc::new(Symbolizer::remembering(config))).clone()
    }

    /// Lets symbols go that may have changed, and all files where there are many. Called now and then, it bounds memory.
    pub fn trim(&self) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(symbolizer) = &*kept {
            symbolizer.forget_beyond(KEPT_FILES_MAX);
        }
    }
}

impl fmt::Debug for KeptSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptSymbols").finish_non_exhaustive()
    }
}
