//! CPU time and waits as one more event of the page: a wait is a frame of its own on top of the call stack at which the
//! thread left its CPU.
//!
//! So graph, tree, tables, selectors and ranges of time show waits as they show samples. Sums over all of the time are
//! exact; those of a range are made of the spans of the time line. Short spans may be joined there, and have no stack then.
//! Their waits are shared out among the stacks on which the thread has more waits than its single spans show
//! ([`unplaced`](crate::unplaced)).

use crate::unplaced::{Unplaced, next_bound};
use rustc_hash::FxHashMap;
use whit_profile::model::*;
use whit_profile::switches::{
    Activity, NodeClasses, SwitchRow, Switches, TimelineSpan, Trust, WaitClass,
};
use whit_profile::wall::WallSums;
use whit_types::{Svma, TimestampNs};

/// Name of the event.
const EVENT: &str = "wall-clock: CPU time and waits";
/// An id that no facets have.
const NO_FACETS: FacetsId = FacetsId(u32::MAX);
/// Pieces that the recorded time is parted into at most, for each thread's spans.
const MAX_PIECES: u64 = 1024;
/// Pieces of all threads together.
const MAX_ALL_PIECES: u64 = 1_000_000;

/// The reason for a wait, as far as the page has colours for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Leaf {
    Class(WaitClass),
    Preempted,
    RunQueue,
    Lossy,
}

impl Leaf {
    fn name(self) -> String {
        match self {
            Leaf::Class(class) => format!("[{} wait]", class.name()),
            Leaf::Preempted => "[preempted]".into(),
            Leaf::RunQueue => "[run queue]".into(),
            Leaf::Lossy => "[time that a loss touches]".into(),
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Leaf::Class(WaitClass::Lock) => "lock",
            Leaf::Class(WaitClass::Disk | WaitClass::Network | WaitClass::Pipe) => "io",
            Leaf::Class(WaitClass::PageFault) => "page-fault",
            Leaf::Class(WaitClass::Sleep) => "sleep",
            Leaf::Class(WaitClass::Poll | WaitClass::IdleLoop | WaitClass::Peer) => "poll",
            Leaf::Class(WaitClass::Queue | WaitClass::Child | WaitClass::Join) => "queue",
            Leaf::Class(_) | Leaf::Lossy => "wait",
            Leaf::Preempted | Leaf::RunQueue => "run-queue",
        }
    }
}

/// Path of the made-up binary for waits of a kind.
fn path(kind: &str) -> String {
    format!("[wait: {kind}]")
}

/// The kind of a made-up binary, for the page's colours.
pub(crate) fn kind_of(path: &str) -> Option<&'static str> {
    const KINDS: [&str; 8] =
        ["lock", "io", "page-fault", "sleep", "poll", "queue", "wait", "run-queue"];
    let kind = path.strip_prefix("[wait: ")?.strip_suffix(']')?;
    KINDS.into_iter().find(|known| *known == kind)
}

/// A profile with one more event.
pub(crate) struct WithWaits {
    pub(crate) profile: Profile,
    classes: NodeClasses,
    nodes: FxHashMap<(NodeId, Leaf), NodeId>,
}

impl WithWaits {
    /// The frame that stands for a single wait; `None` for other spans.
    pub(crate) fn node_of(&self, span: &TimelineSpan) -> Option<NodeId> {
        let leaf = match span.activity {
            Activity::Waiting | Activity::Preempted if span.trust != Trust::Whole => Leaf::Lossy,
            Activity::Waiting => Leaf::Class(self.classes.of_span(span)),
            Activity::Preempted => Leaf::Preempted,
            _ => return None,
        };
        self.nodes.get(&(span.node, leaf)).copied()
    }
}

/// The profile with one more event; `None` where nothing waited.
pub(crate) fn with_waits(profile: &Profile, switches: &Switches) -> Option<WithWaits> {
    if switches.rows.is_empty() {
        return None;
    }
    let classes = NodeClasses::of(profile, switches.rows.iter().map(|row| row.node));
    let mut wall = Wall::new(profile.clone(), classes);
    switches.rows.iter().for_each(|row| wall.add_row(row));
    wall.add_times(switches);
    let Wall { profile, classes, nodes, .. } = wall;
    Some(WithWaits { profile, classes, nodes })
}

