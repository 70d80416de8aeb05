use std::os::fd::AsFd;

use proptest::prelude::*;

use super::*;

const RING: usize = 1024;

/// Writes as `bpf/channel.h` does, into a file.
struct Writer {
    words: SharedWords,
    /// How many, the earliest time and the latest.
    lost: [u64; 3],
}

impl Writer {
    fn put(&mut self, record: &[u64]) -> bool {
        let head = self.words.load(WRITTEN);
        if head + record.len() as u64 - self.words.load(READ) > RING as u64 {
            return false;
        }
        for (at, word) in record.iter().enumerate() {
            self.words.store(HEAD_WORDS + (head as usize + at) % RING, *word);
        }
        self.words.store(WRITTEN, head + record.len() as u64);
        true
    }

    fn stack(&mut self, place: u64, frames: &[u64]) -> bool {
        let what = STACK | 1 << 8 | (frames.len() as u64) << 16 | place << 32;
        self.put(&[&[what], frames].concat())
    }

    fn switch(&mut self, time: u64, tid: u64, user: u64, kernel: u64) {
        let what = SWITCH | IS_PREEMPTION << 8 | 2 << 16 | tid << 32;
        self.write(&[what, time, 7 | user << 32 | kernel << 48]);
    }

    fn write(&mut self, record: &[u64]) {
        let ([count, from, to], time) = (self.lost, record[1]);
        let whole = [&[LOST, to, count, from], record].concat();
        let written = self.put(if count > 0 { &whole } else { record });
        self.lost = match (written, count) {
            (true, _) => [0; 3],
            (_, 0) => [1, time, time],
            _ => [count + 1, from.min(time), to.max(time)],
        };
        for (at, word) in [LOST_UNTOLD, LOST_FROM, LOST_TO].into_iter().zip(self.lost) {
            self.words.store(at, word);
        }
    }
}

fn pair() -> (Writer, Channel) {
    let file = tempfile::tempfile().unwrap();
    file.set_len(value_bytes(RING) as u64).unwrap();
    let map = || SharedWords::map(file.as_fd(), value_bytes(RING) / 8).unwrap();
    let channels = Channels::new(map(), 1, RING);
    assert!(channels.of_cpu(1).is_none());
    (Writer { words: map(), lost: [0; 3] }, channels.of_cpu(0).unwrap())
}

#[test]
fn records_are_read_as_they_are_written() {
    let (mut writer, mut channel) = pair();
    assert!(writer.stack(5, &[10, 11]));
    writer.switch(100, 9, 6, 0);
    writer.switch(200, 8, 0, 16384);
    assert_eq!(channel.next_until(u64::MAX), None, "nothing was looked for");
    channel.look();
    assert_eq!(channel.available_bytes(), 9 * 8);
    let (place, reason) = (DictionarySlot(5), StopReason::EndOfStack);
    let stack = Record::Stack { place, reason, frames: &[10, 11] };
    assert_eq!(channel.next_until(0), Some(stack));
    assert_eq!(channel.next_until(99), None);
    let mut switch = Switch {
        time_ns: 100,
        thread: Thread { pid: 7, tid: 9 },
        next: None,
        is_preemption: true,
        is_throttled: false,
        is_within_kernel: false,
        state: 2,
        object: None,
        user_stack: Some(place),
        kernel_stack: None,
    };
    assert_eq!(channel.next_until(100), Some(Record::Switch(switch)));
    assert_eq!(channel.next_until(100), None);
    (switch.time_ns, switch.thread.tid, switch.user_stack) = (200, 8, None);
    switch.kernel_stack = Some(DictionarySlot(16383));
    assert_eq!(channel.next_until(u64::MAX), Some(Record::Switch(switch)));
    assert_eq!(channel.next_until(u64::MAX), None);
    assert_eq!(channel.available_bytes(), 0);
}

