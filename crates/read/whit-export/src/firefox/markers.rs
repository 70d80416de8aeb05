//! Markers: waits of threads, samples of further events, losses, and statements about the recording.

use super::format::{Category, Cause, MarkerData, MarkerTable, MarkerType, Uncertain, WakerName};
use super::ms;
use super::thread::Tables;
use crate::request::{Request, Requests};
use whit_profile::model::NodeId;
use whit_profile::switches::{Activity, TimelineSpan, Trust};
use whit_types::TimestampNs;

/// How the profiler shows each kind of marker.
pub(super) const SCHEMAS: &str = r#"[
  {"name":"wait","tooltipLabel":"{marker.name} {marker.data.class}","tableLabel":"{marker.name} {marker.data.class}",
   "chartLabel":"{marker.name} {marker.data.class}",
   "display":["marker-chart","marker-table"],
   "description":"Time of a thread off the CPU, from a context switch to the next",
   "fields":[{"key":"class","label":"Waits for","format":"string","searchable":true},
             {"key":"switches","label":"Switches","format":"integer"},
             {"key":"waker","label":"Woken by","format":"string","searchable":true},
             {"key":"certain","label":"Certain","format":"string"}]},
  {"name":"sample","tooltipLabel":"{marker.name}","tableLabel":"{marker.name}","chartLabel":"{marker.name}",
   "display":["marker-chart","marker-table"],
   "description":"A sample of an event beside the one in the call tree",
   "fields":[{"key":"samples","label":"Samples","format":"integer"},
             {"key":"period","label":"Period","format":"integer"}]},
  {"name":"request","tooltipLabel":"{marker.name} {marker.data.key}",
   "tableLabel":"{marker.name} {marker.data.key}","chartLabel":"{marker.name} {marker.data.key}",
   "display":["marker-chart","marker-table","timeline-overview"],
   "description":"A request, from its beginning to its end",
   "fields":[{"key":"key","label":"Key","format":"string","searchable":true},
             {"key":"goroutine","label":"Goroutine","format":"integer"}]},
  {"name":"loss","tooltipLabel":"Lost records","tableLabel":"Records were lost","chartLabel":"Lost records",
   "display":["marker-chart","marker-table","timeline-overview"],
   "description":"Records were lost on some CPU","fields":[]},
  {"name":"note","tooltipLabel":"{marker.data.text}","tableLabel":"{marker.data.text}","chartLabel":"{marker.name}",
   "display":["marker-table"],
   "description":"A statement about the recording",
   "fields":[{"key":"text","label":"Text","format":"string","searchable":true}]}
]"#;

impl<'a> MarkerTable<'a> {
    fn push(
        &mut self,
        name: u32,
        category: Category,
        times: (f64, Option<f64>),
        data: MarkerData<'a>,
    ) {
        self.length += 1;
        self.name.push(name);
        self.category.push(category.number());
        self.start_time.push(times.0);
        self.end_time.push(times.1);
        self.phase.push(u8::from(times.1.is_some()));
        self.data.push(data);
    }
}

impl<'a> Tables<'_, 'a> {
    fn cause(&mut self, node: NodeId) -> Option<Cause> {
        self.stack(node).map(|stack| Cause { stack })
    }

    /// A stretch of time off the CPU, or several short ones with runs between.
    pub(super) fn wait(&mut self, span: &TimelineSpan) {
        let name = match span.activity {
            Activity::Running => return,
            Activity::Preempted => "Preempted",
            Activity::Waiting => "Wait",
            Activity::Mixed => "Short runs and waits",
        };
        let class = self.content.wait_class(span).map(|class| class.name());
        let waker = span.woken.map(|(_, waker)| {
            let thread = &self.content.profile.threads[waker.thread.index()];
            let by = self.content.thread_name(thread);
            let name = if waker.from_interrupt { "an interrupt" } else { by };
            WakerName { name, tid: thread.tid.0 }
        });
        let certain = (span.trust == Trust::Lossy).then_some(Uncertain::Lossy);
        let (cause, switches, r#type) = (self.cause(span.node), span.count, MarkerType::Wait);
        let data = MarkerData::Wait { cause, certain, class, switches, r#type, waker };
        let start = self.since_start(span.start);
        let (name, end) = (self.string(name), start + ms(span.duration_ns));
        self.thread.markers.push(name, Category::Wait, (start, Some(end)), data);
    }

    /// A request of the thread.
    pub(super) fn request(&mut self, requests: &'a Requests, request: &'a Request) {
        let name = self.string(requests.name(request));
        let Request { goroutine, ref key, .. } = *request;
        let data =
            MarkerData::Request { goroutine, key: key.as_deref(), r#type: MarkerType::Request };
        let times = (self.since_start(request.from), self.since_start(request.to));
        self.thread.markers.push(name, Category::Other, (times.0, Some(times.1)), data);
    }

    pub(super) fn sample_marker(&mut self, moment: &crate::content::Moment<'_>) {
        let name = self.string(self.content.event_name(moment.row.event));
        let (cause, r#type) = (self.cause(moment.row.node), MarkerType::Sample);
        let (period, samples) = (moment.period, moment.samples);
        let data = MarkerData::Sample { cause, period, samples, r#type };
        let start = self.since_start(moment.time);
        self.thread.markers.push(name, Category::Other, (start, None), data);
    }

    /// Losses and statements, which belong to the whole recording.
    pub(super) fn notes(&mut self) {
        let (first, last) = self.content.span();
        let content = self.content;
        let windows = content.profile.singles.iter().flat_map(|singles| &singles.loss_windows);
        for window in windows {
            let inside = |time: TimestampNs| time.clamp(first, last);
            let times =
                (self.since_start(inside(window.from)), self.since_start(inside(window.to)));
            let name = self.string("Lost records");
            let data = MarkerData::Loss { r#type: MarkerType::Loss };
            self.thread.markers.push(name, Category::Other, (times.0, Some(times.1)), data);
        }
        for note in content.notes() {
            let name = self.string(note.key);
            let data = MarkerData::Note { text: note.text, r#type: MarkerType::Note };
            self.thread.markers.push(name, Category::Other, (0.0, None), data);
        }
    }
}
