//! Defects of recordings and datasets.

use whit_cli::message;
use whit_tables::Defect;
use whit_view::warning::warning_text;

/// Says it on standard error.
pub(crate) fn say(defect: &Defect) {
    match defect {
        Defect::Recording(warning) => message::error(warning_text(warning)),
        Defect::Dataset(text) => message::warning(text),
    }
}

/// Damaged files of datasets make the library of Parquet panic: their errors are said, and nothing else.
pub(crate) fn hush_caught_panics() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !whit_dataset::panics_are_caught() {
            say(info);
        }
    }));
}