struct Wall {
    profile: Profile,
    classes: NodeClasses,
    event: EventId,
    dsos: FxHashMap<&'static str, DsoId>,
    frames: FxHashMap<Leaf, FrameId>,
    nodes: FxHashMap<(NodeId, Leaf), NodeId>,
    /// Rows of CPU time.
    running: FxHashMap<(ThreadId, CommId, NodeId), u32>,
    /// Rows of waits. A span does not say its command: the first one's row has it.
    waiting: FxHashMap<(ThreadId, NodeId, Leaf), u32>,
    singles: Vec<SingleSample>,
    /// The cgroup of each thread, by its first samples; empty where facets tell times.
    facets: FxHashMap<ThreadId, FacetsId>,
}

impl Wall {
    fn new(mut profile: Profile, classes: NodeClasses) -> Wall {
        let event = EventId(profile.events.len() as u32);
        let has_times = profile.singles.as_ref().is_none_or(|all| all.slice_ns.is_some());
        let mut facets = FxHashMap::default();
        for row in profile.rows.iter().filter(|_| !has_times) {
            facets.entry(row.thread).or_insert(row.facets);
        }
        profile.events.push(EventInfo { name: EVENT.into(), ..EventInfo::default() });
        Wall {
            profile,
            classes,
            event,
            dsos: FxHashMap::default(),
            frames: FxHashMap::default(),
            nodes: FxHashMap::default(),
            running: FxHashMap::default(),
            waiting: FxHashMap::default(),
            singles: Vec::new(),
            facets,
        }
    }

    fn leaf_frame(&mut self, leaf: Leaf) -> FrameId {
        if let Some(frame) = self.frames.get(&leaf) {
            return *frame;
        }
        let Wall { profile, dsos, .. } = self;
        let dso = *dsos.entry(leaf.kind()).or_insert_with(|| {
            let name = path(leaf.kind());
            profile.dsos.push(DsoInfo {
                path: name.clone().into(),
                short_name: name.into(),
                build_id: None,
                kind: DsoKind::Unknown,
            });
            DsoId(profile.dsos.len() as u32 - 1)
        });
        profile.functions.push(FunctionInfo { name: leaf.name().into(), dso, known: true });
        let function = FunctionId(profile.functions.len() as u32 - 1);
        let address = Svma(0);
        profile.frames.push(Frame {
            function,
            address,
            source: None,
            inlined: false,
            kernel: false,
        });
        let frame = FrameId(profile.frames.len() as u32 - 1);
        self.frames.insert(leaf, frame);
        frame
    }

    fn leaf_node(&mut self, parent: NodeId, leaf: Leaf) -> NodeId {
        let frame = self.leaf_frame(leaf);
        let nodes = &mut self.profile.nodes;
        *self.nodes.entry((parent, leaf)).or_insert_with(|| {
            nodes.push(CallNode { parent, frame });
            NodeId(nodes.len() as u32 - 1)
        })
    }

    fn push(&mut self, row: &SwitchRow, node: NodeId, samples: u64, period: u64) -> u32 {
        let SwitchRow { thread, comm, .. } = *row;
        let facets = self.facets.get(&thread).copied().unwrap_or(NO_FACETS);
        let event = self.event;
        self.profile.rows.push(SampleRow { event, thread, comm, facets, node, samples, period });
        let info = &mut self.profile.events[event.index()];
        info.samples = info.samples.saturating_add(samples);
        info.period = info.period.saturating_add(period);
        self.profile.rows.len() as u32 - 1
    }

    fn add_row(&mut self, row: &SwitchRow) {
        let sums = WallSums::of(&row.sums);
        let class = Leaf::Class(self.classes.get(row));
        if sums.cpu_ns > 0 {
            let place = self.push(row, row.node, 0, sums.cpu_ns);
            self.running.insert((row.thread, row.comm, row.node), place);
        }
        let parts = [
            (class, row.sums.sync_count, sums.waiting_ns),
            (Leaf::Preempted, row.sums.preempt_count, sums.preempted_ns),
            (Leaf::RunQueue, 0, sums.run_queue_ns),
            (Leaf::Lossy, 0, sums.lossy_ns),
        ];
        for (leaf, count, ns) in parts.into_iter().filter(|(_, _, ns)| *ns > 0) {
            let node = self.leaf_node(row.node, leaf);
            let place = self.push(row, node, count, ns);
            self.waiting.entry((row.thread, row.node, leaf)).or_insert(place);
        }
    }

