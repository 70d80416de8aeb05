//! One thread: a switch-out ends its run and begins its wait, a switch-in the other way round.
//!
//! Two equal statements of one source in a row show that one between them is missing. Statements of
//! different sources on one switch are joined; the first of them gives the time.

use super::cpu_parts::CpuParts;
use super::interval::{
    FoundBlocked, Inconsistencies, Life, Run, Sink, Switch, Task, TimedStack, Trust, WaitEnd, Woken,
};
use super::losses::Losses;
use super::object_key::ObjectKey;
use super::phase::{Phase, RunState, WaitState};
use super::senders::Senders;
use super::switch_event::{
    Source, SourceSet, StackRef, SwitchEvent, TaskState, TimedSwitchEvent, WaitKind, Wake,
};
use whit_perfdata::blocked::Edge;
use whit_types::{CpuId, TimestampNs};

/// Samples of one run that are held until it ends; then the run so far is given out.
pub const MAX_RUN_SAMPLES: usize = 1024;

/// The state of a thread so far.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) task: Task,
    phase: Phase,
    /// Absent where it was there before its first record.
    born: Option<TimestampNs>,
    /// Start of its run if its first statement says that it runs: the beginning of the recording,
    /// since a later switch-in would have been recorded.
    since: Option<TimestampNs>,
    /// It has a statement of its own: it is a recorded thread.
    has_spoken: bool,
    /// The time and CPU of its switch-in, by the statement of the thread before. Threads that are
    /// not recorded have such statements, too.
    heard_of: Option<(TimestampNs, Option<CpuId>)>,
    exited: Option<TimestampNs>,
    /// Kept from run to run.
    spare: Vec<TimedStack>,
}

impl Thread {
    pub(super) fn new(task: Task, born: Option<TimestampNs>, since: Option<TimestampNs>) -> Thread {
        Thread {
            task,
            phase: Phase::Unknown,
            born,
            since,
            has_spoken: false,
            heard_of: None,
            exited: None,
            spare: Vec::new(),
        }
    }

    /// Nothing was said of it but that it was made.
    pub(super) fn is_untold(&self) -> bool {
        matches!(self.phase, Phase::Unknown) && !self.has_spoken && self.heard_of.is_none()
    }

    /// It was made, and waits for its first run.
    pub(super) fn begin(&mut self, timed_event: &TimedSwitchEvent, wake: Wake) {
        let switch = Switch {
            task: self.task,
            cpu: None,
            out: timed_event.time,
            kind: WaitKind::New,
            state: None,
            stack: StackRef::NONE,
            object: ObjectKey::None,
            woken: Some(Woken::of(timed_event, wake)),
            end: WaitEnd::Missing,
            found_blocked: None,
            is_cut: false,
        };
        // No source reports a switch-out for it.
        let mut sources = SourceSet::of(Source::Record);
        sources.add(Source::Tracepoint);
        self.phase = Phase::Waiting(WaitState { switch, sources });
    }

    /// It was on a CPU, and left it.
    pub(super) fn has_left(&self) -> bool {
        matches!(self.phase, Phase::Waiting(_)) && !self.is_new()
    }

    /// It has ended, and another one was there since.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Unknown) && self.exited.is_some()
    }

    /// It ended unseen. If it was running, its switch-out is missing.
    pub(super) fn exit_unseen(&mut self, time: TimestampNs) {
        if !matches!(self.phase, Phase::Running(_)) {
            self.exited = Some(time);
        }
    }

    /// It has not run yet, as far as is known.
    fn is_new(&self) -> bool {
        matches!(&self.phase, Phase::Waiting(wait) if wait.switch.kind == WaitKind::New)
    }

    /// It was woken. The first wake-up of a wait counts.
    pub(super) fn wake(
        &mut self,
        timed_event: &TimedSwitchEvent,
        wake: Wake,
        senders: &mut Senders<'_>,
    ) {
        let Phase::Waiting(WaitState { switch, .. }) = &mut self.phase else { return };
        if switch.kind == WaitKind::Sync && switch.woken.is_none() {
            switch.woken = Some(Woken::of(timed_event, wake));
            senders.judge(switch);
        }
    }

    /// Its wait for several files ends by this one.
    pub(super) fn ready(&mut self, object: ObjectKey, senders: &mut Senders<'_>) {
        if let Phase::Waiting(WaitState { switch, .. }) = &mut self.phase
            && switch.kind == WaitKind::Sync
        {
            switch.object = object;
            senders.judge(switch);
        }
    }
}

