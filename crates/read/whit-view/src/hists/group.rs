//! Groups of events in one table: a row has the weights of each event, as `perf report --group` has them.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;
use whit_profile::model::{EventId, Profile};
use whit_types::OutsideText;

use super::build;
use super::code_location::CodeLocation;
use super::context::Context;
use super::options::{ChainMode, Grouping, HistsOptions};
use super::row_order::RowOrder;
use super::{ChainTree, HistRow, Hists};

/// Events of one table.
#[derive(Clone, Debug)]
pub struct EventGroup {
    /// As perf names the group.
    pub name: String,
    /// The event that orders the rows.
    pub leader: EventId,
    /// The events behind the first.
    pub members: Vec<EventId>,
}

impl EventGroup {
    fn new(name: String, events: &[EventId]) -> Option<EventGroup> {
        let (leader, members) = events.split_first()?;
        Some(EventGroup { name, leader: *leader, members: members.to_vec() })
    }
}

/// A row's weights of an event that is not the leader of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemberWeight {
    /// Sum of periods in the row itself.
    pub self_period: u64,
    /// Number of samples there.
    pub self_samples: u64,
    /// Sum of periods with all callees.
    pub children_period: u64,
    /// Number of samples with all callees.
    pub children_samples: u64,
    /// Sum of periods in the row itself that ran in the kernel.
    pub kernel_period: u64,
}

/// The sums of an event that is not the leader of its group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberTotal {
    /// Index into the profile's events.
    pub event: EventId,
    /// Sum of the periods of all its samples.
    pub period: u64,
    /// Number of all its samples.
    pub samples: u64,
}

impl MemberWeight {
    fn of(row: &HistRow) -> MemberWeight {
        MemberWeight {
            self_period: row.self_period,
            self_samples: row.self_samples,
            children_period: row.children_period,
            children_samples: row.children_samples,
            kernel_period: row.kernel_period,
        }
    }

    pub(super) fn add(&mut self, other: &MemberWeight) {
        self.self_period += other.self_period;
        self.self_samples += other.self_samples;
        self.children_period += other.children_period;
        self.children_samples += other.children_samples;
        self.kernel_period += other.kernel_period;
    }
}

/// The tables of a profile, each with its events.
pub fn groups(profile: &Profile, grouping: Grouping) -> Vec<EventGroup> {
    let all = || (0..profile.events.len() as u32).map(EventId);
    let names = |events: &[EventId]| {
        let names = events.iter().map(|event| profile.events[event.index()].name.escaped());
        names.collect::<Vec<_>>().join(", ")
    };
    if grouping == Grouping::Always && profile.groups.is_empty() && profile.events.len() > 1 {
        let events: Vec<_> = all().collect();
        return EventGroup::new(names(&events), &events).into_iter().collect();
    }
    let group_of = |event: &EventId| {
        let groups = profile.groups.iter().filter(|_| grouping != Grouping::Apart);
        groups.filter(|group| group.events.len() > 1).find(|group| group.events.contains(event))
    };
    let table = |event: EventId| match group_of(&event) {
        Some(group) if group.events.first() != Some(&event) => None,
        Some(group) => {
            let name = group.name.as_ref().map_or("anon group".into(), OutsideText::escaped);
            let name = format!("{name} {{ {} }}", names(&group.events));
            EventGroup::new(name, &group.events)
        }
        None => EventGroup::new(names(&[event]), &[event]),
    };
    all().filter_map(table).collect()
}

/// The rows of a group: those of its leader with the weights of the other events, and rows that only those have.
pub fn group_hists(profile: &Profile, group: &EventGroup, options: &HistsOptions) -> Hists {
    let EventGroup { leader, members, .. } = group;
    if members.is_empty() {
        return build::hists(profile, *leader, options);
    }
    let mut whole = HistsOptions { intervals: false, ..options.clone() };
    let mut joined = build::unordered(profile, *leader, &whole);
    let key = |row: &HistRow| (*row.context, row.place);
    let mut places: FxHashMap<(Context, CodeLocation), usize> =
        joined.rows.iter().enumerate().map(|(place, row)| (key(row), place)).collect();
    for row in &mut joined.rows {
        row.members = vec![MemberWeight::default(); members.len()].into();
    }
    whole.chains.mode = ChainMode::None;
    for (index, event) in members.iter().enumerate() {
        let of_member = build::unordered(profile, *event, &whole);
        for row in of_member.rows {
            let place = *places.entry(key(&row)).or_insert_with(|| {
                joined.rows.push(row.without_weights(members.len()));
                joined.rows.len() - 1
            });
            let known = &mut joined.rows[place];
            known.first_thread = known.first_thread.min(row.first_thread);
            known.members[index] = MemberWeight::of(&row);
        }
        let (period, samples) = (of_member.total_period, of_member.total_samples);
        joined.members.push(MemberTotal { event: *event, period, samples });
    }
    build::arrange(profile, options, &mut joined);
    joined
}

impl HistRow {
    fn without_weights(&self, members: usize) -> HistRow {
        HistRow {
            context: self.context.clone(),
            members: vec![MemberWeight::default(); members].into(),
            chains: ChainTree::default(),
            examples: Box::default(),
            intervals: None,
            self_period: 0,
            self_samples: 0,
            children_period: 0,
            children_samples: 0,
            self_latency: 0,
            children_latency: 0,
            kernel_period: 0,
            ..*self
        }
    }
}

impl RowOrder<'_> {
    /// The heavier row first: by the event that the user chose, then by the leader, then by each other event. perf
    /// leaves the leader out where another event was chosen.
    pub(super) fn by_group(
        &self,
        a: &HistRow,
        b: &HistRow,
        leader: impl Fn(&HistRow) -> u64,
        member: impl Fn(&MemberWeight) -> u64,
    ) -> Ordering {
        let chosen = self.group_sort.checked_sub(1).filter(|index| *index < a.members.len());
        let of = |row: &HistRow, index: usize| row.members.get(index).map_or(0, &member);
        let by_leader = || match chosen {
            Some(index) => of(b, index).cmp(&of(a, index)),
            None => leader(b).cmp(&leader(a)),
        };
        let by_members = || {
            let orders = (0..a.members.len()).map(|index| of(b, index).cmp(&of(a, index)));
            orders.fold(Ordering::Equal, Ordering::then)
        };
        by_leader().then_with(by_members)
    }
}