    /// Times of CPU time are those of samples; times of waits are those of spans.
    fn add_times(&mut self, switches: &Switches) {
        let Some(singles) = self.profile.singles.take() else { return };
        if let Some(source) = switches.sources.samples {
            self.add_running(&singles, source);
        }
        let span_ns = switches.span.map_or(0, |(first, last)| last.since(first));
        let pieces = MAX_ALL_PIECES / (self.profile.threads.len() as u64).max(1);
        let piece_ns = (span_ns / pieces.clamp(1, MAX_PIECES)).max(1);
        let first = self.singles.len();
        for span in &switches.timeline.spans {
            self.add_span(span, piece_ns);
        }
        self.add_joined(&switches.timeline.spans, first, piece_ns);
        let mut samples = singles.samples;
        samples.append(&mut self.singles);
        samples.sort_unstable();
        self.profile.singles = Some(Singles { samples, ..singles });
    }

    /// The waits of joined spans; those of single ones are `singles` from `first` on.
    fn add_joined(&mut self, spans: &[TimelineSpan], first: usize, piece_ns: u64) {
        let is_joined = |span: &&TimelineSpan| span.activity == Activity::Mixed;
        if !spans.iter().any(|span| is_joined(&span)) {
            return;
        }
        let mut placed: FxHashMap<u32, u64> = FxHashMap::default();
        for single in &self.singles[first..] {
            *placed.entry(single.row).or_default() += single.period;
        }
        let mut unplaced: FxHashMap<(ThreadId, bool), Unplaced> = FxHashMap::default();
        // In the order of the rows: a hash map has another one in each run.
        let mut rows: Vec<_> =
            self.waiting.iter().map(|((thread, _, leaf), row)| (*row, *thread, *leaf)).collect();
        rows.sort_unstable_by_key(|(row, ..)| *row);
        for (row, thread, leaf) in rows {
            let period = self.profile.rows[row as usize].period;
            let rest = period.saturating_sub(placed.get(&row).copied().unwrap_or(0));
            unplaced.entry((thread, leaf == Leaf::Preempted)).or_default().add(row, rest);
        }
        for span in spans.iter().filter(is_joined) {
            let [_, preempted, waiting] = span.parts_ns;
            for (is_preempted, ns) in [(true, preempted), (false, waiting)] {
                let Some(unplaced) = unplaced.get_mut(&(span.thread, is_preempted)) else {
                    continue;
                };
                let pieces = unplaced.share_out(span, ns, piece_ns);
                self.singles.extend(pieces);
            }
        }
    }

    fn add_running(&mut self, singles: &Singles, source: EventId) {
        let row_of = |row: &SampleRow| {
            let key = (row.thread, row.comm, row.node);
            (row.event == source).then(|| self.running.get(&key).copied()).flatten()
        };
        let places: Vec<Option<u32>> = self.profile.rows.iter().map(row_of).collect();
        let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
        let mut found = Vec::new();
        for sample in &singles.samples {
            if let Some(place) = places.get(sample.row as usize).copied().flatten() {
                found.push((SingleSample { row: place, ..*sample }, 1));
            }
        }
        for (row, place) in self.profile.rows.iter().zip(&places) {
            let time = self.profile.facets_of(row).and_then(|facets| facets.time);
            if let (Some(row_of), Some(time), true) = (place, time, singles.slice_ns.is_some()) {
                let sample = SingleSample { time, row: *row_of, cpu: None, period: 0 };
                found.push((sample, row.samples));
            }
        }
        for (sample, count) in &found {
            *counts.entry(sample.row).or_default() += count;
        }
        // The CPU time of a stack is spread over its samples; the first has the rest of the division.
        let mut is_first: FxHashMap<u32, bool> = FxHashMap::default();
        for (sample, weight) in found {
            let ns = self.profile.rows[sample.row as usize].period;
            let count = counts[&sample.row].max(1);
            let rest = if is_first.insert(sample.row, false).is_none() { ns % count } else { 0 };
            let period = (ns / count).saturating_mul(weight).saturating_add(rest);
            self.singles.push(SingleSample { period, ..sample });
        }
    }

