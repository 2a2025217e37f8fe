use super::{RandomSource, SplitMix};

#[test]
fn words_are_those_of_the_published_generator() {
    let random = SplitMix::new(1_234_567);
    let words: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
    assert_eq!(
        words,
        [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
    );
}

#[test]
fn sequences_from_entropy_differ() {
    assert_ne!(SplitMix::from_entropy().next_u64(), SplitMix::from_entropy().next_u64());
}
