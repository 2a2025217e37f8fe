use parking_lot::Mutex;

use super::*;

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Two workers; each does `per_second` transactions of 1, 2, 3 … ms in each second.
fn measured(per_second: &[u64]) -> Measured {
    let mut measured = Measured::new(vec!["read".into(), "write".into()], 2);
    let recorders = [Mutex::new(Recorder::new(2)), Mutex::new(Recorder::new(2))];
    for (second, count) in per_second.iter().enumerate() {
        for recorder in &recorders {
            for number in 1..=*count {
                let kind = (number % 2) as usize;
                recorder.lock().record(kind, Duration::from_millis(number), number == 1);
            }
        }
        recorders[0].lock().conflict(1, Conflict::Changed);
        measured.collect(recorders.iter(), seconds(second as u64 + 1));
    }
    measured
}

#[test]
fn windows_and_kinds_count_the_same() {
    let measured = measured(&[10, 20, 30]);
    assert_eq!(measured.elapsed, seconds(3));
    assert_eq!(measured.total().transactions(), 120);
    assert_eq!(measured.per_second(), 40.0);
    assert_eq!(measured.kinds[1].fruitless, 6);
    assert_eq!(measured.fruitful_per_second(1), 18.0);
    assert_eq!(measured.kinds[1].conflicts, [0, 0, 3]);
    let counts: Vec<_> =
        measured.windows.iter().map(|window| window.transactions.clone()).collect();
    assert_eq!(counts, [[10, 10], [20, 20], [30, 30]]);
    assert_eq!(measured.windows[1].per_second(), 40.0);
    assert_eq!(measured.windows[1].conflicts, 1);
}

#[test]
fn percentiles_are_those_of_all_samples() {
    let measured = measured(&[100]);
    let total = measured.total();
    for (percent, expected) in [(50.0, 50.0), (95.0, 95.0), (99.0, 99.0), (100.0, 100.0)] {
        let found = total.percentile_ms(percent);
        assert!((found / expected - 1.0).abs() < 0.011, "P{percent}: {found}");
    }
    assert_eq!(measured.windows[0].latency_ms.map(f64::round), [50.0, 95.0, 99.0]);
    assert_eq!(Kind::new().percentile_ms(99.0), 0.0);
}

#[test]
fn jitter_is_that_of_ten_seconds() {
    // Variation within ten seconds does not count.
    let steady = measured(&[5, 15].repeat(10));
    assert_eq!(steady.throughput(seconds(10)), [20.0, 20.0]);
    assert_eq!(steady.jitter(), Some(0.0));
    let mut course = vec![8; 10];
    course.extend([12; 10]);
    course.push(500);
    assert_eq!(measured(&course).jitter(), Some(0.2));
    assert_eq!(measured(&[5; 19]).jitter(), None);
}
