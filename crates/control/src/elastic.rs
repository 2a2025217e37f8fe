//! How many replicas run: when one more starts, and when one leaves.
//!
//! ```text
//!     observe(now, replicas) ──► Elastic ──► Start · Drain · Kill · Forget
//! ```
//!
//! A pool of machines has the replicas, numbered from 1. Somebody looks at them at a steady rate,
//! tells what was seen, and carries out what is answered. A new machine can take the place of this
//! one at any time: it starts from the replicas that it sees.
//!
//! Rules, cited by number:
//!
//! * L1. *`least ≤ wanted ≤ most`*, whatever is seen, but for L6. Load changes `wanted`, and the
//!   replicas that run are brought to it.
//! * L2. *One thing at a time.* An observation is answered by one command at most. While a replica
//!   opens or leaves, none is started or drained, and the load is not judged.
//! * L3. *Up quickly, down slowly.* One more is wanted when the mean load of `up_after` is above a
//!   target. One less is wanted when, over `down_after`, the rest would have had less than
//!   [`ENOUGH_PERCENT`] of the targets.
//! * L4. *Each change of the replicas that serve restarts both times*, so the next decision rests
//!   on what was measured after the change.
//! * L5. *A replica that has died is replaced*, whatever the load: its death leaves `wanted` as it
//!   is. Each further death doubles the pause before the next start, until one that was started
//!   after it has served for a minute.
//! * L6. *Of a paused cluster, no replica is wanted* ([`crate::pause`]), and of one that wakes,
//!   `least`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

/// A replica leaves if the others then have at most this much of the targets.
pub const ENOUGH_PERCENT: u64 = 80;
/// A replica that was told to leave is killed if it still runs this long after its statements'
/// limit.
const LAST_GRACE: Duration = Duration::from_secs(20);
/// A replica that does not answer for this long is replaced.
const SILENT_LIMIT: Duration = Duration::from_secs(30);
/// The pause after the first death.
const PAUSE: Duration = Duration::from_secs(1);
/// The most times that the pause is doubled.
const MOST_DOUBLINGS: u32 = 6;
/// A replica that has served for this long has not died of its start.
const CALM: Duration = Duration::from_secs(60);

/// What is wanted of the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElasticSettings {
    /// The fewest replicas, at least 1.
    pub least: u32,
    pub most: u32,
    /// How busy a replica's processors should be at most, in percent of all that it has.
    pub processor_percent: u32,
    /// How long a read should take at most, in the mean. `None`: that does not matter.
    pub latency: Option<Duration>,
    /// For how long the load has to be above a target.
    pub up_after: Duration,
    /// For how long it has to be far below the targets.
    pub down_after: Duration,
    /// How long statements may run on at a replica that leaves.
    pub drain_limit: Duration,
    /// A replica that does not open within this time is killed. A pool that has to find a machine
    /// first needs more of it.
    pub opening_limit: Duration,
}

impl Default for ElasticSettings {
    fn default() -> ElasticSettings {
        ElasticSettings {
            least: 1,
            most: 1,
            processor_percent: 60,
            latency: None,
            up_after: Duration::from_secs(5),
            down_after: Duration::from_secs(120),
            drain_limit: Duration::from_secs(30),
            opening_limit: Duration::from_secs(90),
        }
    }
}

/// What a replica has done between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplicaLoad {
    /// How busy its processors were, in thousandths of all that it has.
    pub processor_permille: u32,
    pub reads: u64,
    /// How long these reads took together.
    pub read_us: u64,
}

/// How a replica of the pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Its process runs, and answers no reads yet.
    Opening,
    /// It answers reads. `None`: it was not measured yet.
    Serving(Option<ReplicaLoad>),
    /// It has answered before, and does not now.
    Silent,
    /// It was told to leave, and its process still runs.
    Leaving,
    /// Its process has ended, and the cluster still knows it.
    Ended,
}

/// A replica as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplicaSeen {
    pub number: u32,
    pub condition: Condition,
}

/// What the pool does with one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElasticCommand {
    /// Start a replica of that number, which is free.
    Start(u32),
    /// Let it take no more statements, wait for those that run up to the limit, and end it.
    Drain(u32),
    /// End its process at once.
    Kill(u32),
    /// Take it out of the cluster, and remove its files.
    Forget(u32),
}

