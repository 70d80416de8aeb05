//! Meaning of an address.

use std::sync::Arc;

use whit_types::Svma;

use crate::dwarf::SourceLocation;
use crate::reason::Reason;
use crate::symbol_table::SymbolSource;

/// The function that owns an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolRef {
    /// Readable name; the same as `raw` where it is not mangled or demangling is off.
    pub name: Arc<str>,
    /// Name as the file has it.
    pub raw: Arc<str>,
    /// First address of the function.
    pub start: Svma,
    /// Size up to the first address behind it.
    pub size_bytes: u64,
    /// Where the name comes from.
    pub source: SymbolSource,
    /// The kernel module that it belongs to.
    pub module: Option<Arc<str>>,
}

/// A function that the compiler inlined at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinedFrame {
    /// Readable name.
    pub name: Arc<str>,
    /// Name as the debug information has it.
    pub raw: Arc<str>,
    /// Where in this function: the call of the next inlined function, or, in the innermost one, the
    /// address itself.
    pub location: Option<SourceLocation>,
    /// Where this function is called in the one around it.
    pub call_site: Option<SourceLocation>,
}

/// All that is known of one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The function that owns the address.
    pub function: Option<SymbolRef>,
    /// Functions that were inlined there, outermost first; the last one was executing.
    pub inlined: Vec<InlinedFrame>,
    /// Where in `function`: the call of the first inlined function, or the address itself.
    pub location: Option<SourceLocation>,
    /// Why there is no function.
    pub reason: Option<Reason>,
}

impl Resolution {
    /// A resolution without a name, for this reason.
    pub fn absent(reason: Reason) -> Resolution {
        Resolution { reason: Some(reason), ..Resolution::default() }
    }

    /// Only the part that is wanted. The line without inlined functions is that of the address, wherever the code
    /// came from.
    pub(crate) fn reduced(mut self, inlines: bool, lines: bool) -> Resolution {
        if !inlines {
            self.location = self.innermost_location().cloned();
            self.inlined.clear();
        }
        if !lines {
            self.location = None;
            for frame in &mut self.inlined {
                (frame.location, frame.call_site) = (None, None);
            }
        }
        self
    }

    /// The source line that was executing, in whichever function that was.
    pub fn innermost_location(&self) -> Option<&SourceLocation> {
        self.inlined.last().map_or(self.location.as_ref(), |frame| frame.location.as_ref())
    }
}
