//! `/source/v1`: a source file that the debug information of an address names.

use super::{Binaries, Loaded, Refused, Symbols, base_of, hexadecimal};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::Path;
use whit_sys::Errno;
use whit_sys::process_files::open_regular;
use whit_types::Svma;

/// Largest file that is read. Generated ones reach some MiB.
const MAX_FILE_BYTES: u64 = 32 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    debug_name: String,
    debug_id: String,
    #[serde(deserialize_with = "hexadecimal")]
    module_offset: u64,
    file: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    symbols_last_modified: Option<String>,
    source_last_modified: Option<String>,
    file: String,
    source: String,
}

impl<C: Binaries> Symbols<'_, C> {
    pub(crate) fn source(&self, body: &[u8]) -> String {
        self.answer(body, Loaded::file)
    }
}

impl<C: Binaries> Loaded<C> {
    fn file(&self, request: Request) -> Result<Answer, Refused> {
        let dso = self.library(&request.debug_name, &request.debug_id)?;
        let code = &self.code;
        let base = base_of(code, dso, &request.debug_name)?;
        let place = code.source_of(dso, Svma(base.0.wrapping_add(request.module_offset)));
        code.release(dso);
        let calls = place.inlined.iter().filter_map(|(_, call)| call.as_ref());
        // The path is compared as a whole, and that of the debug information is opened.
        let named = calls.chain(&place.line).find(|line| *line.file == *request.file);
        let named = named.ok_or_else(|| {
            format!(
                "the debug information of {} does not name this file at this address",
                request.debug_name
            )
        })?;
        let source = read(Path::new(&*named.file))?;
        Ok(Answer {
            symbols_last_modified: None,
            source_last_modified: None,
            file: request.file,
            source,
        })
    }
}

/// The text of a regular file: a pipe or a device could block.
fn read(path: &Path) -> Result<String, Refused> {
    let refused = |why: &dyn std::fmt::Display| format!("{} is not read: {why}", path.display());
    if !path.is_absolute() {
        return Err(refused(&"the debug information does not say in which directory it lies"));
    }
    let opened = open_regular(path).map_err(|errno| match errno {
        Errno::INVAL => refused(&"it is no regular file"),
        errno => refused(&io::Error::from(errno)),
    })?;
    if opened.metadata().map_err(|error| refused(&error))?.len() > MAX_FILE_BYTES {
        return Err(refused(&"it is larger than 32 MiB"));
    }
    let mut bytes = Vec::new();
    opened.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(|error| refused(&error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
