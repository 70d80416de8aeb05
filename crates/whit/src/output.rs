//! Standard output, buffered, and what to do when its reader goes away.

use std::io::{self, BufWriter, StdoutLock};

/// Standard output with a buffer.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// True where the reader of our output has gone (`whit report | head`): no error to speak of.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}
