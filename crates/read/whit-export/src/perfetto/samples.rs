//! Samples: one packet for each, on a sequence for each event.

use super::fields::Fields;
use super::stacks::Stacks;
use super::{PACKET, SampleForm, Writer};
use crate::content::{EventUnit, Moment};
use crate::proto::perfetto::{
    CounterDescriptor, InternedData, NEEDS_STATE, PerfSampleDefaults, STATE_CLEARED, Timebase,
    TracePacket, TracePacketDefaults,
};
use rustc_hash::FxHashMap;
use std::io;
use whit_profile::model::EventId;

/// `UNIT_NANOSECONDS`, `UNIT_COUNT`.
const UNIT_NANOSECONDS: i32 = 1;
const UNIT_COUNT: i32 = 9;

/// The fields of a packet beside those of its sample.
struct Place {
    sequence: u32,
    callstack_iid: Option<u64>,
    interned: Option<InternedData>,
    /// The event's count so far on the CPU of the sample.
    count: u64,
}

impl<'a> Writer<'_, 'a, '_> {
    /// The samples of one event, on a sequence of their own: `PerfSample` has one event for each.
    pub(super) fn samples<'m>(
        &mut self,
        event: EventId,
        sequence: u32,
        form: SampleForm,
        moments: impl Iterator<Item = &'m Moment<'a>>,
    ) -> io::Result<()>
    where
        'a: 'm,
    {
        self.describe_event(event, sequence, form)?;
        let mut stacks = Stacks::new(self.content);
        let mut counts: FxHashMap<Option<u32>, u64> = FxHashMap::default();
        for moment in moments {
            let (callstack_iid, interned) = stacks.intern(moment.row.node);
            let count = counts.entry(moment.cpu.map(|cpu| cpu.0)).or_default();
            *count = count.saturating_add(moment.period);
            let place = Place { sequence, callstack_iid, interned, count: *count };
            self.sample(moment, &place, form)?;
        }
        Ok(())
    }

    fn describe_event(
        &mut self,
        event: EventId,
        sequence: u32,
        form: SampleForm,
    ) -> io::Result<()> {
        let content = self.content;
        let unit = match content.unit(event) {
            EventUnit::Nanoseconds => UNIT_NANOSECONDS,
            EventUnit::Count => UNIT_COUNT,
        };
        let name = content.event_name(event);
        let descriptor =
            CounterDescriptor { iid: Some(1), name: Some(name.to_owned()), unit: Some(unit) };
        let timebase =
            Timebase { period: Some(content.period(event)), name: Some(name.to_owned()) };
        let defaults = PerfSampleDefaults { timebase: Some(timebase) };
        self.put(TracePacket {
            timestamp: Some(content.span().0.0),
            trusted_packet_sequence_id: Some(sequence),
            sequence_flags: Some(STATE_CLEARED),
            interned_data: Some(InternedData {
                counter_descriptors: vec![descriptor],
                ..InternedData::default()
            }),
            trace_packet_defaults: (form == SampleForm::Perf)
                .then_some(TracePacketDefaults { perf_sample_defaults: Some(defaults) }),
            ..TracePacket::default()
        })
    }

    fn sample(&mut self, moment: &Moment<'_>, place: &Place, form: SampleForm) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        Fields::at_end_of(&mut buffer).message(PACKET, |packet| {
            packet.number(8, moment.time.0);
            packet.number(10, u64::from(place.sequence));
            if let Some(interned) = &place.interned {
                packet.value(12, interned);
            }
            packet.number(13, u64::from(NEEDS_STATE));
            match form {
                SampleForm::Stack => {
                    packet.message(135, |fields| self.stack_sample(moment, place, fields));
                }
                SampleForm::Perf => {
                    packet.message(66, |fields| self.perf_sample(moment, place, fields));
                }
            }
        });
        self.out.write_all(&buffer)?;
        self.buffer = buffer;
        Ok(())
    }

    fn is_kernel(&self, moment: &Moment<'_>) -> bool {
        let frame = self.content.chain(moment.row.node).next();
        frame.is_some_and(|frame| self.content.frame(frame).kernel)
    }

    fn ids(&self, moment: &Moment<'_>) -> (u64, u64) {
        let thread = &self.content.profile.threads[moment.row.thread.index()];
        let id = |number: i32| u64::from(number.max(0) as u32);
        (id(thread.pid.0), id(thread.tid.0))
    }

    /// `StackSample`.
    fn stack_sample(&self, moment: &Moment<'_>, place: &Place, sample: &mut Fields<'_>) {
        let (pid, tid) = self.ids(moment);
        sample.message(1, |task| {
            task.number(2, pid);
            task.number(3, tid);
        });
        sample.message(3, |context| {
            if let Some(cpu) = moment.cpu {
                context.number(2, u64::from(cpu.0));
            }
            // 1: user, 2: kernel.
            context.number(3, if self.is_kernel(moment) { 2 } else { 1 });
        });
        if let Some(iid) = place.callstack_iid {
            sample.number(6, iid);
        }
        // The descriptor of the event.
        sample.number(10, 1);
        sample.number(11, moment.period);
    }

    /// `PerfSample`, as Perfetto had it before version 58.
    fn perf_sample(&self, moment: &Moment<'_>, place: &Place, sample: &mut Fields<'_>) {
        let (pid, tid) = self.ids(moment);
        sample.number(1, moment.cpu.map_or(0, |cpu| u64::from(cpu.0)));
        sample.number(2, pid);
        sample.number(3, tid);
        if let Some(iid) = place.callstack_iid {
            sample.number(4, iid);
        }
        // 1: kernel, 2: user.
        sample.number(5, if self.is_kernel(moment) { 1 } else { 2 });
        sample.number(6, place.count);
    }
}
