//! A host that is not Linux: it binds a counter to the vCPU's thread with a preset, samples it and unbinds it, as
//! illumos' libcpc does, and gives no notice of overflows. The guest sees no difference.

mod support;

use std::cell::RefCell;
use std::rc::Rc;

use support::{Line, models};
use whit_vpmu::{
    Arm, CounterSource, EventConfig, OpenError, Reading, Simulated, SourceError, Vpmu, VpmuConfig,
};

const INSTRUCTIONS: u64 = 0x53_00c0;

/// The host's counters of a thread, by number: the event, and the count.
#[derive(Default)]
struct Bound(Vec<Option<(EventConfig, u64)>>);

/// A host that can do four things: bind, unbind, sample, and refuse a fourth counter.
#[derive(Clone, Default)]
struct Host(Rc<RefCell<Bound>>);

impl Host {
    fn bind(&self, config: EventConfig) -> Result<usize, OpenError> {
        let bound = &mut self.0.borrow_mut().0;
        if bound.iter().flatten().count() == 3 {
            return Err(OpenError::Host(28));
        }
        bound.push(Some((config, 0)));
        Ok(bound.len() - 1)
    }

    fn sample(&self, number: usize) -> u64 {
        self.0.borrow().0[number].map_or(0, |(_, count)| count)
    }

    fn unbind(&self, number: usize) {
        self.0.borrow_mut().0[number] = None;
    }

    fn occur(&self, select: u64, count: u64) {
        for (config, total) in self.0.borrow_mut().0.iter_mut().flatten() {
            if config.select == select && config.kernel {
                *total += count;
            }
        }
    }
}

/// A counter that is bound while it runs.
struct Counter {
    config: EventConfig,
    number: Option<usize>,
    seen: u64,
}

impl CounterSource for Host {
    type Event = Counter;

    fn open(&mut self, config: &EventConfig, _: Arm) -> Result<Counter, OpenError> {
        Ok(Counter { config: *config, number: Some(self.bind(*config)?), seen: 0 })
    }

    fn read(&mut self, event: &mut Counter) -> Result<Reading, SourceError> {
        let count = event.number.map_or(event.seen, |number| self.sample(number));
        let events = count - std::mem::replace(&mut event.seen, count);
        Ok(Reading { events, due: false })
    }

    fn pause(&mut self, event: &mut Counter) -> Result<Reading, SourceError> {
        let reading = self.read(event);
        if let Some(number) = event.number.take() {
            self.unbind(number);
        }
        reading
    }

    fn resume(&mut self, event: &mut Counter, _: Arm) -> Result<(), SourceError> {
        event.number = Some(self.bind(event.config).map_err(|_| SourceError::Unschedulable)?);
        event.seen = 0;
        Ok(())
    }

    fn rearm(&mut self, _: &mut Counter, _: Arm) -> Result<(), SourceError> {
        Ok(())
    }

    fn close(&mut self, event: Counter) {
        if let Some(number) = event.number {
            self.unbind(number);
        }
    }
}

/// The guest's view of ten periods of 100, with the accesses of its handler after each.
fn session<S: CounterSource>(source: S, occur: impl Fn(&mut Vpmu<S, Line>, u64)) -> Vec<u64> {
    let mut guest = Vpmu::new(VpmuConfig::new(models()[1]), source, Line::nmi());
    let mut seen = Vec::new();
    let write = |guest: &mut Vpmu<S, Line>, msr, value| {
        guest.wrmsr(msr, value).expect("a register");
        guest.on_vcpu_enter();
    };
    write(&mut guest, 0x4c1, (1 << 48) - 100);
    write(&mut guest, 0x186, INSTRUCTIONS);
    for _ in 0..10 {
        occur(&mut guest, 100);
        // Any exit of the guest, such as a timer's: the VMM looks.
        guest.poll_overflows();
        guest.on_vcpu_enter();
        write(&mut guest, 0x38f, 0);
        seen.extend([0x38e, 0xc1].map(|msr| guest.rdmsr(msr).expect("a register")));
        write(&mut guest, 0x390, 1);
        write(&mut guest, 0x4c1, (1 << 48) - 100);
        guest.interrupt_mut().lvtpc.write(0x400);
        write(&mut guest, 0x38f, 0xf);
    }
    seen.push(guest.interrupt().nmis);
    seen
}

#[test]
fn a_host_that_binds_samples_and_unbinds_is_enough() {
    let host = Host::default();
    let events = host.clone();
    let seen = session(host, move |_, count| events.occur(0xc0, count));
    let expected = session(Simulated::new(), |guest, count| {
        guest.source_mut().occur(0xc0, true, count);
    });
    assert_eq!(seen, expected);
    assert_eq!(seen.last(), Some(&10));
}