/// A command, and why it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElasticDecision {
    pub command: ElasticCommand,
    pub reason: String,
}

/// The load at one look.
#[derive(Debug, Clone, Copy)]
struct Sample {
    at: Duration,
    /// The mean of the replicas.
    processor_permille: u64,
    reads: u64,
    read_us: u64,
}

/// The mean load of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MeanLoad {
    processor_permille: u64,
    read_us: u64,
}

/// Since when a replica has been in a condition.
#[derive(Debug, Clone, Copy)]
struct Since {
    kind: Kind,
    at: Duration,
}

/// A [`Condition`] without figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Opening,
    Serving,
    Silent,
    Leaving,
    Ended,
}

impl Condition {
    fn kind(self) -> Kind {
        match self {
            Condition::Opening => Kind::Opening,
            Condition::Serving(_) => Kind::Serving,
            Condition::Silent => Kind::Silent,
            Condition::Leaving => Kind::Leaving,
            Condition::Ended => Kind::Ended,
        }
    }
}

/// Decides how many replicas run. See the module's page.
#[derive(Debug)]
pub struct Elastic {
    settings: ElasticSettings,
    /// `None` until the first observation.
    wanted: Option<u32>,
    /// See L6.
    is_paused: bool,
    /// Why `wanted` is what it is.
    why: String,
    since: BTreeMap<u32, Since>,
    /// Those that were told to leave, whose end is no death.
    drained: BTreeSet<u32>,
    /// Deaths since a replica has served for [`CALM`] that began after the last of them.
    deaths: u32,
    last_death: Duration,
    /// No replica is started before this.
    rests_until: Duration,
    /// The replicas of the samples, and when the first sample of them was taken.
    measured: Option<(BTreeSet<u32>, Duration)>,
    samples: VecDeque<Sample>,
}

impl Elastic {
    /// `settings` with `most` below `least` mean `least`.
    #[must_use]
    pub fn new(settings: ElasticSettings) -> Elastic {
        let least = settings.least.max(1);
        let most = settings.most.max(least);
        Elastic {
            settings: ElasticSettings { least, most, ..settings },
            wanted: None,
            is_paused: false,
            why: format!("there are {least} at least"),
            since: BTreeMap::new(),
            drained: BTreeSet::new(),
            deaths: 0,
            last_death: Duration::ZERO,
            rests_until: Duration::ZERO,
            measured: None,
            samples: VecDeque::new(),
        }
    }

    /// How many replicas are wanted; the fewest before anything was seen.
    #[must_use]
    pub fn wanted(&self) -> u32 {
        self.wanted.unwrap_or(self.settings.least)
    }

    /// Takes whether the cluster is paused (L6).
    pub fn set_paused(&mut self, is_paused: bool) {
        if std::mem::replace(&mut self.is_paused, is_paused) == is_paused {
            return;
        }
        (self.wanted, self.why) = match is_paused {
            true => (Some(0), "the cluster is paused".to_owned()),
            false => (Some(self.settings.least), "the cluster is awake again".to_owned()),
        };
    }

    /// Takes what was seen at `now`, a time that never goes back, and says what to do, if anything.
    pub fn observe(&mut self, now: Duration, seen: &[ReplicaSeen]) -> Option<ElasticDecision> {
        self.note(now, seen);
        let living = seen.iter().filter(|one| one.condition.kind() != Kind::Ended).count() as u32;
        let (least, most) = (self.settings.least, self.settings.most);
        self.wanted.get_or_insert(living.clamp(least, most));
        if let Some(decision) = self.end_the_dead(now, seen) {
            return Some(decision);
        }
        let is_moving = |one: &ReplicaSeen| {
            matches!(one.condition.kind(), Kind::Opening | Kind::Leaving | Kind::Ended)
        };
        if seen.iter().any(is_moving) {
            return None;
        }
        if living == self.wanted() && !self.is_paused {
            self.judge(now);
        }
        self.bring_to_wanted(now, seen, living)
    }

