//! `whit --version`: the version, and the identity of this build.

use sha2::{Digest, Sha256};
use std::fmt::Write;
use whit_elf::ElfImage;

/// Bytes of the hash that are printed: enough to tell builds apart.
const HASH_BYTES: usize = 8;

/// Lines below the version.
pub(crate) fn details() -> String {
    let mut text = "engines: ring, bpf\ncompression: zstd\n".to_owned();
    let _ = writeln!(text, "BPF programs: sha256 {}", objects_hash());
    let _ = writeln!(text, "build id: {}", build_id().unwrap_or_else(|| "none".to_owned()));
    text
}

fn objects_hash() -> String {
    let mut hash = Sha256::new();
    whit_bpf::OBJECTS.iter().for_each(|object| hash.update(object));
    hash.finalize().iter().take(HASH_BYTES).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn build_id() -> Option<String> {
    let image = ElfImage::open(&std::env::current_exe().ok()?).ok()?;
    Some(image.build_id()?.to_string())
}
