use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn draws_stay_in_their_range(seed: u64, low in -1000i64..1000, span in 0i64..1000) {
        let mut draw = Draw::new(seed, 1);
        for _ in 0..50 {
            let number = draw.between(low, low + span);
            prop_assert!((low..=low + span).contains(&number));
        }
    }

    #[test]
    fn non_uniform_draws_stay_in_their_range(seed: u64, c in 0i64..=255, high in 0i64..5000) {
        let mut draw = Draw::new(seed, 1);
        for _ in 0..50 {
            prop_assert!((1..=1 + high).contains(&draw.non_uniform(255, c, 1, 1 + high)));
        }
    }

    #[test]
    fn ranks_stay_below_their_number(seed: u64, count in 1u64..3000) {
        let zipfian = Zipfian::new(count, ZIPFIAN_THETA);
        let mut draw = Draw::new(seed, 1);
        for _ in 0..50 {
            prop_assert!(zipfian.draw(&mut draw) < count);
        }
    }

    #[test]
    fn a_distribution_that_has_grown_is_the_larger_one(first in 1u64..500, more in 0u64..500) {
        let mut grown = Zipfian::new(first, ZIPFIAN_THETA);
        grown.grow(first + more);
        let large = Zipfian::new(first + more, ZIPFIAN_THETA);
        prop_assert!((grown.zeta - large.zeta).abs() < 1e-9);
        prop_assert!(first + more <= 2 || (grown.eta - large.eta).abs() < 1e-9);
    }
}

#[test]
fn the_same_seed_gives_the_same_draws() {
    let words = |seed, part| {
        let mut draw = Draw::new(seed, part);
        [draw.word(), draw.word()]
    };
    assert_eq!(words(7, 1), words(7, 1));
    assert_ne!(words(7, 1), words(7, 2));
    assert_ne!(words(7, 1), words(8, 1));
}

#[test]
fn uniform_draws_are_even() {
    let mut draw = Draw::new(1, 0);
    let mut counts = [0; 10];
    for _ in 0..100_000 {
        counts[draw.between(0, 9) as usize] += 1;
    }
    assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
}

#[test]
fn weights_are_kept() {
    let mut draw = Draw::new(1, 0);
    let mut counts = [0; 3];
    for _ in 0..100_000 {
        counts[draw.weighted(&[80, 0, 20])] += 1;
    }
    assert_eq!(counts[1], 0);
    assert!((79_000..81_000).contains(&counts[0]), "{counts:?}");
}

/// Combining two draws favours numbers with many bits set: the top twentieth of the values gets
/// several times its share.
#[test]
fn non_uniform_draws_have_favourites() {
    let mut draw = Draw::new(1, 0);
    let mut counts = vec![0u32; 3000];
    for _ in 0..300_000 {
        counts[(draw.non_uniform(1023, 259, 1, 3000) - 1) as usize] += 1;
    }
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let top: u32 = counts[..150].iter().sum();
    assert!(top > 300_000 / 20 * 4, "{top}");
    assert!(counts.iter().filter(|count| **count > 0).count() > 2_500);
}

#[test]
fn zipfian_ranks_come_as_often_as_they_should() {
    let (count, draws) = (1000, 200_000);
    let zipfian = Zipfian::new(count, ZIPFIAN_THETA);
    let mut draw = Draw::new(1, 0);
    let mut counts = vec![0u32; count as usize];
    for _ in 0..draws {
        counts[zipfian.draw(&mut draw) as usize] += 1;
    }
    for rank in [0, 1] {
        let expected = f64::from(draws) / (rank as f64 + 1.0).powf(ZIPFIAN_THETA) / zipfian.zeta;
        let share = f64::from(counts[rank]) / expected;
        assert!((0.95..1.05).contains(&share), "rank {rank}: {share}");
    }
    let top: u32 = counts[..100].iter().sum();
    let expected = zeta(0, 100, ZIPFIAN_THETA) / zipfian.zeta;
    assert!((f64::from(top) / f64::from(draws) / expected - 1.0).abs() < 0.05);
}

#[test]
fn waiting_times_have_their_mean() {
    let mut draw = Draw::new(1, 0);
    let times: Vec<f64> = (0..100_000).map(|_| draw.exponential(12.0)).collect();
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    assert!((11.8..12.2).contains(&mean), "{mean}");
    assert!(times.iter().all(|time| (0.0..=120.0).contains(time)));
}

#[test]
fn texts_are_of_their_alphabet() {
    let mut draw = Draw::new(1, 0);
    let text = draw.alphanumeric(10, 20);
    assert!(
        (10..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    );
    let digits = draw.digits(16);
    assert!(digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_digit()));
}
