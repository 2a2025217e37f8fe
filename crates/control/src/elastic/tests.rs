//! Stories of replicas under load: what runs, second by second.

use super::*;

/// A pool whose machines start a replica in three seconds and end one in two, looked at once a
/// second.
struct Run {
    elastic: Elastic,
    now: u64,
    replicas: BTreeMap<u32, Simulated>,
    /// What was commanded, with the second.
    commands: Vec<(u64, ElasticCommand)>,
    reasons: Vec<String>,
    /// Whether new replicas end before they serve.
    are_starts_bad: bool,
    /// The load of all reads, in thousandths of one replica's processors.
    work: u32,
    latency_ms: u64,
}

#[derive(Debug, Clone, Copy)]
enum Simulated {
    OpenAt(u64),
    Serving,
    Silent,
    EndedAt(u64),
}

const OPENS_IN: u64 = 3;
const ENDS_IN: u64 = 2;

fn settings() -> ElasticSettings {
    let seconds = Duration::from_secs;
    ElasticSettings {
        least: 1,
        most: 3,
        processor_percent: 50,
        latency: None,
        up_after: seconds(5),
        down_after: seconds(60),
        drain_limit: seconds(30),
        opening_limit: seconds(90),
    }
}

impl Run {
    fn new(settings: ElasticSettings) -> Run {
        Run {
            elastic: Elastic::new(settings),
            now: 0,
            replicas: BTreeMap::new(),
            commands: Vec::new(),
            reasons: Vec::new(),
            are_starts_bad: false,
            work: 0,
            latency_ms: 1,
        }
    }

    /// A run whose first replicas serve.
    fn with(settings: ElasticSettings, replicas: u32) -> Run {
        let mut run = Run::new(settings);
        run.replicas = (1..=replicas).map(|number| (number, Simulated::Serving)).collect();
        run
    }

    fn condition(&self, replica: Simulated) -> Condition {
        match replica {
            Simulated::OpenAt(at) if self.now < at => Condition::Opening,
            Simulated::OpenAt(_) if self.are_starts_bad => Condition::Ended,
            Simulated::Silent => Condition::Silent,
            Simulated::EndedAt(at) if self.now < at => Condition::Leaving,
            Simulated::EndedAt(_) => Condition::Ended,
            Simulated::OpenAt(_) | Simulated::Serving => {
                let reads = 100;
                Condition::Serving(Some(ReplicaLoad {
                    processor_permille: (self.work / self.serving()).min(1000),
                    reads,
                    read_us: reads * self.latency_ms * 1000,
                }))
            }
        }
    }

    /// How many replicas share the work.
    fn serving(&self) -> u32 {
        let serves = |replica: &&Simulated| match replica {
            Simulated::OpenAt(at) => *at <= self.now && !self.are_starts_bad,
            Simulated::Serving => true,
            Simulated::Silent | Simulated::EndedAt(_) => false,
        };
        self.replicas.values().filter(serves).count() as u32
    }

    fn second(&mut self) {
        self.now += 1;
        let seen = self.replicas.iter().map(|(number, replica)| ReplicaSeen {
            number: *number,
            condition: self.condition(*replica),
        });
        let seen: Vec<_> = seen.collect();
        let decision = self.elastic.observe(Duration::from_secs(self.now), &seen);
        let (least, most) = (self.elastic.settings.least, self.elastic.settings.most);
        let wanted = self.elastic.wanted();
        assert!((least..=most).contains(&wanted) || (self.elastic.is_paused && wanted == 0), "L1");
        if let Some(ElasticDecision { command, reason }) = decision {
            self.commands.push((self.now, command));
            self.reasons.push(reason);
            self.carry_out(command);
        }
    }

    fn carry_out(&mut self, command: ElasticCommand) {
        match command {
            ElasticCommand::Start(number) => {
                let opens = Simulated::OpenAt(self.now + OPENS_IN);
                assert!(self.replicas.insert(number, opens).is_none(), "the number is free");
            }
            ElasticCommand::Drain(number) => {
                self.replicas.insert(number, Simulated::EndedAt(self.now + ENDS_IN));
            }
            ElasticCommand::Kill(number) => {
                self.replicas.insert(number, Simulated::EndedAt(self.now));
            }
            ElasticCommand::Forget(number) => {
                self.replicas.remove(&number);
            }
        }
    }

    /// Lets seconds pass under that work; returns what was commanded meanwhile.
    fn seconds(&mut self, count: u64, work: u32) -> Vec<ElasticCommand> {
        self.work = work;
        let before = self.commands.len();
        (0..count).for_each(|_| self.second());
        self.commands[before..].iter().map(|(_, command)| *command).collect()
    }
}

use ElasticCommand::{Drain, Forget, Kill, Start};

#[test]
fn the_fewest_replicas_start_one_after_the_other() {
    let mut run = Run::new(ElasticSettings { least: 2, ..settings() });
    assert_eq!(run.seconds(20, 0), [Start(1), Start(2)]);
    let at: Vec<u64> = run.commands.iter().map(|(at, _)| *at).collect();
    assert!(at[1] - at[0] >= OPENS_IN, "the second one waits until the first one serves");
    assert_eq!(run.seconds(1000, 0), [], "there are not fewer than that");
}

