//! `firn cluster scale`: replicas that are pods of a StatefulSet, as many as the load wants.
//!
//! ```text
//!     replica 1 is NAME-0, replica 2 is NAME-1, …
//!
//!     wanted 2, existing 3:   NAME-0 runs   NAME-1 runs   NAME-2 leaves
//! ```
//!
//! A StatefulSet has the pods from 0 to its number of replicas, starts the next one and ends the
//! last one, as [`firn_control::elastic`] decides. It starts a pod again whose process has ended,
//! so nothing here does. A pod that is asked to end gets SIGTERM, and leaves as any replica does.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};
use firn_base::Environment;
use firn_cluster::{PoolError, PoolProcess, ReplicaNames, ReplicaPool, Scaler};
use firn_control::elastic::ElasticSettings;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::stateful_set::{KubernetesError, Scale, StatefulSet};
use super::{MOST, flags, look_after, settings};
use crate::CommandError;
use crate::cluster::{surveyor, which_cluster};

/// Where Kubernetes puts what a pod's service account has.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a pod has to open: a machine may have to be found for it first.
const OPENING_LIMIT: Duration = Duration::from_secs(900);

pub(in crate::cluster) fn command() -> Command {
    let set = Arg::new("stateful_set")
        .long("stateful-set")
        .value_name("NAME")
        .required(true)
        .help("The StatefulSet of the replicas, in the namespace of this pod");
    let account = Arg::new("service_account")
        .long("service-account")
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .default_value(ACCOUNT)
        .help("Where this pod's token, namespace and the API's authority are");
    Command::new("scale")
        .about("In Kubernetes: start and stop replicas of a StatefulSet by their load")
        .args([set, account])
        .args(flags())
        .args(which_cluster())
        .mut_arg(MOST, |most| most.required(true))
}

/// Runs until SIGINT or SIGTERM. The replicas stay.
///
/// # Errors
/// If the cluster, the API or the set are not there.
pub(in crate::cluster) fn run(
    matches: &ArgMatches,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let name: &String = matches.get_one("stateful_set").expect("clap asks for it");
    let account: &PathBuf = matches.get_one("service_account").expect("it has a default");
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    let set = StatefulSet::new(account, &host, &port, name)?;
    let settings = settings(matches)?.expect("clap asks for the most");
    let settings = ElasticSettings { opening_limit: OPENING_LIMIT, ..settings };
    // A wrong name and a missing right are found before anything is done.
    let pool = KubernetesPool { names: ReplicaNames::new(name, 0), scale: set.scale()?, set };
    let mut scaler = Scaler::new(surveyor(matches)?, settings, pool);
    writeln!(out, "firn: looks after the replicas of {name}; Ctrl-C or SIGTERM ends that")?;
    out.flush()?;
    let clock = Environment::system().clock;
    let is_ending = || stop.load(Ordering::Relaxed);
    let (mut obstacle, mut outcome) = (None, Ok(()));
    look_after(&mut scaler, &*clock, is_ending, |scaler, done| {
        let before = std::mem::replace(&mut obstacle, scaler.obstacle().map(str::to_owned));
        // What goes on being in the way is told once.
        let news = obstacle.clone().filter(|_| obstacle != before);
        for line in done.into_iter().chain(news) {
            outcome = writeln!(out, "firn: {line}").and_then(|()| out.flush());
        }
    });
    Ok(outcome?)
}

fn variable(variable: &'static str) -> Result<String, KubernetesError> {
    std::env::var(variable).map_err(|_| KubernetesError::NoPod { variable })
}

/// The pods of a set.
struct KubernetesPool {
    set: StatefulSet,
    names: ReplicaNames,
    /// As it was read last.
    scale: Scale,
}

impl KubernetesPool {
    fn set_wanted(&self, wanted: u32) -> Result<(), PoolError> {
        Ok(self.set.set_wanted(&self.scale, wanted)?)
    }
}

impl ReplicaPool for KubernetesPool {
    fn names(&self) -> ReplicaNames {
        self.names.clone()
    }

    fn replicas(&mut self) -> Result<BTreeMap<u32, PoolProcess>, PoolError> {
        self.scale = self.set.scale()?;
        let wanted = self.scale.wanted;
        let process = |number| match number <= wanted {
            true => (number, PoolProcess::Runs),
            false => (number, PoolProcess::Leaves),
        };
        Ok((1..=wanted.max(self.scale.existing)).map(process).collect())
    }

    fn start(&mut self, number: u32) -> Result<(), PoolError> {
        self.set_wanted(number)
    }

    fn drain(&mut self, number: u32) -> Result<(), PoolError> {
        self.set_wanted(number - 1)
    }

    fn kill(&mut self, number: u32) -> Result<(), PoolError> {
        Ok(self.set.remove_pod(&self.names.name(number))?)
    }

    // The set removes the volume of a pod that it is not to have any more.
    fn forget(&mut self, _number: u32) {}
}

impl From<KubernetesError> for PoolError {
    fn from(error: KubernetesError) -> PoolError {
        PoolError(error.to_string())
    }
}
