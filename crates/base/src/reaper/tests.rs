use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{ThreadId, current};
use std::time::Duration;

use super::{MOST_WAITING, Reaper, drop_aside};
use crate::event::Event;
use crate::scheduler::{Scheduler, install_scheduler};

/// Tells which thread dropped it.
struct Tells(Sender<(ThreadId, Option<String>)>);

impl Drop for Tells {
    fn drop(&mut self) {
        let thread = current();
        // A test that has failed does not listen.
        let _ = self.0.send((thread.id(), thread.name().map(str::to_owned)));
    }
}

/// Its drop ends when the other side of the channel is dropped.
struct Blocks(Receiver<()>);

impl Drop for Blocks {
    fn drop(&mut self) {
        let _ = self.0.recv();
    }
}

fn leaked() -> &'static Reaper {
    Box::leak(Box::new(Reaper::new()))
}

#[test]
fn one_named_thread_drops_all_objects() {
    let (told, dropped) = channel();
    (0..100).for_each(|_| drop_aside(Tells(told.clone())));
    let all: Vec<_> = (0..100).map(|_| dropped.recv().unwrap()).collect();
    let elsewhere: Vec<_> = all.iter().filter(|(id, _)| *id != current().id()).collect();
    assert!(!elsewhere.is_empty());
    assert!(elsewhere.iter().all(|one| **one == *elsewhere[0]), "{elsewhere:?}");
    assert_eq!(elsewhere[0].1.as_deref(), Some("reaper"));
}

#[test]
fn the_caller_drops_when_many_objects_wait() {
    let reaper = leaked();
    let (go_on, blocks) = channel();
    reaper.take(Box::new(Blocks(blocks)));
    let (told, dropped) = channel();
    // The blocking object may still be among those that wait.
    (0..=MOST_WAITING).for_each(|_| reaper.take(Box::new(Tells(told.clone()))));
    assert_eq!(dropped.recv().unwrap().0, current().id());
    drop(go_on);
    let others = (0..MOST_WAITING - 1).map(|_| dropped.recv().unwrap());
    let elsewhere = others.filter(|(id, _)| *id != current().id()).count();
    assert!(elsewhere >= MOST_WAITING - 2, "{elsewhere}");
}

#[test]
fn an_object_may_have_others_dropped() {
    struct Nested(Option<Tells>);
    impl Drop for Nested {
        fn drop(&mut self) {
            drop_aside(self.0.take());
        }
    }
    let (told, dropped) = channel();
    drop_aside(Nested(Some(Tells(told))));
    assert_eq!(dropped.recv().unwrap().1.as_deref(), Some("reaper"));
}

struct Still;

impl Scheduler for Still {
    fn wait(&self, _key: usize, _timeout: Option<Duration>) -> bool {
        false
    }
    fn wake_all(&self, _key: usize) {}
    fn wake_one(&self, _key: usize) {}
    fn yield_now(&self) {}
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

#[test]
fn a_simulated_task_drops_its_objects_itself() {
    let (told, dropped) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            install_scheduler(Some(Arc::new(Still)));
            let own = current().id();
            drop_aside(Tells(told));
            assert_eq!(dropped.try_recv().unwrap().0, own);
            Event::new().notify_all();
            install_scheduler(None);
        });
    });
}
