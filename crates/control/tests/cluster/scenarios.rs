//! One script, one story. `UPDATE_EXPECT=1 cargo test -p firn-control` writes the output again.

use std::path::Path;

use expect_test::expect_file;

use crate::scenario;

macro_rules! scenarios {
    ($($story:ident)*) => {
        $(
            #[test]
            fn $story() {
                check(stringify!($story));
            }
        )*
    };
}

scenarios! {
    balance
    control_leader_changes
    controls
    database_node_dies
    divide
    divide_given_up
    drain
    flapping
    isolated
    join
    logger_dies
    page_node_dies
    page_node_returns
    replicas_fewer
    requests
    resize
    split
    standby
    switch
    two_deaths
    upgrade
    upgrade_stops
    upgraded_node_stays_away
    zone_lost
}

fn check(story: &str) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/scenarios");
    let path = scripts.join(format!("{story}.txt"));
    #[expect(clippy::disallowed_methods, reason = "the script is a file of the sources")]
    let script = std::fs::read_to_string(&path).expect("the script is there");
    expect_file![path].assert_eq(&scenario::run(&script));
}
