//! Event modifiers (`:ukhGHpPSDWIeb`) and their effect on the attribute's exclusions.

use std::fmt;

/// The modifiers of one event or group. Each may be given once, `p` up to three times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Modifiers {
    /// `u`: user space.
    pub user: bool,
    /// `k`: kernel.
    pub kernel: bool,
    /// `h`: hypervisor.
    pub hypervisor: bool,
    /// `G`: guests.
    pub guest: bool,
    /// `H`: the host.
    pub host: bool,
    /// `p`, `pp`, `ppp`: how exact the sampled address must be, 0 to 3.
    pub precise: u8,
    /// `P`: as precise as the PMU can.
    pub precise_max: bool,
    /// `S`: read the group's counters at each sample of the leader.
    pub sample_read: bool,
    /// `D`: pinned to the PMU.
    pub pinned: bool,
    /// `W`: break the group up if it does not fit.
    pub weak: bool,
    /// `I`: do not count while idle.
    pub exclude_idle: bool,
    /// `e`: exclusive use of the PMU.
    pub exclusive: bool,
    /// `b`: counters shared with others through BPF, where that is possible.
    pub bpf: bool,
}

/// Code that is not counted: the `exclude_*` bits of `perf_event_attr`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Exclude {
    /// `exclude_user`
    pub user: bool,
    /// `exclude_kernel`
    pub kernel: bool,
    /// `exclude_hv`
    pub hypervisor: bool,
    /// `exclude_guest`
    pub guest: bool,
    /// `exclude_host`
    pub host: bool,
    /// `exclude_idle`
    pub idle: bool,
}

impl Exclude {
    /// Exclusions of an event without modifiers: guests, as perf does.
    pub const WITHOUT_MODIFIERS: Exclude = Exclude {
        user: false,
        kernel: false,
        hypervisor: false,
        guest: true,
        host: false,
        idle: false,
    };

    /// The equivalent modifiers: `u`, `k`, `h` for the counted modes; empty if all modes are
    /// excluded.
    pub fn modifiers(&self) -> String {
        let modes = [(self.user, 'u'), (self.kernel, 'k'), (self.hypervisor, 'h')];
        if modes.iter().all(|(out, _)| !out) {
            return String::new();
        }
        modes.iter().filter(|(out, _)| !out).map(|(_, letter)| letter).collect()
    }
}

/// The letters with the field each stands for, in the order in which they are printed.
pub const MODIFIER_LETTERS: &str = "ukhGHpPSDWIeb";

/// Why a letter was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ModifierError {
    Unknown,
    Twice,
    TooPrecise,
}

impl Modifiers {
    /// The highest number of `p`.
    pub const MAX_PRECISE: u8 = 3;

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        *self == Modifiers::default()
    }

    /// Adds one letter.
    pub(crate) fn add(&mut self, letter: char) -> Result<(), ModifierError> {
        if letter == 'p' {
            if self.precise == Self::MAX_PRECISE {
                return Err(ModifierError::TooPrecise);
            }
            self.precise += 1;
            return Ok(());
        }
        let flag = self.flag(letter).ok_or(ModifierError::Unknown)?;
        match std::mem::replace(flag, true) {
            true => Err(ModifierError::Twice),
            false => Ok(()),
        }
    }

    fn flag(&mut self, letter: char) -> Option<&mut bool> {
        Some(match letter {
            'u' => &mut self.user,
            'k' => &mut self.kernel,
            'h' => &mut self.hypervisor,
            'G' => &mut self.guest,
            'H' => &mut self.host,
            'P' => &mut self.precise_max,
            'S' => &mut self.sample_read,
            'D' => &mut self.pinned,
            'W' => &mut self.weak,
            'I' => &mut self.exclude_idle,
            'e' => &mut self.exclusive,
            'b' => &mut self.bpf,
            _ => return None,
        })
    }

    /// Applies the modifiers to the exclusions in `before`. `guest_host_chosen` says whether `G` or
    /// `H` was given before, and comes back updated.
    ///
    /// As perf does (`get_event_modifier`, `tools/perf/util/parse-events.c` of 6.1). The first of
    /// `u`, `k`, `h` excludes all three, and each then readmits its own. `G` and `H` do the same
    /// for guest and host. `u` and `p` exclude guests unless `G` or `H` was given.
    pub(crate) fn apply(&self, before: Exclude, guest_host_chosen: &mut bool) -> Exclude {
        let mut after = before;
        let any_ring = before.user || before.kernel || before.hypervisor;
        if (self.user || self.kernel || self.hypervisor) && !any_ring {
            (after.user, after.kernel, after.hypervisor) = (true, true, true);
        }
        after.user &= !self.user;
        after.kernel &= !self.kernel;
        after.hypervisor &= !self.hypervisor;
        if (self.guest || self.host) && !*guest_host_chosen {
            *guest_host_chosen = true;
            (after.guest, after.host) = (true, true);
        }
        after.guest |= (self.user || self.precise > 0) && !*guest_host_chosen;
        after.guest &= !self.guest;
        after.host &= !self.host;
        after.idle |= self.exclude_idle;
        after
    }
}

impl fmt::Display for Modifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        for letter in MODIFIER_LETTERS.chars() {
            let count = match letter {
                'p' => usize::from(self.precise),
                _ => usize::from(copy.flag(letter).is_some_and(|flag| *flag)),
            };
            (0..count).try_for_each(|_| write!(f, "{letter}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excluded(letters: &str) -> String {
        let mut modifiers = Modifiers::default();
        letters.chars().try_for_each(|c| modifiers.add(c)).unwrap();
        let e = modifiers.apply(Exclude::default(), &mut false);
        let bits = [
            (e.user, 'u'),
            (e.kernel, 'k'),
            (e.hypervisor, 'h'),
            (e.guest, 'G'),
            (e.host, 'H'),
            (e.idle, 'I'),
        ];
        bits.iter().filter(|(set, _)| *set).map(|(_, c)| c).collect()
    }

    /// The right-hand sides are what `perf evlist -v` of perf 6.1 shows for `cpu-clock:LETTERS`.
    #[test]
    fn exclusions_are_those_of_perf() {
        for (letters, expected) in [
            ("u", "khG"),
            ("k", "uh"),
            ("h", "uk"),
            ("uk", "hG"),
            ("ukh", "G"),
            ("G", "H"),
            ("H", "G"),
            ("GH", ""),
            ("uG", "khH"),
            ("uH", "khG"),
            ("p", "G"),
            ("pH", "G"),
            ("pG", "H"),
            ("D", ""),
            ("I", "I"),
            ("e", ""),
            ("P", ""),
            ("Duk", "hG"),
        ] {
            assert_eq!(excluded(letters), expected, "{letters}");
        }
    }

    #[test]
    fn letters_are_checked() {
        let mut m = Modifiers::default();
        assert_eq!(m.add('x'), Err(ModifierError::Unknown));
        assert_eq!(m.add('u'), Ok(()));
        assert_eq!(m.add('u'), Err(ModifierError::Twice));
        for _ in 0..3 {
            assert_eq!(m.add('p'), Ok(()));
        }
        assert_eq!(m.add('p'), Err(ModifierError::TooPrecise));
        assert_eq!(m.to_string(), "uppp");
    }
}