#[test]
fn the_futex_of_a_wait_follows_the_next_thread() {
    let (mut writer, mut channel) = pair();
    let address = 0x7fff_ffff_f000;
    writer.write(&[SWITCH | (HAS_NEXT | HAS_FUTEX) << 8 | 9 << 32, 100, 7, 5 | 6 << 32, address]);
    writer.write(&[SWITCH | HAS_FUTEX << 8 | 6 << 32, 200, 5, 0x1000]);
    writer.write(&[SWITCH | 8 << 32, 300, 5]);
    channel.look();
    let mut next = || match channel.next_until(u64::MAX) {
        Some(Record::Switch(switch)) => (switch.time_ns, switch.next, switch.object),
        other => panic!("{other:?}"),
    };
    assert_eq!(next(), (100, Some(thread(5, 6)), Some(SwitchObject::Futex(address))));
    assert_eq!(next(), (200, None, Some(SwitchObject::Futex(0x1000))));
    assert_eq!(next(), (300, None, None));
    assert_eq!(channel.available_bytes(), 0);
}

#[test]
fn the_object_of_a_wait_is_described_in_front_of_it() {
    let (mut writer, mut channel) = pair();
    writer.write(&[OBJECT | 2 << 16 | 77 << 32, 3, 4711]);
    writer.write(&[SWITCH | (HAS_NEXT | HAS_OBJECT) << 8 | 9 << 32, 100, 7, 5 | 6 << 32, 78]);
    writer.write(&[SWITCH | HAS_OBJECT << 8 | 9 << 32, 200, 7, 78]);
    channel.look();
    let place = DictionarySlot(77);
    assert_eq!(channel.next_until(99), Some(Record::Object { place, words: &[3, 4711] }));
    for (time, next) in [(100, Some(thread(5, 6))), (200, None)] {
        let Some(Record::Switch(switch)) = channel.next_until(time) else { panic!("{time}") };
        assert_eq!(switch.next, next);
        assert_eq!(switch.object, Some(SwitchObject::Described(place)));
    }
    assert_eq!(channel.available_bytes(), 0);
}

#[test]
fn the_ready_file_of_a_thread_is_described_in_front_of_it() {
    let (mut writer, mut channel) = pair();
    writer.write(&[OBJECT | 2 << 16 | 77 << 32, 3, 4711]);
    writer.write(&[READY | 9 << 32, 100, 7 | 78 << 32]);
    channel.look();
    let place = DictionarySlot(77);
    assert_eq!(channel.next_until(99), Some(Record::Object { place, words: &[3, 4711] }));
    assert_eq!(channel.next_until(99), None);
    let ready = Record::Ready { time_ns: 100, thread: thread(7, 9), place };
    assert_eq!(channel.next_until(100), Some(ready));
    assert_eq!(channel.available_bytes(), 0);
}

#[test]
fn those_that_come_have_a_word_or_a_record_of_their_own() {
    let (mut writer, mut channel) = pair();
    writer.write(&[SWITCH | HAS_NEXT << 8 | 9 << 32, 100, 7, 5 | 6 << 32]);
    writer.write(&[CAME | 8 << 32, 200, 7]);
    writer.switch(300, 8, 0, 0);
    channel.look();
    let Some(Record::Switch(first)) = channel.next_until(100) else { panic!() };
    assert_eq!((first.thread, first.next), (thread(7, 9), Some(thread(5, 6))));
    assert!(!first.is_preemption);
    assert_eq!(channel.next_until(199), None);
    let came = Record::SwitchIn { time_ns: 200, thread: thread(7, 8) };
    assert_eq!(channel.next_until(200), Some(came));
    let Some(Record::Switch(last)) = channel.next_until(300) else { panic!() };
    assert_eq!((last.thread, last.next), (thread(7, 8), None));
    assert_eq!(channel.available_bytes(), 0);
}

