use std::cell::Cell;
use std::time::Duration;

use super::adopt;
use crate::Environment;
use crate::disk::OpenMode;
use crate::event::Event;
use crate::network::{Address, Delivery};
use crate::task::{Spawner, ThreadSpawner};

thread_local! {
    static WAITS: Cell<u32> = const { Cell::new(0) };
}

fn count(wait: &mut dyn FnMut()) {
    WAITS.set(WAITS.get() + 1);
    wait();
}

/// How many waits of `body` a pool's thread hands over.
fn handed_over(body: impl FnOnce() + Send + 'static) -> u32 {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = move || {
        adopt(1 << 20, count);
        body();
        sender.send(WAITS.get()).expect("the test waits");
    };
    assert!(ThreadSpawner.spawn("pooled", Box::new(thread)).join());
    receiver.recv().expect("the thread has sent it")
}

#[test]
fn a_wait_on_an_event_is_handed_over_unless_it_is_over() {
    let wait_for_nobody = || {
        let event = Event::new();
        event.wait(event.listen(), Some(Duration::from_millis(1)));
    };
    assert_eq!(handed_over(wait_for_nobody), 1);
    let come_late = || {
        let event = Event::new();
        let ticket = event.listen();
        event.notify_all();
        assert!(event.wait(ticket, None));
    };
    assert_eq!(handed_over(come_late), 0);
}

#[test]
fn calls_that_wait_for_the_disk_are_handed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let write_and_read = move || {
        let file = Environment::system().disk.open(&path, OpenMode::CreateNew).expect("a file");
        file.write_at(b"snow", 0).expect("room");
        file.sync_data().expect("a disk");
        file.read_at(&mut [0; 4], 0).expect("what was written");
    };
    assert_eq!(handed_over(write_and_read), 3);
}

#[test]
fn waits_for_the_network_are_handed_over() {
    let network = Environment::system().network;
    let nowhere = Address::Tcp(([127, 0, 0, 1], 0).into());
    let listener = network.listen(&nowhere).expect("a port");
    let address = listener.address();
    let listen_in_vain = move || {
        let timeout = Duration::from_secs(10);
        let connection = network.connect(&address, Delivery::InOrder, timeout).expect("a peer");
        let silence = connection.receive(&mut Vec::new(), Some(Duration::from_millis(1)));
        assert!(silence.is_err());
    };
    assert_eq!(handed_over(listen_in_vain), 1);
}

#[test]
fn a_thread_of_the_process_waits_where_it_is() {
    let event = Event::new();
    assert!(!event.wait(event.listen(), Some(Duration::from_millis(1))));
    assert_eq!(WAITS.get(), 0);
}
