//! Lost samples: nobody knows which functions they were in.

/// Weight that was lost beside weight that was recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    lost: f64,
    recorded: f64,
}

impl Loss {
    /// Nothing is lost.
    pub const NONE: Loss = Loss { lost: 0.0, recorded: 1.0 };

    /// So much weight was lost, and so much recorded.
    pub fn new(lost: f64, recorded: f64) -> Loss {
        if lost > 0.0 && recorded > 0.0 { Loss { lost, recorded } } else { Loss::NONE }
    }

    /// True where nothing is lost.
    pub fn is_none(&self) -> bool {
        self.lost == 0.0
    }

    /// The interval of a share of all samples, lost ones too, where that of the recorded ones is `low` to `high`: at one
    /// end all lost samples were elsewhere, at the other all were here.
    pub fn widen(&self, (low, high): (f64, f64)) -> (f64, f64) {
        let all = self.recorded + self.lost;
        (low * self.recorded / all, (high * self.recorded + self.lost) / all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_lost_changes_nothing() {
        assert_eq!(Loss::NONE.widen((0.25, 0.5)), (0.25, 0.5));
        assert!(Loss::new(0.0, 10.0).is_none() && Loss::new(1.0, 0.0).is_none());
        assert!(!Loss::new(1.0, 1.0).is_none());
    }

    proptest! {
        /// Whichever samples are dropped, the share of all of them is inside.
        #[test]
        fn the_whole_share_is_inside(
            hits in 0u32..1000, others in 0u32..1000, lost_hits in 0u32..1000, lost_others in 0u32..1000,
        ) {
            let [hits, others, lost_hits, lost_others] =
                [hits, others, lost_hits, lost_others].map(f64::from);
            prop_assume!(hits + others > 0.0);
            let recorded = hits + others;
            let lost = lost_hits + lost_others;
            let whole = (hits + lost_hits) / (recorded + lost);
            let share = hits / recorded;
            let (low, high) = Loss::new(lost, recorded).widen((share, share));
            prop_assert!(low <= whole + 1e-12 && whole <= high + 1e-12);
        }
    }
}