    /// Remembers since when each replica is as it is, and samples the load.
    fn note(&mut self, now: Duration, seen: &[ReplicaSeen]) {
        let numbers: BTreeSet<u32> = seen.iter().map(|one| one.number).collect();
        self.since.retain(|number, _| numbers.contains(number));
        self.drained.retain(|number| numbers.contains(number));
        for one in seen {
            let kind = one.condition.kind();
            let before = self.since.get(&one.number).map(|since| since.kind);
            if before == Some(kind) {
                continue;
            }
            self.since.insert(one.number, Since { kind, at: now });
            if kind == Kind::Ended && !self.drained.contains(&one.number) {
                self.note_death(now);
            }
        }
        let last_death = self.last_death;
        let is_calm = |since: &Since| {
            since.kind == Kind::Serving && since.at >= last_death && now - since.at >= CALM
        };
        if self.since.values().any(is_calm) {
            self.deaths = 0;
        }
        self.sample(now, seen);
    }

    fn note_death(&mut self, now: Duration) {
        let pause = PAUSE * 2_u32.pow(self.deaths.min(MOST_DOUBLINGS));
        self.rests_until = self.rests_until.max(now.saturating_add(pause));
        self.deaths = self.deaths.saturating_add(1);
        self.last_death = now;
    }

    /// Samples the load if all replicas that take statements were measured (L4).
    fn sample(&mut self, now: Duration, seen: &[ReplicaSeen]) {
        let is_serving = |one: &&ReplicaSeen| one.condition.kind() == Kind::Serving;
        let serving: BTreeSet<u32> = seen.iter().filter(is_serving).map(|one| one.number).collect();
        if self.measured.as_ref().is_none_or(|(measured, _)| *measured != serving) {
            self.measured = None;
            self.samples.clear();
        }
        let loads: Option<Vec<ReplicaLoad>> = seen
            .iter()
            .filter(is_serving)
            .map(|one| match one.condition {
                Condition::Serving(load) => load,
                _ => None,
            })
            .collect();
        let Some(loads) = loads.filter(|loads| !loads.is_empty()) else { return };
        self.measured.get_or_insert((serving, now));
        let sum = |of: fn(&ReplicaLoad) -> u64| loads.iter().map(of).sum::<u64>();
        self.samples.push_back(Sample {
            at: now,
            processor_permille: sum(|load| u64::from(load.processor_permille)) / loads.len() as u64,
            reads: sum(|load| load.reads),
            read_us: sum(|load| load.read_us),
        });
        let longest = self.settings.up_after.max(self.settings.down_after);
        while self.samples.front().is_some_and(|first| now - first.at > longest) {
            self.samples.pop_front();
        }
    }

    /// Those that do not answer in time are ended, and those that have ended are forgotten.
    fn end_the_dead(&mut self, now: Duration, seen: &[ReplicaSeen]) -> Option<ElasticDecision> {
        for ReplicaSeen { number, .. } in seen {
            let since = self.since.get_mut(number)?;
            let waited = now - since.at;
            let leaving_limit = self.settings.drain_limit.saturating_add(LAST_GRACE);
            let (limit, what) = match since.kind {
                Kind::Ended => {
                    let reason = match self.drained.contains(number) {
                        true => "it has left".to_owned(),
                        false => "its process has died".to_owned(),
                    };
                    let command = ElasticCommand::Forget(*number);
                    return Some(ElasticDecision { command, reason });
                }
                Kind::Serving => continue,
                Kind::Opening => (self.settings.opening_limit, "has not opened"),
                Kind::Silent => (SILENT_LIMIT, "has not answered"),
                Kind::Leaving => (leaving_limit, "has not ended"),
            };
            if waited >= limit {
                since.at = now;
                let reason = format!("it {what} for {} s", waited.as_secs());
                return Some(ElasticDecision { command: ElasticCommand::Kill(*number), reason });
            }
        }
        None
    }