/// One statement and its thread.
pub(super) struct Step<'a, S> {
    pub(super) losses: &'a Losses,
    pub(super) inconsistencies: &'a mut Inconsistencies,
    pub(super) thread: &'a mut Thread,
    pub(super) sink: &'a mut S,
}

impl<S: Sink> Step<'_, S> {
    pub(super) fn take(&mut self, timed_event: &TimedSwitchEvent) {
        let TimedSwitchEvent { time, cpu, event, .. } = *timed_event;
        if matches!(event, SwitchEvent::In { .. }) {
            // It comes now: it has not run since the beginning.
            self.thread.since = None;
        }
        if !self.thread.has_spoken {
            let has_not_run = matches!(self.thread.phase, Phase::Unknown) || self.thread.is_new();
            if has_not_run && event == (SwitchEvent::In { source: Source::Tracepoint }) {
                self.thread.heard_of = Some((time, cpu));
                return;
            }
            self.thread.has_spoken = true;
            if let Some((from, cpu)) = self.thread.heard_of.take() {
                self.switch_in(Source::Tracepoint, cpu, from);
            }
        }
        match event {
            SwitchEvent::Out { source, kind, state, stack } => {
                let task = self.thread.task;
                let end = WaitEnd::Missing;
                let woken = None;
                let switch = Switch {
                    task,
                    cpu,
                    out: time,
                    kind,
                    state,
                    stack,
                    object: ObjectKey::None,
                    woken,
                    end,
                    found_blocked: None,
                    is_cut: false,
                };
                self.switch_out(source, switch);
            }
            SwitchEvent::In { source } => self.switch_in(source, cpu, time),
            SwitchEvent::SwitchStack { stack, state, object } => {
                self.switch_stack(stack, state, object, cpu, time);
            }
            SwitchEvent::Sample(stack) => self.sample(stack, cpu, time),
            SwitchEvent::Account(account) => {
                if let Some(run) = self.is_running(cpu, time) {
                    run.parts.add(&CpuParts::of(&account));
                }
            }
            SwitchEvent::Running | SwitchEvent::Fork { .. } => {
                self.is_running(cpu, time);
            }
            SwitchEvent::Wake(_) | SwitchEvent::Ready(_) | SwitchEvent::Blocked { .. } => {}
            SwitchEvent::Exit => {
                self.is_running(cpu, time);
                self.thread.exited = Some(time);
            }
        }
    }

    /// It was found on no CPU. `begin`: since when switches have been recorded.
    pub(super) fn blocked(&mut self, timed_event: &TimedSwitchEvent, begin: TimestampNs) {
        let SwitchEvent::Blocked { edge, switches, state, stack, futex, owner } = timed_event.event
        else {
            return;
        };
        let mut out = begin;
        match &mut self.thread.phase {
            Phase::Waiting(wait) => {
                let switch = &mut wait.switch;
                match &mut switch.found_blocked {
                    Some(before) if before.switches == switches => {
                        before.lasts_throughout |= edge == Edge::End;
                        // The same wait: one of the two looks may have been in vain.
                        if switch.object.futex() == 0 {
                            (switch.object, before.owner) = (ObjectKey::of_futex(futex), owner);
                        }
                        return;
                    }
                    // It has run, and nothing tells when.
                    Some(_) => out = timed_event.time,
                    None => {
                        if switch.stack == StackRef::NONE {
                            switch.stack = stack;
                        }
                        switch.state = switch.state.or(Some(state));
                        return;
                    }
                }
            }
            Phase::Unknown if !self.thread.has_spoken && self.thread.exited.is_none() => {}
            Phase::Unknown | Phase::Running(_) => return,
        }
        if let Phase::Waiting(wait) = std::mem::replace(&mut self.thread.phase, Phase::Unknown) {
            self.miss_end(wait);
        }
        let switch = Switch {
            task: self.thread.task,
            cpu: timed_event.cpu,
            out,
            kind: state.kind(),
            state: Some(state),
            stack,
            object: ObjectKey::of_futex(futex),
            woken: None,
            end: WaitEnd::Missing,
            found_blocked: Some(FoundBlocked { switches, lasts_throughout: false, owner }),
            is_cut: false,
        };
        // No source reports a switch-out for it.
        let mut sources = SourceSet::of(Source::Record);
        sources.add(Source::Tracepoint);
        self.thread.since = None;
        self.thread.heard_of = None;
        self.thread.has_spoken = true;
        self.thread.phase = Phase::Waiting(WaitState { switch, sources });
    }

    /// The run that goes on at this time; `None` where the thread is known to wait.
    fn is_running(&mut self, cpu: Option<CpuId>, time: TimestampNs) -> Option<&mut RunState> {
        self.miss_first_run();
        self.miss_move(cpu);
        if matches!(self.thread.phase, Phase::Unknown) {
            let from = self.thread.since.unwrap_or(time);
            self.begin_run(cpu, from, SourceSet::default());
        }
        match &mut self.thread.phase {
            Phase::Running(run) => {
                run.last = run.last.max(time);
                Some(run)
            }
            _ => None,
        }
    }

    /// A new thread runs, and how it came to that was not told.
    fn miss_first_run(&mut self) {
        if self.thread.is_new()
            && let Phase::Waiting(wait) = std::mem::replace(&mut self.thread.phase, Phase::Unknown)
        {
            self.miss_end(wait);
        }
    }

    /// It is on another CPU than it was, and has not left that one.
    fn miss_move(&mut self, cpu: Option<CpuId>) {
        if let Phase::Running(run) = &self.thread.phase
            && let (Some(before), Some(now)) = (run.cpu, cpu)
            && before != now
        {
            self.miss_out(before);
        }
    }

    /// Another thread runs where this one did, or this one elsewhere: its switch-out is missing. The run
    /// ends where it was last seen.
    pub(super) fn miss_out(&mut self, cpu: CpuId) {
        self.thread.heard_of.take_if(|(_, heard_on)| *heard_on == Some(cpu));
        match std::mem::replace(&mut self.thread.phase, Phase::Unknown) {
            Phase::Running(run) if run.cpu == Some(cpu) => {
                self.thread.since = None;
                let last = run.last;
                match self.thread.exited {
                    Some(exited) => self.end_run(run, exited.max(last), Trust::Whole),
                    None => {
                        self.inconsistencies.missing_outs += 1;
                        self.end_run(run, last, Trust::Lossy);
                    }
                }
            }
            phase => self.thread.phase = phase,
        }
    }

    /// A wait has ended, and when was not told.
    fn miss_end(&mut self, mut wait: WaitState) {
        self.inconsistencies.missing_ins += 1;
        wait.switch.task = self.thread.task;
        self.sink.switch(&wait.switch);
    }

    /// Without a witness its beginning was not seen.
    fn begin_run(&mut self, cpu: Option<CpuId>, from: TimestampNs, sources: SourceSet) {
        self.thread.phase = Phase::Running(RunState {
            from,
            last: from,
            cpu,
            sources,
            samples: std::mem::take(&mut self.thread.spare),
            switch_stack: StackRef::NONE,
            switch_object: ObjectKey::None,
            switch_state: None,
            is_open: sources == SourceSet::default(),
            came: from,
            parts: CpuParts::default(),
        });
    }

    fn switch_out(&mut self, source: Source, mut switch: Switch) {
        self.miss_move(switch.cpu);
        if self.thread.since.is_some() {
            self.is_running(switch.cpu, switch.out);
        }
        match std::mem::replace(&mut self.thread.phase, Phase::Unknown) {
            Phase::Running(run) => {
                if switch.stack == StackRef::NONE {
                    switch.stack = run.switch_stack;
                }
                switch.state = switch.state.or(run.switch_state);
                switch.object = run.switch_object;
                self.end_run(run, switch.out, Trust::Whole);
            }
            Phase::Waiting(mut wait) if !wait.sources.has(source) => {
                wait.sources.add(source);
                wait.join(&switch);
                self.thread.phase = Phase::Waiting(wait);
                return;
            }
            Phase::Waiting(wait) => self.miss_end(wait),
            Phase::Unknown => {}
        }
        let sources = SourceSet::of(source);
        self.thread.phase = Phase::Waiting(WaitState { switch, sources });
    }

    fn switch_in(&mut self, source: Source, cpu: Option<CpuId>, time: TimestampNs) {
        self.miss_move(cpu);
        match std::mem::replace(&mut self.thread.phase, Phase::Unknown) {
            Phase::Running(mut run) if !run.is_open && !run.sources.has(source) => {
                run.sources.add(source);
                self.thread.phase = Phase::Running(run);
                return;
            }
            Phase::Running(run) => {
                self.inconsistencies.missing_outs += 1;
                let last = run.last;
                self.end_run(run, last, Trust::Lossy);
            }
            Phase::Waiting(mut wait) => {
                let lossy = self.losses.touch(self.thread.task.tid, wait.switch.out, time);
                let trust = if lossy { Trust::Lossy } else { Trust::Whole };
                wait.switch.end = WaitEnd::In { time, cpu, trust };
                wait.switch.task = self.thread.task;
                self.sink.switch(&wait.switch);
            }
            Phase::Unknown => {}
        }
        self.begin_run(cpu, time, SourceSet::of(source));
    }

    fn end_run(&mut self, mut run: RunState, to: TimestampNs, trust: Trust) {
        let is_open = run.is_open;
        let parts = run.parts.within(to.since(run.came));
        self.give_out(&run, to, trust, is_open, parts);
        run.samples.clear();
        self.thread.spare = run.samples;
    }

    fn give_out(
        &mut self,
        run: &RunState,
        to: TimestampNs,
        trust: Trust,
        is_open: bool,
        parts: CpuParts,
    ) {
        let lossy = self.losses.touch_cpu(run.cpu, self.thread.task.tid, run.from, to);
        self.sink.run(&Run {
            task: self.thread.task,
            cpu: run.cpu,
            from: run.from,
            to,
            samples: &run.samples,
            trust: if lossy { Trust::Lossy } else { trust },
            is_open,
            parts,
        });
    }

    fn switch_stack(
        &mut self,
        stack: StackRef,
        state: Option<TaskState>,
        object: ObjectKey,
        cpu: Option<CpuId>,
        time: TimestampNs,
    ) {
        match &mut self.thread.phase {
            // The tracepoint comes first.
            Phase::Waiting(wait) => {
                let switch = &mut wait.switch;
                if switch.stack == StackRef::NONE {
                    switch.stack = stack;
                }
                switch.state = switch.state.or(state);
                switch.object = object;
            }
            _ => {
                if let Some(run) = self.is_running(cpu, time) {
                    run.switch_stack = stack;
                    run.switch_state = state;
                    run.switch_object = object;
                }
            }
        }
    }

    fn sample(&mut self, stack: StackRef, cpu: Option<CpuId>, time: TimestampNs) {
        let Some(run) = self.is_running(cpu, time) else {
            self.inconsistencies.stray_samples += 1;
            return;
        };
        run.samples.push(TimedStack { time, stack });
        if run.samples.len() >= MAX_RUN_SAMPLES {
            self.give_out_part(time);
        }
    }

    /// The run up to its last sample; the rest begins there.
    fn give_out_part(&mut self, time: TimestampNs) {
        if let Phase::Running(mut run) = std::mem::replace(&mut self.thread.phase, Phase::Unknown) {
            let is_open = run.is_open;
            self.give_out(&run, time, Trust::Whole, is_open, CpuParts::default());
            run.from = run.from.max(time);
            run.samples.clear();
            self.thread.phase = Phase::Running(run);
        }
    }

    /// When the thread existed. It runs on behind the record of its exit, until its last switch.
    fn life(&self, until: TimestampNs, is_replaced: bool) -> Life {
        let last = match &self.thread.phase {
            Phase::Running(run) => run.last,
            Phase::Waiting(wait) => wait.switch.out,
            Phase::Unknown => TimestampNs(0),
        };
        let died = match self.thread.exited {
            Some(exited) => Some(exited.max(last)),
            None => is_replaced.then_some(until),
        };
        Life { born: self.thread.born, died }
    }

    /// Nothing more will be said of the thread; where it is replaced, since another one has its number.
    pub(super) fn finish(&mut self, until: TimestampNs, is_replaced: bool) {
        if self.thread.has_spoken {
            self.sink.life(self.thread.task, self.life(until, is_replaced));
        }
        match std::mem::replace(&mut self.thread.phase, Phase::Unknown) {
            Phase::Running(mut run) => match self.thread.exited {
                Some(exited) => {
                    let to = exited.max(run.last);
                    self.end_run(run, to, Trust::Whole);
                }
                None => {
                    run.is_open = true;
                    self.end_run(run, until, Trust::Whole);
                }
            },
            // It may be a thread that is not recorded.
            Phase::Waiting(wait) if wait.switch.kind == WaitKind::New => {}
            // It left its CPU for ever.
            Phase::Waiting(_) if self.thread.exited.is_some() => self.inconsistencies.exits += 1,
            Phase::Waiting(mut wait) => {
                let lossy = self.losses.touch(self.thread.task.tid, wait.switch.out, until);
                let trust = match lossy && !wait.switch.lasts_throughout() {
                    true => Trust::Lossy,
                    false => Trust::Whole,
                };
                wait.switch.end = WaitEnd::Open { until, trust };
                wait.switch.task = self.thread.task;
                self.sink.switch(&wait.switch);
            }
            Phase::Unknown => {}
        }
        self.sink.end(self.thread.task);
    }
}