#[test]
fn load_above_the_target_for_a_while_starts_one_more() {
    let mut run = Run::with(settings(), 1);
    run.seconds(10, 300);
    assert_eq!(run.seconds(3, 600), [], "a moment of load is no reason");
    run.seconds(10, 300);
    assert_eq!(run.seconds(10, 900), [Start(2)]);
    assert_eq!(run.reasons, ["processors were busy to 60 % and not 50 % for 5 s"]);
    assert_eq!(run.seconds(1000, 900), [], "two of them are enough");
}

#[test]
fn there_are_never_more_than_the_most() {
    let mut run = Run::with(settings(), 1);
    assert_eq!(run.seconds(1000, 100_000), [Start(2), Start(3)]);
    // Each was judged by what came after the one before (L4).
    let at: Vec<u64> = run.commands.iter().map(|(at, _)| *at).collect();
    assert!(at[1] - at[0] >= OPENS_IN + 5, "{at:?}");
}

#[test]
fn a_paused_cluster_has_no_replicas_and_one_that_wakes_has_the_fewest() {
    let mut run = Run::with(settings(), 2);
    run.seconds(10, 900);
    run.elastic.set_paused(true);
    let leaves = [Drain(2), Forget(2), Drain(1), Forget(1)];
    assert_eq!(run.seconds(20, 0), leaves);
    assert_eq!(run.reasons[0], "the cluster is paused");
    assert_eq!(run.seconds(1000, 0), []);
    run.elastic.set_paused(false);
    assert_eq!(run.seconds(20, 0), [Start(1)]);
    assert_eq!(run.reasons.last().unwrap(), "the cluster is awake again");
}

#[test]
fn replicas_leave_slowly_when_the_load_is_gone() {
    let mut run = Run::with(settings(), 3);
    assert_eq!(run.seconds(59, 30), []);
    assert_eq!(run.seconds(10, 30), [Drain(3), Forget(3)]);
    assert_eq!(
        run.reasons[0],
        "2 would have been enough for 60 s: processors busy to 1 %, a read takes 1.0 ms"
    );
    assert_eq!(run.reasons[1], "it has left");
    assert_eq!(run.seconds(50, 30), [], "the time starts again");
    assert_eq!(run.seconds(20, 30), [Drain(2), Forget(2)]);
    assert_eq!(run.seconds(1000, 0), [], "the last one stays");
}

#[test]
fn a_replica_stays_that_the_rest_would_miss() {
    let mut run = Run::with(settings(), 2);
    // One alone would be busy to 45 %, which is below the target and not far enough below it.
    assert_eq!(run.seconds(1000, 450), []);
    assert_eq!(run.seconds(100, 390), [Drain(2), Forget(2)]);
    assert_eq!(run.seconds(1000, 390), [], "and it is enough");
}

#[test]
fn load_that_comes_and_goes_moves_nothing() {
    for start in [1, 2] {
        let mut run = Run::with(settings(), start);
        for _ in 0..100 {
            assert_eq!(run.seconds(2, 900), []);
            assert_eq!(run.seconds(4, 200), []);
        }
    }
}

#[test]
fn waves_of_load_are_followed_up_and_not_down() {
    let mut run = Run::with(settings(), 1);
    for _ in 0..20 {
        run.seconds(30, 900);
        run.seconds(30, 50);
    }
    let commands: Vec<_> = run.commands.iter().map(|(_, command)| *command).collect();
    assert_eq!(commands, [Start(2)], "a minute is too short for one to leave");
}

#[test]
fn slow_reads_start_one_more_and_keep_it() {
    let latency = Some(Duration::from_millis(10));
    let mut run = Run::with(ElasticSettings { latency, ..settings() }, 1);
    run.latency_ms = 12;
    assert_eq!(run.seconds(10, 10), [Start(2)]);
    assert_eq!(run.reasons, ["reads took 12.0 ms and not 10.0 ms for 5 s"]);
    run.latency_ms = 9;
    assert_eq!(run.seconds(1000, 10), [], "still close to the target");
    run.latency_ms = 2;
    assert_eq!(run.seconds(100, 10), [Drain(2), Forget(2)]);
}

#[test]
fn a_time_without_reads_has_no_latency() {
    let latency = Some(Duration::from_millis(10));
    let mut elastic = Elastic::new(ElasticSettings { latency, ..settings() });
    for second in 0..100 {
        let condition = Condition::Serving(Some(ReplicaLoad::default()));
        let seen = [1, 2].map(|number| ReplicaSeen { number, condition });
        if let Some(decision) = elastic.observe(Duration::from_secs(second), &seen) {
            assert_eq!((decision.command, second), (Drain(2), 60));
            return;
        }
    }
    panic!("nothing is decided");
}

