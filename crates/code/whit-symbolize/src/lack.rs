//! Parts of a binary that a server may have, and this machine has not.

use whit_companion::Parts;
use whit_elf::ElfImage;
use whit_types::BuildId;

use crate::companion::has_symtab;
use crate::dso::{DsoSymbols, Source};
use crate::dso_spec::DsoKind;
use crate::dwarf::DebugInfo;

/// Parts that are not at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lack {
    /// The binary's build id.
    pub id: BuildId,
    /// As a fetch wants them.
    pub parts: Parts,
}

impl Lack {
    /// Whether functions lack their names.
    pub fn is_of_names(&self) -> bool {
        !matches!(self.parts, Parts::Sections { symbols: false, .. })
    }
}

impl DsoSymbols {
    /// The parts that neither the binary nor a companion here has. Debug information is looked for where it is
    /// wanted, and lacking only in a binary that was stripped: others were built without it.
    pub fn lack(&self, wants_debug_info: bool) -> Option<Lack> {
        if self.spec().kind != DsoKind::Elf {
            return None;
        }
        match &self.source {
            Source::Elf(image) => self.lack_of(image, wants_debug_info),
            // A file of the build id stands in for one that is not at hand.
            Source::Absent(reason) if reason.is_unopened() => {
                Some(Lack { id: self.spec().build_id?, parts: Parts::Whole })
            }
            _ => None,
        }
    }

    fn lack_of(&self, image: &ElfImage, wants_debug_info: bool) -> Option<Lack> {
        let id = image.build_id()?;
        let has_own = has_symtab(image);
        if has_own && (!wants_debug_info || image.debug_link().is_none()) {
            return None;
        }
        let (mut symbols, mut debug_info) =
            (!has_own, wants_debug_info && !DebugInfo::is_in(image));
        for companion in self.companions(image) {
            symbols &= !has_symtab(&companion);
            debug_info &= !DebugInfo::is_in(&companion);
            if !symbols && !debug_info {
                return None;
            }
        }
        (symbols || debug_info)
            .then_some(Lack { id, parts: Parts::Sections { symbols, debug_info } })
    }
}
