//! Replicas that start and leave by themselves: the settings, and the loop that looks at them.
//!
//! * [`local`]: processes of this machine, with `firn cluster start`;
//! * [`kubernetes`]: pods of a StatefulSet, with `firn cluster scale`;
//! * [`stateful_set`]: what Kubernetes says of such a set, and is told.

mod kubernetes;
mod local;
mod stateful_set;

use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{Arg, ArgMatches, value_parser};
use firn_base::clock::Clock;
use firn_base::task::sleep;
use firn_cluster::{ReplicaPool, Scaler};
use firn_control::elastic::ElasticSettings;

pub(super) use kubernetes::{command, run};
pub(super) use local::{ElasticReplicas, status};
pub(crate) use stateful_set::KubernetesError;

use super::local::LOOK_INTERVAL;
use crate::CommandError;

/// How often the replicas are looked at.
const TURN: Duration = Duration::from_secs(1);
/// The flag that has replicas start and leave.
const MOST: &str = "most_replicas";
const LEAST: &str = "least_replicas";

/// The flags, of which the first one turns it on.
pub(super) fn flags() -> Vec<Arg> {
    let number = |name: &'static str, value_name: &'static str, range: RangeInclusive<u32>| {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        let arg = Arg::new(name).long(name.replace('_', "-")).value_name(value_name);
        arg.value_parser(value_parser!(u32).range(range))
    };
    let further = |name, value_name, range, default: &'static str| {
        number(name, value_name, range).requires(MOST).default_value(default)
    };
    vec![
        number(MOST, "NUMBER", 1..=32)
            .help("Start and stop replicas by their load, up to so many, besides others"),
        further(LEAST, "NUMBER", 1..=32, "1").help("How many of these replicas there always are"),
        further("replica_processor_percent", "PERCENT", 1..=100, "60").help(
            "Start one more replica when they are busier than this, in percent of all processors",
        ),
        number("replica_latency_ms", "MILLISECONDS", 1..=60_000)
            .requires(MOST)
            .help("Start one more replica when a read takes longer than this in the mean"),
        further("scale_up_seconds", "SECONDS", 1..=3600, "5")
            .help("For how long that has to be so until one more is started"),
        further("scale_down_seconds", "SECONDS", 1..=86_400, "120")
            .help("For how long one less would have to be enough until one leaves"),
        further("replica_drain_seconds", "SECONDS", 0..=86_400, "30")
            .help("How long statements may run on at a replica that leaves"),
    ]
}

/// What the flags say, if they ask that replicas start and leave.
///
/// # Errors
/// If the least is above the most.
pub(super) fn settings(matches: &ArgMatches) -> Result<Option<ElasticSettings>, CommandError> {
    let number = |name: &str| matches.get_one::<u32>(name).copied();
    let Some(most) = number(MOST) else { return Ok(None) };
    let given = |name| number(name).expect("it has a default");
    let seconds = |name| Duration::from_secs(u64::from(given(name)));
    let least = given(LEAST);
    if least > most {
        return Err(CommandError::Usage(format!(
            "--least-replicas {least} is above --most-replicas {most}"
        )));
    }
    let latency = number("replica_latency_ms");
    Ok(Some(ElasticSettings {
        least,
        most,
        processor_percent: given("replica_processor_percent"),
        latency: latency.map(|latency| Duration::from_millis(u64::from(latency))),
        up_after: seconds("scale_up_seconds"),
        down_after: seconds("scale_down_seconds"),
        drain_limit: seconds("replica_drain_seconds"),
        ..ElasticSettings::default()
    }))
}

/// Looks at the replicas until it is told to end. After each look, `tell` takes what was done, if
/// anything was.
fn look_after<P: ReplicaPool>(
    scaler: &mut Scaler<P>,
    clock: &dyn Clock,
    is_ending: impl Fn() -> bool,
    mut tell: impl FnMut(&Scaler<P>, Option<String>),
) {
    while !is_ending() {
        let now = clock.monotonic();
        let done = scaler.turn(now);
        tell(scaler, done);
        while !is_ending() && clock.monotonic().saturating_sub(now) < TURN {
            sleep(LOOK_INTERVAL);
        }
    }
}
