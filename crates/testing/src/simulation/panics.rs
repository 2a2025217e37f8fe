//! What a panic says, kept for the report instead of being printed: a thousand seeds of which some are
//! expected to fail would bury everything else.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

/// The payload that unwinds a task which must stop; it passes no panic hook and says nothing.
pub(super) struct Stopped;

/// How a task's body ended.
pub(super) enum Ending<T> {
    Returned(T),
    Stopped,
    Panicked(String),
}

thread_local! {
    static SIMULATED: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Ends the calling task as if its process had been killed.
pub(super) fn stop() -> ! {
    panic::resume_unwind(Box::new(Stopped))
}

/// Runs `body` to its end, whichever that is. A panic is told by what it returns, not on stderr.
pub(super) fn run<T>(body: impl FnOnce() -> T) -> Ending<T> {
    install_hook();
    SIMULATED.set(true);
    // Whatever the body shared and left half done belongs to a run that has failed or to a process
    // that is dead.
    let ended = panic::catch_unwind(AssertUnwindSafe(body));
    SIMULATED.set(false);
    match ended {
        Ok(value) => Ending::Returned(value),
        Err(payload) if payload.is::<Stopped>() => Ending::Stopped,
        Err(payload) => Ending::Panicked(MESSAGE.take().unwrap_or_else(|| said(&*payload))),
    }
}

fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| match SIMULATED.try_with(Cell::get) {
            Ok(true) => keep(info),
            _ => previous(info),
        }));
    });
}

fn keep(info: &PanicHookInfo<'_>) {
    let mut message = said(info.payload());
    if let Some(place) = info.location() {
        message = format!("{message} (at {place})");
    }
    for function in own_functions(&Backtrace::force_capture()) {
        message = format!("{message}\n      in {function}");
    }
    MESSAGE.with(|slot| {
        // The first one is the cause, the others are what unwinding met.
        slot.borrow_mut().get_or_insert(message);
    });
}

fn said(payload: &dyn Any) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a payload that is no text".to_owned()
    }
}

/// The functions of `backtrace` that are neither the standard library's nor the simulator's.
pub(super) fn own_functions(backtrace: &Backtrace) -> Vec<String> {
    const FOREIGN: [&str; 8] =
        ["std::", "core::", "alloc::", "rust_", "__rust", "_rust", "firn_base::", "<firn_base::"];
    const OWN: [&str; 3] = ["simulation::scheduler", "simulation::panics", "simulation::process"];
    let text = backtrace.to_string();
    let mut functions = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((number, name)) = line.trim().split_once(": ") else { continue };
        if number.parse::<u32>().is_err() {
            continue;
        }
        let place = lines.peek().and_then(|next| next.trim().strip_prefix("at "));
        let bare = name.trim_start_matches('<');
        let foreign = FOREIGN.iter().any(|prefix| bare.starts_with(prefix))
            || OWN.iter().any(|module| name.contains(module) && !name.contains("::tests::"));
        if let (Some(place), false) = (place, foreign) {
            functions.push(format!("{name} at {place}"));
        }
    }
    functions.truncate(8);
    functions
}