#[test]
fn a_dead_replica_is_replaced_whatever_the_load() {
    let mut run = Run::with(settings(), 2);
    run.seconds(10, 600);
    run.replicas.insert(1, Simulated::EndedAt(0));
    assert_eq!(run.seconds(10, 600), [Forget(1), Start(1)]);
    assert_eq!(run.reasons[0], "its process has died");
    assert_eq!(run.seconds(1000, 600), []);
    run.replicas.clear();
    assert_eq!(run.seconds(20, 600), [Start(1), Start(2)], "both at once, and nobody saw it");
}

#[test]
fn a_silent_replica_is_killed_and_replaced() {
    let mut run = Run::with(settings(), 2);
    run.seconds(10, 0);
    run.replicas.insert(2, Simulated::Silent);
    assert_eq!(run.seconds(20, 0), [], "it may come back");
    run.replicas.insert(2, Simulated::Serving);
    assert_eq!(run.seconds(20, 0), []);
    run.replicas.insert(2, Simulated::Silent);
    assert_eq!(run.seconds(40, 0), [Kill(2), Forget(2), Start(2)]);
}

#[test]
fn replicas_that_die_of_their_start_are_started_more_and_more_rarely() {
    let mut run = Run::new(settings());
    run.are_starts_bad = true;
    let starts = |commands: &[ElasticCommand]| {
        commands.iter().filter(|command| matches!(command, Start(_))).count()
    };
    let early = starts(&run.seconds(60, 0));
    assert!((5..=7).contains(&early), "{early}");
    let late = starts(&run.seconds(600, 0));
    assert!((7..=10).contains(&late), "{late}");
    // The first one that goes well is enough, and its later death counts as the first.
    run.are_starts_bad = false;
    run.seconds(200, 0);
    assert_eq!(run.serving(), 1);
    run.replicas.insert(1, Simulated::EndedAt(0));
    assert_eq!(run.seconds(5, 0), [Forget(1), Start(1)]);
}

#[test]
fn one_that_serves_does_not_excuse_the_deaths_of_another() {
    let mut run = Run::with(ElasticSettings { least: 2, ..settings() }, 1);
    run.are_starts_bad = true;
    let commands = run.seconds(660, 0);
    let starts = commands.iter().filter(|command| matches!(command, Start(2))).count();
    assert!((12..=18).contains(&starts), "{starts}");
}

#[test]
fn a_replica_that_does_not_open_is_replaced() {
    let mut run = Run::new(settings());
    run.seconds(1, 0);
    run.replicas.insert(1, Simulated::OpenAt(u64::MAX));
    assert_eq!(run.seconds(89, 0), []);
    assert_eq!(run.seconds(10, 0), [Kill(1), Forget(1), Start(1)]);
}

#[test]
fn a_replica_that_does_not_leave_is_killed() {
    let mut run = Run::with(settings(), 2);
    assert_eq!(run.seconds(61, 0), [Drain(2)]);
    run.replicas.insert(2, Simulated::EndedAt(u64::MAX));
    assert_eq!(run.seconds(49, 0), [], "its statements have 30 s, and its end 20 s");
    assert_eq!(run.seconds(10, 0), [Kill(2), Forget(2)], "which is no death: none is started");
    assert_eq!(run.seconds(100, 0), []);
}

#[test]
fn load_that_comes_back_while_one_leaves_is_answered_after_that() {
    let mut run = Run::with(settings(), 2);
    assert_eq!(run.seconds(61, 0), [Drain(2)]);
    assert_eq!(run.seconds(20, 900), [Forget(2), Start(2)]);
    let at: Vec<u64> = run.commands.iter().map(|(at, _)| *at).collect();
    assert!(at[2] - at[0] > 5, "{at:?}");
}

#[test]
fn one_that_begins_anew_takes_what_runs() {
    let mut run = Run::with(settings(), 3);
    assert_eq!(run.seconds(50, 1200), []);
    assert_eq!(run.elastic.wanted(), 3);
    // With other limits.
    run.elastic = Elastic::new(ElasticSettings { most: 2, ..settings() });
    assert_eq!(run.seconds(10, 1200), [Drain(3), Forget(3)]);
    run.elastic = Elastic::new(ElasticSettings { least: 3, ..settings() });
    assert_eq!(run.seconds(10, 0), [Start(3)]);
    // Its own half-done work.
    run.replicas.insert(2, Simulated::EndedAt(0));
    run.elastic = Elastic::new(settings());
    assert_eq!(run.seconds(10, 0), [Forget(2)]);
}

/// Any load, and replicas that die and come back at any time: the limits hold, and calm follows.
#[test]
fn whatever_happens_the_limits_hold() {
    for seed in 1..200_u64 {
        let mut run = Run::new(ElasticSettings { least: 2, most: 4, ..settings() });
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let (count, work) = (1 + draw(8), draw(4000) as u32);
            run.seconds(count, work);
            assert!(run.replicas.len() <= 4, "seed {seed}");
            let number = 1 + draw(12) as u32;
            if run.replicas.contains_key(&number) {
                let fate = [Simulated::Silent, Simulated::EndedAt(0), Simulated::Serving];
                run.replicas.insert(number, fate[draw(3) as usize]);
            }
        }
        run.are_starts_bad = false;
        run.seconds(1000, 0);
        assert_eq!((run.replicas.len(), run.serving()), (2, 2), "seed {seed}");
    }
}
