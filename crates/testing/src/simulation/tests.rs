use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use firn_base::disk::OpenMode;
use firn_base::event::Event;
use firn_base::task::{sleep, yield_now};
use parking_lot::Mutex;

use super::{
    Cause, Completed, Failure, Killed, Simulation, World, assert_replays, first_failure,
    for_each_crash_point, for_each_seed,
};

const MS: Duration = Duration::from_millis(1);

fn expect_failure<T: std::fmt::Debug>(ended: Result<Completed<T>, Box<Failure>>) -> Failure {
    *ended.expect_err("the run was to fail")
}

/// Tasks that sleep, yield, wait and write, in an order that only the seed determines.
fn lively(world: &World) -> Vec<u64> {
    let order = Arc::new(Mutex::new(Vec::new()));
    let node = world.start("node", &world.new_disk());
    let tasks: Vec<_> = (0..5)
        .map(|number| {
            let order = Arc::clone(&order);
            node.spawn("worker", move |environment| {
                for round in 0..20 {
                    match environment.random.next_u64() % 3 {
                        0 => sleep(MS * (number as u32 + 1)),
                        1 => yield_now(),
                        _ => drop(environment.disk.list("/".as_ref())),
                    }
                    order.lock().push(number * 100 + round);
                }
            })
        })
        .collect();
    tasks.into_iter().for_each(|task| task.join().unwrap());
    let order = order.lock();
    order.clone()
}

#[test]
fn the_same_seed_gives_the_same_turns_and_another_seed_others() {
    let runs = |seed| {
        let run = Simulation::new(seed).try_run(lively).unwrap();
        (run.value, run.trace_hash, run.steps, run.elapsed)
    };
    let mut traces: Vec<u64> = (0..20)
        .map(|seed| {
            let first = runs(seed);
            assert_eq!(first, runs(seed), "seed {seed}");
            first.1
        })
        .collect();
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 20);
}

#[test]
#[should_panic(expected = "differ in steps, time or turns")]
fn a_body_that_depends_on_something_else_than_the_seed_does_not_replay() {
    let runs = AtomicU64::new(0);
    assert_replays(0..3, move |_| {
        (0..runs.fetch_add(1, Ordering::SeqCst)).for_each(|_| yield_now());
    });
}

#[test]
fn some_seed_leaves_a_ready_task_aside_for_long() {
    let hurried = |world: &World| {
        let rounds = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&rounds);
        let reader = world.spawn("reader", move || {
            assert!(counter.load(Ordering::SeqCst) < 1000, "left aside for long");
        });
        for _ in 0..2000 {
            rounds.fetch_add(1, Ordering::SeqCst);
            yield_now();
        }
        reader.join().unwrap();
    };
    let failure = first_failure(0..100, hurried).expect("100 seeds find a long delay");
    assert!(failure.cause.is_panic_with("left aside for long"), "{failure}");
}

#[test]
fn a_task_that_polls_for_another_gets_what_it_waits_for() {
    for_each_seed(0..50, |world| {
        let done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&done);
        world.spawn("setter", move || flag.store(true, Ordering::SeqCst));
        while !done.load(Ordering::SeqCst) {
            yield_now();
        }
    });
}

#[test]
fn time_jumps_to_the_next_timer_when_nobody_is_ready() {
    let run = Simulation::new(1).try_run(|world| {
        let before = world.clock().monotonic();
        world.sleep(Duration::from_secs(3600));
        world.clock().monotonic() - before
    });
    let slept = run.unwrap().value;
    assert!(slept >= Duration::from_secs(3600) && slept < Duration::from_secs(3601), "{slept:?}");
}

#[test]
fn a_poll_of_the_clock_comes_to_its_end() {
    for_each_seed(0..5, |world| {
        let clock = world.clock();
        while clock.monotonic() < MS {
            yield_now();
        }
    });
}

