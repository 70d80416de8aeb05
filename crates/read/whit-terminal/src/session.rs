//! The terminal: events in, screens out, and requests carried out meanwhile.

use crate::draw::{draw, draw_progress};
use crate::hang_up::end_with_terminal;
use crate::input::Input;
use crate::live::{Feed, News};
use crate::source::Source;
use crate::state::{Answer, Begin, Request, State};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, DisableMouseCapture, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, BufWriter, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Between two drawings of a progress bar.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// Between two looks for news.
const NEWS_INTERVAL: Duration = Duration::from_millis(200);
/// Bytes of a screen: it reaches the terminal in few writes.
const SCREEN_BYTES: usize = 1 << 16;

/// The terminal cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the interface cannot use this terminal (--stdio prints text): {0}")]
pub struct TerminalError(#[from] io::Error);

type Screen = Terminal<CrosstermBackend<BufWriter<Stdout>>>;

/// Gives the terminal back, however the interface ends.
struct Taken;

impl Taken {
    fn take() -> io::Result<Taken> {
        enable_raw_mode()?;
        let taken = Taken;
        execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture)?;
        Ok(taken)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = execute!(io::stdout(), DisableMouseCapture, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Shows the interface until the user ends it.
///
/// # Errors
/// The terminal cannot be read or written.
pub fn run(begin: Begin, source: &dyn Source) -> Result<(), TerminalError> {
    show(State::new(begin), source, None)
}

/// Shows the interface of a recording that goes on, until the user or a signal ends it.
///
/// # Errors
/// The terminal cannot be read or written.
pub fn run_live(
    begin: Begin,
    source: &dyn Source,
    feed: &mut dyn Feed,
) -> Result<(), TerminalError> {
    let mut state = State::new(begin);
    state.set_live();
    show(state, source, Some(feed))
}

fn show(
    mut state: State,
    source: &dyn Source,
    mut feed: Option<&mut dyn Feed>,
) -> Result<(), TerminalError> {
    let _taken = Taken::take()?;
    end_with_terminal();
    let out = BufWriter::with_capacity(SCREEN_BYTES, io::stdout());
    let mut screen = Terminal::new(CrosstermBackend::new(out))?;
    let size = screen.size()?;
    state.handle(Input::Resize { width: size.width, height: size.height });
    let (mut next, mut is_asked) = (None, true);
    loop {
        match next.take() {
            Some(Request::Quit) => return Ok(()),
            Some(Request::Zero) => feed.iter_mut().for_each(|feed| feed.zero()),
            Some(request) => answer(&mut state, &mut screen, source, &request, is_asked)?,
            None => {}
        }
        screen.draw(|frame| draw(&state, frame.area(), frame.buffer_mut()))?;
        (next, is_asked) = match &mut feed {
            None => (Input::of(&event::read()?).and_then(|input| state.handle(input)), true),
            Some(feed) => next_of_live(&mut state, *feed)?,
        };
    }
}

/// Waits for a key or for news, whichever comes first; the screen is drawn for these alone. Tells whether the user asks
/// for the request.
fn next_of_live(state: &mut State, feed: &mut dyn Feed) -> io::Result<(Option<Request>, bool)> {
    loop {
        let news = feed.news(state.is_paused());
        if !matches!(news, News::None) {
            return Ok((state.take_news(news), false));
        }
        if event::poll(NEWS_INTERVAL)? {
            let input = Input::of(&event::read()?);
            return Ok((input.and_then(|input| state.handle(input)), true));
        }
    }
}

/// Carries a request out, with a progress bar where the user waits for it.
fn answer(
    state: &mut State,
    screen: &mut Screen,
    source: &dyn Source,
    request: &Request,
    has_bar: bool,
) -> io::Result<()> {
    let (done, total) = (AtomicU64::new(0), AtomicU64::new(0));
    let progress = |now: u64, all: u64| {
        done.store(now, Ordering::Relaxed);
        total.store(all, Ordering::Relaxed);
    };
    let shown: &State = state;
    let answer = thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let progress = &progress;
        scope.spawn(move || {
            let _ = sender.send(carry_out(shown, source, request, progress));
        });
        loop {
            match receiver.recv_timeout(PROGRESS_INTERVAL) {
                Ok(answer) => return Ok(answer),
                // The thread panicked, which the scope passes on.
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if !has_bar {
                continue;
            }
            let all = total.load(Ordering::Relaxed).max(1) as f64;
            let share = done.load(Ordering::Relaxed) as f64 / all;
            screen.draw(|frame| {
                let area = frame.area();
                draw(shown, area, frame.buffer_mut());
                draw_progress(words(request), share, area, frame.buffer_mut(), shown);
            })?;
        }
    });
    let answer: io::Result<Option<Answer>> = answer;
    if let Some(answer) = answer? {
        state.answer(answer);
    }
    Ok(())
}

fn words(request: &Request) -> &'static str {
    match request {
        Request::Quit | Request::Zero => "",
        Request::Waits => "reading waits",
        Request::Times => "reading times",
        Request::Span(_) => "reading the range of time",
        Request::Code(_) => "reading code",
        Request::Requests => "reading requests",
        Request::Why(_) => "following the critical path",
        Request::Save(_) => "writing",
    }
}

fn carry_out(
    state: &State,
    source: &dyn Source,
    request: &Request,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Option<Answer> {
    Some(match request {
        Request::Quit | Request::Zero => return None,
        Request::Waits => Answer::Waits(source.waits(state.span(), progress).map(Box::new)),
        Request::Span(span) => {
            Answer::Span(*span, source.samples_of(*span, progress).map(Arc::new))
        }
        Request::Times => Answer::Times(source.times(progress).map(Box::new)),
        Request::Code(function) => {
            Answer::Code(function.clone(), source.code(function, state.span(), progress))
        }
        Request::Requests => Answer::Requests(source.requests(progress)),
        Request::Why(what) => Answer::Why(what.clone(), source.why(what, state.span(), progress)),
        Request::Save(path) => {
            let (profile, options) = state.report();
            Answer::Saved(path.clone(), source.save(path, profile, options))
        }
    })
}