#[test]
fn an_account_has_the_parts_that_are_recorded() {
    let (mut writer, mut channel) = pair();
    writer.write(&[ACCOUNT | (HAS_IRQ | HAS_STOLEN) << 8 | 9 << 32, 100, 7, 1 << 40, 5, 6]);
    writer.write(&[ACCOUNT | HAS_STOLEN << 8, 200, 0, 0, 0, 4]);
    writer.write(&[ACCOUNT, 300, 0, 0, 0, 0]);
    writer.switch(400, 8, 0, 0);
    channel.look();
    assert_eq!(channel.next_until(99), None);
    for (time_ns, of, interrupts_ns, stolen_ns) in [
        (100, thread(7, 9), Some((1 << 40, 5)), Some(6)),
        (200, thread(0, 0), None, Some(4)),
        (300, thread(0, 0), None, None),
    ] {
        let account = Account { time_ns, thread: of, interrupts_ns, stolen_ns };
        assert_eq!(channel.next_until(time_ns), Some(Record::Account(account)));
    }
    assert!(matches!(channel.next_until(400), Some(Record::Switch(_))));
    assert_eq!(channel.available_bytes(), 0);
}

fn thread(pid: u32, tid: u32) -> Thread {
    Thread { pid, tid }
}

#[test]
fn the_largest_stack_fits_the_smallest_channel() {
    assert_eq!(words_for(0), WORDS_MIN);
    assert!(WORDS_MIN > 1 + FRAMES_MAX && words_for(usize::MAX) == WORDS_MAX);
    let (mut writer, mut channel) = pair();
    let frames: Vec<u64> = (0..FRAMES_MAX as u64).collect();
    for _ in 0..20 {
        assert!(writer.stack(1, &frames));
        channel.look();
        let Some(Record::Stack { frames: seen, .. }) = channel.next_until(0) else { panic!() };
        assert_eq!(seen, frames);
        channel.release();
    }
}

proptest! {
    /// Everything comes out once and in order, or is counted as lost where it would have come, with the times
    /// of the first and the last that are missing.
    #[test]
    fn nothing_is_lost_in_silence(steps in prop::collection::vec((1u64..400, 0u64..400, any::<bool>()), 1..40)) {
        let (mut writer, mut channel) = pair();
        let (mut written, mut next) = (0u64, 0u64);
        for (switches, until, is_whole) in steps {
            for _ in 0..switches {
                match written % 5 {
                    0 => writer.switch(written, 1, 0, 0),
                    1 => writer.write(&[SWITCH | HAS_NEXT << 8, written, 7, 8]),
                    2 => writer.write(&[ACCOUNT, written, 7, 0, 0, 0]),
                    3 => writer.write(&[READY, written, 7 | 9 << 32]),
                    _ => writer.write(&[CAME, written, 7]),
                }
                written += 1;
            }
            channel.look();
            let until = if is_whole { u64::MAX } else { next + until };
            while let Some(record) = channel.next_until(until) {
                match record {
                    Record::Lost(loss) => {
                        prop_assert_eq!((loss.from_ns, loss.to_ns + 1), (next, next + loss.count));
                        next += loss.count;
                    }
                    Record::Switch(Switch { time_ns, .. })
                    | Record::SwitchIn { time_ns, .. }
                    | Record::Ready { time_ns, .. }
                    | Record::Account(Account { time_ns, .. }) => {
                        prop_assert_eq!(time_ns, next);
                        next += 1;
                    }
                    Record::Stack { .. } | Record::Object { .. } => prop_assert!(false),
                }
            }
            channel.release();
        }
        channel.look();
        while let Some(record) = channel.next_until(u64::MAX) {
            next += if let Record::Lost(loss) = record { loss.count } else { 1 };
        }
        let at_end = Loss { count: written - next, from_ns: next, to_ns: written.wrapping_sub(1) };
        prop_assert_eq!(channel.lost_at_end(), (next < written).then_some(at_end));
    }

    #[test]
    fn arbitrary_words_are_survived(words in prop::collection::vec(any::<u64>(), 0..60)) {
        let (mut writer, mut channel) = pair();
        writer.put(&words);
        channel.look();
        while let Some(record) = channel.next_until(u64::MAX) {
            if let Record::Stack { frames, place, .. } = record {
                prop_assert!(frames.len() <= FRAMES_MAX && usize::from(place.0) < PLACES);
            }
        }
    }
}