#[test]
fn just_one_task_runs_at_a_time() {
    for_each_seed(0..20, |world| {
        let running = Arc::new(AtomicU64::new(0));
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let running = Arc::clone(&running);
                world.spawn("worker", move || {
                    for _ in 0..50 {
                        assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0);
                        std::hint::black_box((0..100).sum::<u64>());
                        running.fetch_sub(1, Ordering::SeqCst);
                        yield_now();
                    }
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
    });
}

#[test]
fn waits_end_by_notification_or_by_time() {
    for_each_seed(0..20, |world| {
        let event = Arc::new(Event::new());
        let open = Arc::new(AtomicBool::new(false));
        assert!(!event.wait_until(Some(5 * MS), || false));
        let waiter = {
            let (event, open) = (Arc::clone(&event), Arc::clone(&open));
            let condition = move || open.load(Ordering::SeqCst);
            world.spawn("waiter", move || event.wait_until(Some(1000 * MS), condition))
        };
        world.sleep(MS);
        open.store(true, Ordering::SeqCst);
        event.notify_all();
        assert!(waiter.join().unwrap());
    });
}

#[test]
fn each_process_goes_by_its_own_clock() {
    for_each_seed(0..20, |world| {
        let clocks = [-200_000, 0, 100_000].map(|ppm| {
            let process = world.start("node", &world.new_disk());
            process.drift(ppm);
            process
                .run(move |environment| {
                    let began = environment.clock.monotonic();
                    firn_base::task::sleep(1000 * MS);
                    environment.clock.monotonic() - began
                })
                .unwrap()
        });
        for slept in clocks {
            assert!((1000 * MS..1001 * MS).contains(&slept), "{slept:?} by its own clock");
        }
        let process = world.start("node", &world.new_disk());
        let began = process.environment().clock.wall_time_ms();
        process.drift(100_000);
        process.jump(-60_000);
        world.sleep(1000 * MS);
        let passed = began as i64 - process.environment().clock.wall_time_ms() as i64;
        let elapsed_ms = world.clock().monotonic().as_millis() as i64;
        assert!((60_000 - 1_102 - elapsed_ms..=60_000 - 1_100).contains(&passed), "{passed}");
    });
}

#[test]
fn a_race_is_found_and_its_seed_replays_it() {
    let race = |world: &World| {
        let value = Arc::new(AtomicU64::new(0));
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let value = Arc::clone(&value);
                world.spawn("adder", move || {
                    let read = value.load(Ordering::SeqCst);
                    yield_now();
                    value.store(read + 1, Ordering::SeqCst);
                })
            })
            .collect();
        tasks.into_iter().for_each(|task| task.join().unwrap());
        assert_eq!(value.load(Ordering::SeqCst), 2, "an update was lost");
    };
    let found = first_failure(0..50, race).expect("50 seeds find a race of two tasks");
    let again = expect_failure(Simulation::new(found.seed).try_run(race));
    assert!(again.cause.is_panic_with("an update was lost"), "{again}");
    assert_eq!((again.turns, again.at), (found.turns.clone(), found.at));
    assert!(found.to_string().contains(&format!("FIRN_SEED={}", found.seed)));
}

#[test]
fn a_deadlock_tells_who_waits_where() {
    let failure = expect_failure(Simulation::new(3).try_run(|world| {
        let waiter = world.spawn("waiter", || wait_for_what_never_comes(&Event::new()));
        waiter.join()
    }));
    assert_eq!(failure.cause, Cause::Deadlock);
    let report = failure.to_string();
    assert!(report.contains("test#0: waits for task waiter#1"), "{report}");
    assert!(report.contains("waiter#1: waits for event"), "{report}");
    assert!(report.contains("wait_for_what_never_comes"), "{report}");
}

#[inline(never)]
fn wait_for_what_never_comes(event: &Event) {
    assert!(event.wait_until(None, || false));
}

#[test]
fn a_mutex_held_across_a_switch_point_is_a_stall() {
    let failure = expect_failure(Simulation::new(4).try_run(|world| {
        let mutex = Arc::new(Mutex::new(()));
        let held = Arc::clone(&mutex);
        world.spawn("holder", move || {
            let guard = held.lock();
            sleep(10 * MS);
            drop(guard);
        });
        world.sleep(5 * MS);
        drop(mutex.lock());
    }));
    assert!(matches!(failure.cause, Cause::Stall { ref task, asleep: true } if task == "test#0"));
}

#[test]
fn a_loop_without_end_is_found() {
    let run = Simulation::new(5).step_limit(10_000).try_run(|_| {
        loop {
            yield_now();
        }
    });
    let failure = expect_failure(run.map(|run: Completed<()>| run));
    assert_eq!(failure.cause, Cause::Endless { steps: 10_001 });
}

#[test]
fn a_panic_of_any_task_fails_the_run_with_its_words() {
    let failure = expect_failure(Simulation::new(6).try_run(|world| {
        let node = world.start("node", &world.new_disk());
        node.spawn("worker", |_| panic!("the page is torn"));
        world.sleep(MS);
    }));
    assert!(failure.cause.is_panic_with("the page is torn (at "), "{failure}");
    assert!(matches!(failure.cause, Cause::Panic { ref task, .. } if task == "node/worker#1"));
}

