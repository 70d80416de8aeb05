//! Golden recordings as contents.

use crate::content::Content;
use std::path::Path;
use whit_perfdata::reader::Recording;
use whit_profile::{LoadOptions, load};
use whit_symbolize::{DebugDirs, SymbolizerConfig};

/// Hands the content of a golden recording on.
pub(crate) fn with_content<T>(name: &str, take: impl FnOnce(&Content<'_>) -> T) -> T {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/golden");
    let recording = Recording::open(&golden.join(name).join("recording.data")).expect("open");
    let dirs = DebugDirs { symfs: Some(golden.join("root")), ..DebugDirs::none() };
    let options = LoadOptions::new(2, SymbolizerConfig::new(dirs));
    let profile = load(&recording, &options, &|_, _| ()).expect("load");
    take(&Content::new(&recording, &profile, None))
}
