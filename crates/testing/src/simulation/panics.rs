//! Messages of panics. They are kept for the report instead of being printed: among a thousand
//! seeds, expected panics would bury all other output.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

/// Functions of a stack that a report shows.
const REPORTED_FUNCTIONS: usize = 8;

/// The payload that unwinds a task that must stop. It calls no panic hook and prints nothing.
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

/// Runs `body` to its end. A panic is returned, not printed.
pub(super) fn run<T>(body: impl FnOnce() -> T) -> Ending<T> {
    install_hook();
    SIMULATED.set(true);
    // State that the body shared and left incomplete belongs to a failed run or to a dead process.
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
        // The first message is the cause; later ones come from unwinding.
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

/// The functions of `backtrace` outside the standard library and the simulator, innermost first.
pub(super) fn own_functions(backtrace: &Backtrace) -> Vec<String> {
    let text = backtrace.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let frames = lines.windows(2).filter_map(|pair| {
        let (number, name) = pair[0].split_once(": ")?;
        number.parse::<u32>().ok()?;
        let place = pair[1].strip_prefix("at ")?;
        (!is_foreign(place)).then(|| format!("{} at {place}", without_generics(name)))
    });
    frames.take(REPORTED_FUNCTIONS).collect()
}

/// Whether a place is in the standard library, the waiting primitives or the simulator itself.
fn is_foreign(place: &str) -> bool {
    const FOREIGN: [&str; 11] = [
        "/rustc/",
        "/nptl/",
        "/sysdeps/",
        "base/src/event.rs",
        "base/src/pool_thread.rs",
        "base/src/scheduler.rs",
        "base/src/task.rs",
        "src/simulation/mod.rs",
        "src/simulation/panics.rs",
        "src/simulation/process.rs",
        "src/simulation/scheduler.rs",
    ];
    FOREIGN.iter().any(|part| place.contains(part))
}

fn without_generics(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 => name[..at].trim_end_matches("::"),
        _ => name,
    }
}
