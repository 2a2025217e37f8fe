use super::Random;

#[test]
fn the_seed_fixes_the_sequence_and_a_fork_is_another_one() {
    let draw = |random: &Random| (0..10).map(|_| random.below(1000)).collect::<Vec<_>>();
    let (first, second) = (Random::new(7), Random::new(7));
    assert_eq!(draw(&first), draw(&second));
    assert_eq!(draw(&first.fork()), draw(&second.fork()));
    assert_ne!(draw(&first.fork()), draw(&first));
}

#[test]
fn every_value_of_a_range_is_drawn_and_none_beyond() {
    let random = Random::new(1);
    let mut seen = [false; 5];
    for _ in 0..200 {
        seen[random.between(10, 14) as usize - 10] = true;
    }
    assert_eq!(seen, [true; 5]);
}

#[test]
fn a_chance_comes_about_as_often_as_it_says() {
    let random = Random::new(2);
    let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
    assert!((2_300..2_700).contains(&hits), "{hits} of 10000");
    assert!(!random.chance(0.0) && random.chance(1.0));
}