#[test]
fn tasks_of_an_environment_are_tasks_of_the_process() {
    for_each_seed(0..10, |world| {
        let node = world.start("node", &world.new_disk());
        let ticks = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&ticks);
        let joined = node.run(move |environment| {
            let body = move || {
                counter.fetch_add(1, Ordering::SeqCst);
            };
            environment.spawner.spawn("ticker", Box::new(body)).join()
        });
        assert_eq!((joined, ticks.load(Ordering::SeqCst)), (Ok(true), 1));
        let endless = node.spawn("opener", |environment| {
            environment.spawner.spawn("endless", Box::new(|| sleep(Duration::MAX))).join()
        });
        world.sleep(MS);
        node.kill();
        assert_eq!(endless.join(), Err(Killed));
    });
}

/// Waits and writes in its destructor, as an engine may.
struct Engine {
    environment: firn_base::Environment,
    dropped: Arc<AtomicU64>,
}

impl Drop for Engine {
    fn drop(&mut self) {
        let event = Event::new();
        event.notify_all();
        assert!(!event.wait_until(Some(Duration::from_secs(1)), || false));
        yield_now();
        assert!(self.environment.disk.open("/x".as_ref(), OpenMode::CreateNew).is_err());
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_crash_unwinds_every_task_and_destructors_do_not_block() {
    for_each_seed(0..20, |world| {
        let disk = world.new_disk();
        let node = world.start("node", &disk);
        let dropped = Arc::new(AtomicU64::new(0));
        for _ in 0..3 {
            let dropped = Arc::clone(&dropped);
            node.spawn("engine", move |environment| {
                let _engine = Engine { environment: environment.clone(), dropped };
                wait_for_what_never_comes(&Event::new());
            });
        }
        world.sleep(MS);
        node.crash();
        assert_eq!(dropped.load(Ordering::SeqCst), 3);
        assert!(disk.files().is_empty());
        assert_eq!(node.run(|_| ()), Err(Killed), "a dead process starts nothing");
        assert_eq!(world.start("node", &disk).run(|_| 7), Ok(7));
    });
}

struct SpinsWhenDropped;

impl Drop for SpinsWhenDropped {
    fn drop(&mut self) {
        while std::hint::black_box(true) {
            yield_now();
        }
    }
}

#[test]
fn a_destructor_that_spins_for_ever_is_given_up() {
    Simulation::new(8).run(|world| {
        let node = world.start("node", &world.new_disk());
        let spinner = node.spawn("spinner", |_| {
            let _spins = SpinsWhenDropped;
            sleep(Duration::MAX);
        });
        world.sleep(MS);
        node.kill();
        assert_eq!(spinner.join(), Err(Killed));
    });
}

#[test]
fn a_task_may_crash_its_own_process() {
    Simulation::new(9).run(|world| {
        let node = Arc::new(world.start("node", &world.new_disk()));
        let own = Arc::clone(&node);
        let suicidal = node.spawn("suicidal", move |_| {
            own.crash();
            unreachable!("the process is dead");
        });
        assert_eq!(suicidal.join(), Err(Killed));
    });
}

#[test]
fn what_is_left_running_ends_with_the_run() {
    let ended = Arc::new(AtomicU64::new(0));
    struct Counts(Arc<AtomicU64>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let counter = Arc::clone(&ended);
    Simulation::new(10).run(move |world| {
        for _ in 0..3 {
            let counts = Counts(Arc::clone(&counter));
            world.spawn("daemon", move || {
                let _counts = counts;
                sleep(Duration::MAX);
            });
        }
        world.sleep(MS);
    });
    assert_eq!(ended.load(Ordering::SeqCst), 3);
}

#[test]
fn a_process_can_be_crashed_at_every_one_of_its_switch_points() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    for_each_crash_point(0..3, move |world, point| {
        let node = world.start("node", &world.new_disk());
        let done = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&done);
        node.spawn("worker", move |_| {
            for _ in 0..5 {
                yield_now();
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        let reached = node.wait_for_switches(point);
        node.crash();
        sink.lock().push((point, reached, done.load(Ordering::SeqCst)));
        reached
    });
    let one_seed = [
        (0, true, 0),
        (1, true, 0),
        (2, true, 1),
        (3, true, 2),
        (4, true, 3),
        (5, true, 4),
        (6, false, 5),
    ];
    assert_eq!(*seen.lock(), one_seed.repeat(3));
}

#[test]
fn a_process_at_rest_reaches_no_further_switch_point() {
    Simulation::new(1).run(|world| {
        let node = world.start("node", &world.new_disk());
        node.spawn("idle", |_| wait_for_what_never_comes(&Event::new()));
        assert!(!node.wait_for_switches(10));
        node.kill();
    });
}
