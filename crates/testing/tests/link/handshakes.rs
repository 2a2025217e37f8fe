//! Who is refused, and that both sides name both sides.

use std::time::Duration;

use firn_base::network::NodeId;
use firn_base::task::sleep;
use firn_link::{CallError, Caller};
use firn_testing::simulation::for_each_seed;

use crate::support::{
    MS, Record, SECOND, WORK, caller_settings, link, node, request, serve, start_server, word,
};

/// The error of a call by a node that the server refuses, and what the server says.
fn refusal(client: (u128, u64), server: (u128, u64)) -> (String, String) {
    let slot = std::sync::Arc::new(parking_lot::Mutex::new(None));
    let out = std::sync::Arc::clone(&slot);
    for_each_seed(0..3, move |world| {
        let record = Record::default();
        let b = world.start("b", &world.new_disk());
        let server = serve(&b, node(server.0, 2, "b", server.1), &record);
        let a = world.start("a", &world.new_disk());
        let caller = link(world, &a, node(client.0, 1, "a", client.1));
        let began = a.environment().clock.monotonic();
        let error = caller.call(WORK, request(1, MS), 60 * SECOND).unwrap_err();
        assert!(matches!(error, CallError::NotSent { .. }), "{error}");
        let took = a.environment().clock.monotonic() - began;
        assert!(took < SECOND, "waiting does not help: {took:?}");
        assert!(record.lock().calls.is_empty());
        *out.lock() = Some((error.to_string(), server.refusals().remove(0)));
    });
    slot.lock().take().unwrap()
}

fn assert_names_both(text: &str) {
    assert!(text.contains("node 1 (a)") && text.contains("node 2 (b)"), "{text}");
}

#[test]
fn a_node_of_another_cluster_is_refused() {
    let (here, there) = refusal((1, 0), (2, 0));
    for text in [here, there] {
        assert_names_both(&text);
        assert!(text.contains("check the address"), "{text}");
    }
}

#[test]
fn a_node_of_an_older_epoch_is_refused_whoever_it_is() {
    for (client, server) in [(4, 5), (5, 4)] {
        let (here, there) = refusal((1, client), (1, server));
        for text in [here, there] {
            assert_names_both(&text);
            assert!(text.contains(&format!("knows epoch {client}")), "{text}");
            assert!(text.contains(&format!("knows epoch {server}")), "{text}");
        }
    }
}

#[test]
fn another_node_than_the_wanted_one_is_refused() {
    for_each_seed(0..3, |world| {
        let (_b, _server) = start_server(world, &Record::default());
        let a = world.start("a", &world.new_disk());
        let mut settings = caller_settings(world);
        settings.wanted = Some(NodeId(9));
        let caller = Caller::new(&a.environment(), node(1, 1, "a", 0), settings);
        let error = caller.call(WORK, request(1, MS), SECOND).unwrap_err().to_string();
        assert_names_both(&error);
        assert!(error.contains("wanted node 9"), "{error}");
    });
}

#[test]
fn a_newer_epoch_ends_the_links_of_the_older_one() {
    for_each_seed(0..20, |world| {
        let record = Record::default();
        let b = world.start("b", &world.new_disk());
        let server_node = node(1, 2, "b", 5);
        let _server = serve(&b, server_node.clone(), &record);
        let a = world.start("a", &world.new_disk());
        let client_node = node(1, 1, "a", 5);
        let caller = link(world, &a, client_node.clone());
        caller.call(WORK, request(1, MS), SECOND).unwrap();
        // Two requests occupy the workers, one waits: it is not executed in the new epoch.
        let begun: Vec<_> = (2..5)
            .map(|number| caller.begin(WORK, request(number, 20 * MS), 60 * SECOND).unwrap())
            .collect();
        sleep(5 * MS);
        server_node.raise_epoch(6);
        // Long before the next message comes.
        let answers: Vec<_> = begun.into_iter().map(firn_link::Call::wait).collect();
        let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
        let refused: Vec<_> = refused.map(|error| error.was_not_executed()).collect();
        assert_eq!(refused, [true], "{answers:?}");
        assert_eq!(record.lock().calls.len(), 3);
        let late = caller.call(WORK, request(5, Duration::ZERO), 60 * SECOND);
        assert!(late.is_err(), "the old epoch was still served");
        assert_eq!(record.lock().calls.len(), 3);
        client_node.raise_epoch(6);
        let reply = (0..100).find_map(|_| {
            sleep(100 * MS);
            caller.call(WORK, request(6, MS), SECOND).ok()
        });
        assert_eq!(word(&reply.unwrap(), 0), 6);
    });
}
