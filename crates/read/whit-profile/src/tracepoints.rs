//! How the records of a recording's tracepoints are printed.

use crate::facets::WantedTrace;
use whit_perfdata::attr::pmu_type;
use whit_perfdata::feature::{EventDesc, Feature};
use whit_perfdata::reader::Recording;
use whit_perfdata::tracing_data::{TracingData, TracingDataError};
use whit_print_format::{TraceContext, TraceFormat};

/// The formats of a recording's tracepoints.
#[derive(Debug, Default)]
pub struct Tracepoints {
    /// The kernel's strings.
    pub data: TracingData,
    /// By event; `None` for other events, and for tracepoints without a recorded format.
    formats: Vec<Option<TraceFormat>>,
    /// Why parts of the formats could not be read.
    pub problems: Vec<TracingDataError>,
}

impl Tracepoints {
    /// Those of a recording, with the text that is wanted of each record.
    pub fn of(recording: &Recording, wanted: WantedTrace) -> Tracepoints {
        let section = recording.features.get(Feature::TRACING_DATA).unwrap_or_default();
        let (data, mut problems) = match TracingData::parse(section) {
            Ok(data) => (data, Vec::new()),
            Err(_) if section.is_empty() => Default::default(),
            Err(error) => (TracingData::default(), vec![error]),
        };
        problems.extend(data.problems.iter().cloned());
        let format = |event: &EventDesc| {
            let is_tracepoint = event.attr.pmu_type == pmu_type::TRACEPOINT;
            let described = data.event(event.attr.config).filter(|_| is_tracepoint)?;
            Some(match wanted {
                WantedTrace::Fields => TraceFormat::of_fields(described),
                _ => TraceFormat::new(described, data.long_size_bytes),
            })
        };
        let formats = recording.events.iter().map(format).collect();
        Tracepoints { data, formats, problems }
    }

    /// With these formats, by event.
    pub fn with_formats(formats: Vec<Option<TraceFormat>>) -> Tracepoints {
        Tracepoints { formats, ..Tracepoints::default() }
    }

    /// How the records of an event are printed.
    pub fn format(&self, event: usize) -> Option<&TraceFormat> {
        self.formats.get(event)?.as_ref()
    }

    /// Appends the text of a record; false where the event's format is not known.
    pub(crate) fn append(
        &self,
        event: usize,
        raw: &[u8],
        function_at: &dyn Fn(u64) -> Option<(std::sync::Arc<str>, u64)>,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(format) = self.format(event) else { return false };
        format.append(raw, &TraceContext { strings: &self.data, function_at }, out);
        true
    }
}
