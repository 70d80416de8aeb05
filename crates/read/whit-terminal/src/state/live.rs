//! Each picture of a live recording replaces the one before; choices of the user stay.

use super::open_rows::OpenRows;
use super::{Request, State, View};
use crate::flame_view::FlameView;
use crate::live::{Live, News};
use crate::text_view::TextView;
use std::sync::Arc;
use whit_profile::model::Profile;
use whit_view::flame::FrameName;

impl State {
    /// Makes the interface one of a recording that goes on.
    pub(crate) fn set_live(&mut self) {
        self.live = Some(Live::default());
    }

    /// Takes news; gives the work that they ask for.
    pub(crate) fn take_news(&mut self, news: News) -> Option<Request> {
        let live = self.live.as_mut()?;
        match news {
            News::None => None,
            News::Quit => Some(Request::Quit),
            News::Ended(reason) => {
                live.ended = Some(whit_types::escape(&reason).into_owned());
                None
            }
            News::Picture { profile, status } => {
                live.status = status;
                self.replace(profile)
            }
        }
    }

    /// Shows another picture.
    fn replace(&mut self, profile: Arc<Profile>) -> Option<Request> {
        // Until the user chooses another event, it is the first one that is no switch.
        let event = self.live.as_ref().and_then(|live| live.event.clone());
        self.exchange(profile, event.as_deref());
        // Those of the other views are read when they are looked at.
        match self.view {
            View::Waits => Some(Request::Waits),
            View::Strip => Some(Request::Times),
            View::Table | View::Flame => {
                self.forget_readings();
                None
            }
        }
    }

    /// Shows another profile; the chosen row, open rows, zooms and filters stay, and so do readings of other views.
    pub(super) fn exchange(&mut self, profile: Arc<Profile>, event: Option<&str>) {
        let open = OpenRows::of(self);
        let flame = self.flame.as_ref().map(|flame| FramePlaces::of(flame, &self.profile));
        self.set_profile(profile);
        self.choose_event(event);
        let waits = self.waits_view.take();
        self.compute();
        self.waits_view = waits;
        open.restore(self);
        if let (Some(places), Some(flame)) = (flame, &mut self.flame) {
            let height = usize::from(self.height);
            places.restore(flame, &self.profile, height);
        }
        self.keep_chosen_visible();
    }

    /// Keys of a live interface alone; false for others.
    pub(crate) fn live_key(&mut self, c: char) -> (bool, Option<Request>) {
        let Some(live) = &mut self.live else { return (false, None) };
        match c {
            'p' | ' ' => {
                live.is_paused = !live.is_paused;
                (true, None)
            }
            'z' => {
                self.message = Some("samples count from now on".to_owned());
                (true, Some(Request::Zero))
            }
            _ => (false, None),
        }
    }

    /// The help of these keys.
    pub(crate) fn help(&self) -> TextView {
        let own = if self.live.is_some() { LIVE_HELP } else { "" };
        let text = format!("{own}{}", crate::help::HELP);
        TextView::new("Keys", text.lines().map(str::to_owned).collect())
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.is_paused)
    }
}

/// Lines of at most 78 columns.
const LIVE_HELP: &str = "\
p Space          pause: the picture stays; again: it goes on
z                let all samples go, and count from now on
                 The last line has the CPU time of whit top and its recorder, in
                 percent of one CPU, and their memory.

";

/// The chosen frame and the one that fills the width, by the names on the way to them.
struct FramePlaces {
    chosen: Vec<String>,
    zoomed: Option<Vec<String>>,
}

impl FramePlaces {
    fn of(view: &FlameView, profile: &Profile) -> FramePlaces {
        FramePlaces {
            chosen: path_of(view, profile, view.chosen),
            zoomed: view.zoomed.map(|frame| path_of(view, profile, frame)),
        }
    }

    fn restore(&self, view: &mut FlameView, profile: &Profile, height: usize) {
        if let Some(chosen) = find(view, profile, &self.chosen) {
            view.choose(chosen, height);
        }
        view.zoomed = self.zoomed.as_ref().and_then(|path| find(view, profile, path));
    }
}

fn name_of(profile: &Profile, name: FrameName) -> String {
    match name {
        FrameName::Command(comm) => {
            comm.map_or_else(String::new, |comm| profile.comms[comm.index()].exact().to_owned())
        }
        FrameName::Function(entry) => {
            profile.functions[entry.function.index()].name.exact().to_owned()
        }
    }
}

fn path_of(view: &FlameView, profile: &Profile, frame: u32) -> Vec<String> {
    let mut path = Vec::new();
    let mut at = Some(frame);
    while let Some(frame) = at.and_then(|at| view.frame(at)) {
        path.push(name_of(profile, frame.name));
        at = frame.parent;
    }
    path.reverse();
    path
}

fn find(view: &FlameView, profile: &Profile, path: &[String]) -> Option<u32> {
    let (mut found, mut below) = (None, &view.flame.roots);
    for name in path {
        let is_it =
            |id: &&u32| view.frame(**id).is_some_and(|frame| name_of(profile, frame.name) == *name);
        let id = *below.iter().find(is_it)?;
        found = Some(id);
        below = &view.frame(id)?.children;
    }
    found
}