    fn add_span(&mut self, span: &TimelineSpan, piece_ns: u64) {
        let end = span.start.0.saturating_add(span.duration_ns);
        let row = |leaf| self.waiting.get(&(span.thread, span.node, leaf)).copied();
        match span.activity {
            Activity::Waiting | Activity::Preempted if span.trust != Trust::Whole => {
                let row = row(Leaf::Lossy);
                self.add_pieces(row, span, (span.start.0, end), piece_ns);
            }
            Activity::Waiting => {
                let woken = span.woken.map_or(end, |(time, _)| time.0.clamp(span.start.0, end));
                let class = row(Leaf::Class(self.classes.of_span(span)));
                let run_queue = row(Leaf::RunQueue);
                self.add_pieces(class, span, (span.start.0, woken), piece_ns);
                self.add_pieces(run_queue, span, (woken, end), piece_ns);
            }
            Activity::Preempted => {
                let row = row(Leaf::Preempted);
                self.add_pieces(row, span, (span.start.0, end), piece_ns);
            }
            _ => {}
        }
    }

    fn add_pieces(
        &mut self,
        row: Option<u32>,
        span: &TimelineSpan,
        ends: (u64, u64),
        piece_ns: u64,
    ) {
        let Some(row) = row else { return };
        let (mut at, end) = ends;
        while at < end {
            let next = next_bound(at, piece_ns, span.thread).min(end);
            self.singles.push(SingleSample {
                time: TimestampNs(at),
                row,
                cpu: span.cpu,
                period: next - at,
            });
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whit_profile::switches::{Sources, SwitchSums, Timeline};
    use whit_types::{Pid, Tid};

    const BEGIN: u64 = 1_000;

    fn span(start: u64, duration_ns: u64, activity: Activity, woken: Option<u64>) -> TimelineSpan {
        let waker = whit_profile::switches::Waker {
            thread: ThreadId(0),
            node: NodeId::NONE,
            from_interrupt: false,
        };
        TimelineSpan {
            thread: ThreadId(0),
            start: TimestampNs(BEGIN + start),
            duration_ns,
            activity,
            cpu: None,
            node: NodeId(0),
            woken: woken.map(|at| (TimestampNs(BEGIN + at), waker)),
            parts_ns: [0; 3],
            count: 1,
            trust: Trust::Whole,
            brings: Default::default(),
        }
    }

    fn profile() -> Profile {
        let function = |name: &str| FunctionInfo { name: name.into(), dso: DsoId(0), known: true };
        let frame = Frame {
            function: FunctionId(0),
            address: Svma(1),
            source: None,
            inlined: false,
            kernel: true,
        };
        let sample = |time| SingleSample { time: TimestampNs(time), row: 0, cpu: None, period: 1 };
        Profile {
            events: vec![EventInfo { name: "cpu-clock".into(), ..EventInfo::default() }],
            comms: vec!["a".into()],
            threads: vec![ThreadInfo { pid: Pid(1), tid: Tid(1), comm: CommId(0) }],
            dsos: vec![DsoInfo {
                path: "[kernel.kallsyms]".into(),
                short_name: "[kernel.kallsyms]".into(),
                build_id: None,
                kind: DsoKind::Kernel,
            }],
            functions: vec![function("futex_wait_queue")],
            frames: vec![frame],
            nodes: vec![CallNode { parent: NodeId::NONE, frame: FrameId(0) }],
            rows: vec![SampleRow {
                event: EventId(0),
                thread: ThreadId(0),
                comm: CommId(0),
                facets: FacetsId(0),
                node: NodeId(0),
                samples: 3,
                period: 3,
            }],
            singles: Some(Singles {
                samples: [1_001, 1_002, 1_900].map(sample).into(),
                ..Singles::default()
            }),
            ..Profile::default()
        }
    }

    fn switches() -> Switches {
        let sums = SwitchSums {
            cpu_ns: 100,
            sync_count: 2,
            sync_wait_ns: 700,
            runnable_ns: 50,
            preempt_count: 1,
            preempt_wait_ns: 200,
            ..SwitchSums::default()
        };
        let row = SwitchRow {
            thread: ThreadId(0),
            comm: CommId(0),
            node: NodeId(0),
            object: None,
            brings: Default::default(),
            block: 0,
            sums,
        };
        let spans = vec![
            span(0, 600, Activity::Waiting, Some(550)),
            span(600, 200, Activity::Preempted, None),
            span(900, 100, Activity::Waiting, None),
        ];
        Switches {
            sources: Sources { samples: Some(EventId(0)), ..Sources::default() },
            rows: vec![row],
            timeline: Timeline { spans, ..Timeline::default() },
            span: Some((TimestampNs(BEGIN), TimestampNs(BEGIN + 1_000))),
            ..Switches::default()
        }
    }

    #[test]
    fn waits_are_frames_on_their_call_stacks_and_their_times_add_up() {
        let wall = with_waits(&profile(), &switches()).expect("there are waits").profile;
        let name = |row: &SampleRow| {
            let function = wall.frames[wall.nodes[row.node.index()].frame.index()].function;
            wall.functions[function.index()].name.exact().to_owned()
        };
        let singles = &wall.singles.as_ref().expect("times").samples;
        let mut found = Vec::new();
        for (index, row) in wall.rows.iter().enumerate().skip(1) {
            assert_eq!(row.event, EventId(1));
            let own = singles.iter().filter(|sample| sample.row as usize == index);
            let in_time: u64 = own.map(|sample| sample.period).sum();
            assert_eq!(in_time, row.period, "{}", name(row));
            found.push((name(row), row.period));
        }
        let expected = [
            ("futex_wait_queue", 100),
            ("[lock wait]", 650),
            ("[preempted]", 200),
            ("[run queue]", 50),
        ];
        let class = found[1].0.clone();
        assert!(class.ends_with(" wait]"), "{class}");
        let expected = expected
            .map(|(name, ns)| (if ns == 650 { class.clone() } else { name.to_owned() }, ns));
        assert_eq!(found, expected);
        assert_eq!(wall.events[1].period, 1_000);
        assert_eq!(wall.rows[0], profile().rows[0], "samples stay as they were");
    }

    /// Two spans are joined: their waits have times all the same, and no more than the rows have.
    #[test]
    fn waits_of_joined_spans_are_those_that_no_single_span_has() {
        let mut joined = switches();
        let spans = &mut joined.timeline.spans;
        let parts_ns = [100, 200, 100];
        spans[1] = TimelineSpan { parts_ns, count: 3, ..span(600, 400, Activity::Mixed, None) };
        spans.truncate(2);
        let in_time = |switches: &Switches| {
            let wall = with_waits(&profile(), switches).expect("there are waits").profile;
            let singles = wall.singles.expect("times").samples;
            let of_row = |row: usize| singles.iter().filter(move |it| it.row as usize == row);
            let sums = (1..wall.rows.len()).map(|row| of_row(row).map(|it| it.period).sum::<u64>());
            let last = singles.iter().map(|it| it.time.0).max().expect("samples");
            (sums.collect::<Vec<_>>(), last)
        };
        let (sums, last) = in_time(&joined);
        assert_eq!(sums, in_time(&switches()).0);
        assert!(last > BEGIN + 990, "they are spread over the span: {last}");
    }

    #[test]
    fn a_single_wait_leads_to_its_frame() {
        let mut switches = switches();
        let lossy = SwitchSums { lossy_wait_ns: 5, lossy_count: 1, ..switches.rows[0].sums };
        switches.rows[0].sums = lossy;
        let wall = with_waits(&profile(), &switches).expect("there are waits");
        let name = |span: &TimelineSpan| {
            let node = wall.node_of(span)?;
            let call = wall.profile.nodes[node.index()];
            assert_eq!(call.parent, span.node);
            let function = wall.profile.frames[call.frame.index()].function;
            Some(wall.profile.functions[function.index()].name.exact().to_owned())
        };
        let spans = &switches.timeline.spans;
        assert!(name(&spans[0]).is_some_and(|name| name.ends_with(" wait]")));
        assert_eq!(name(&spans[1]).as_deref(), Some("[preempted]"));
        let touched = TimelineSpan { trust: Trust::Lossy, ..spans[0] };
        assert_eq!(name(&touched).as_deref(), Some("[time that a loss touches]"));
        let running = span(0, 600, Activity::Running, None);
        assert_eq!(name(&running), None);
    }

    #[test]
    fn a_profile_without_switches_gets_no_event() {
        assert!(with_waits(&profile(), &Switches::default()).is_none());
    }

    #[test]
    fn only_the_pages_own_binaries_have_the_kinds_of_waits() {
        assert_eq!(kind_of("[wait: lock]"), Some("lock"));
        assert_eq!(kind_of("[wait: \u{202e}]"), None);
        assert_eq!(kind_of("/bin/lock"), None);
    }
}