    /// Changes how many are wanted by the load (L3).
    fn judge(&mut self, now: Duration) {
        let (wanted, ElasticSettings { least, most, up_after, down_after, .. }) =
            (self.wanted(), self.settings);
        if let Some(mean) = self.mean(now, up_after).filter(|_| wanted < most)
            && let Some(why) = self.above(mean)
        {
            self.wanted = Some(wanted + 1);
            self.why = format!("{why} for {} s", up_after.as_secs());
        } else if let Some(mean) = self.mean(now, down_after).filter(|_| wanted > least)
            && self.is_enough_without_one(mean, wanted)
        {
            self.wanted = Some(wanted - 1);
            self.why = format!(
                "{} would have been enough for {} s: {}",
                wanted - 1,
                down_after.as_secs(),
                mean
            );
        }
    }

    /// The mean load of the last `window`, if these replicas have served for that long.
    fn mean(&self, now: Duration, window: Duration) -> Option<MeanLoad> {
        let (_, first) = self.measured.as_ref()?;
        if now - *first < window {
            return None;
        }
        let samples = || self.samples.iter().filter(|sample| now - sample.at <= window);
        let sum = |of: fn(&Sample) -> u64| samples().map(of).sum::<u64>();
        let count = samples().count() as u64;
        Some(MeanLoad {
            processor_permille: sum(|sample| sample.processor_permille).checked_div(count)?,
            read_us: sum(|sample| sample.read_us)
                .checked_div(sum(|sample| sample.reads))
                .unwrap_or(0),
        })
    }

    /// Which target is exceeded.
    fn above(&self, mean: MeanLoad) -> Option<String> {
        let target = u64::from(self.settings.processor_percent);
        if mean.processor_permille > target * 10 {
            let busy = mean.processor_permille / 10;
            return Some(format!("processors were busy to {busy} % and not {target} %"));
        }
        let latency = self.settings.latency?;
        let is_slow = u128::from(mean.read_us) > latency.as_micros();
        is_slow.then(|| {
            let (took, target) = (Milliseconds(mean.read_us), latency.as_micros() as u64);
            format!("reads took {took} and not {}", Milliseconds(target))
        })
    }

    /// Whether one of `count` replicas can go. The latency that the rest would have is not known,
    /// so it has to be low as it is.
    fn is_enough_without_one(&self, mean: MeanLoad, count: u32) -> bool {
        let (count, target) = (u64::from(count), u64::from(self.settings.processor_percent));
        let of_rest = mean.processor_permille * count / (count - 1).max(1);
        let is_fast = self.settings.latency.is_none_or(|latency| {
            u128::from(mean.read_us) * 100 <= latency.as_micros() * u128::from(ENOUGH_PERCENT)
        });
        of_rest * 10 <= target * ENOUGH_PERCENT && is_fast
    }

    /// Starts or drains one replica, if there are not as many as wanted (L1).
    fn bring_to_wanted(
        &mut self,
        now: Duration,
        seen: &[ReplicaSeen],
        living: u32,
    ) -> Option<ElasticDecision> {
        let wanted = self.wanted();
        let command = if living < wanted {
            if now < self.rests_until {
                return None;
            }
            let is_free = |number: &u32| seen.iter().all(|one| one.number != *number);
            ElasticCommand::Start((1..).find(is_free)?)
        } else if living > wanted {
            let number = seen.iter().map(|one| one.number).max()?;
            self.drained.insert(number);
            ElasticCommand::Drain(number)
        } else {
            return None;
        };
        Some(ElasticDecision { command, reason: self.why.clone() })
    }

    /// How many replicas there are, and under which load, for people.
    #[must_use]
    pub fn summary(&self, now: Duration) -> String {
        let serving = self.since.values().filter(|since| since.kind == Kind::Serving).count();
        let ElasticSettings { least, most, up_after, .. } = self.settings;
        let load = self.mean(now, up_after).map(|mean| format!("; {mean}")).unwrap_or_default();
        let paused = if self.is_paused { "; paused" } else { "" };
        format!("{serving} serving, {} wanted ({least} to {most}){load}{paused}", self.wanted())
    }
}

impl fmt::Display for MeanLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (busy, took) = (self.processor_permille / 10, Milliseconds(self.read_us));
        write!(f, "processors busy to {busy} %, a read takes {took}")
    }
}

/// Microseconds, shown as milliseconds.
struct Milliseconds(u64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{} ms", self.0 / 1000, self.0 % 1000 / 100)
    }
}

#[cfg(test)]
mod tests;
