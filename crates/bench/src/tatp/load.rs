//! Tables and their population.

use super::Tatp;
use crate::error::BenchError;
use crate::load::Sink;
use crate::progress::Loading;
use crate::random::Draw;

pub(super) const DEFINITIONS: [&str; 4] = [
    "CREATE TABLE subscriber (
       s_id INT UNSIGNED NOT NULL, sub_nbr VARCHAR(15) NOT NULL,
       bit_1 TINYINT, bit_2 TINYINT, bit_3 TINYINT, bit_4 TINYINT, bit_5 TINYINT,
       bit_6 TINYINT, bit_7 TINYINT, bit_8 TINYINT, bit_9 TINYINT, bit_10 TINYINT,
       hex_1 TINYINT, hex_2 TINYINT, hex_3 TINYINT, hex_4 TINYINT, hex_5 TINYINT,
       hex_6 TINYINT, hex_7 TINYINT, hex_8 TINYINT, hex_9 TINYINT, hex_10 TINYINT,
       byte2_1 SMALLINT, byte2_2 SMALLINT, byte2_3 SMALLINT, byte2_4 SMALLINT, byte2_5 SMALLINT,
       byte2_6 SMALLINT, byte2_7 SMALLINT, byte2_8 SMALLINT, byte2_9 SMALLINT, byte2_10 SMALLINT,
       msc_location INT UNSIGNED, vlr_location INT UNSIGNED,
       PRIMARY KEY (s_id), UNIQUE KEY subscriber_number (sub_nbr))",
    "CREATE TABLE access_info (
       s_id INT UNSIGNED NOT NULL, ai_type TINYINT NOT NULL, data1 SMALLINT, data2 SMALLINT,
       data3 CHAR(3), data4 CHAR(5), PRIMARY KEY (s_id, ai_type))",
    "CREATE TABLE special_facility (
       s_id INT UNSIGNED NOT NULL, sf_type TINYINT NOT NULL, is_active TINYINT NOT NULL,
       error_cntrl SMALLINT, data_a SMALLINT, data_b CHAR(5), PRIMARY KEY (s_id, sf_type))",
    "CREATE TABLE call_forwarding (
       s_id INT UNSIGNED NOT NULL, sf_type TINYINT NOT NULL, start_time TINYINT NOT NULL,
       end_time TINYINT, numberx VARCHAR(15), PRIMARY KEY (s_id, sf_type, start_time))",
];

const PART_SUBSCRIBERS: i64 = 2000;
const CAPITALS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Number of parts, and approximate number of rows: a subscriber has 2.5 access infos, 2.5
/// facilities and 3.75 forwardings.
pub(super) fn size(tatp: &Tatp) -> (usize, u64) {
    let parts = (tatp.subscribers + PART_SUBSCRIBERS - 1) / PART_SUBSCRIBERS;
    (parts as usize, tatp.subscribers as u64 * 39 / 4)
}

/// One to four different kinds out of four.
fn kinds(draw: &mut Draw) -> Vec<i64> {
    let mut kinds = vec![1, 2, 3, 4];
    let keep = draw.between(1, 4) as usize;
    while kinds.len() > keep {
        kinds.remove(draw.between(0, kinds.len() as i64 - 1) as usize);
    }
    kinds
}

pub(super) fn fill(
    tatp: &Tatp,
    part: usize,
    sink: &mut Sink,
    loading: &Loading,
) -> Result<(), BenchError> {
    let mut draw = Draw::new(tatp.seed, part as u64);
    let draw = &mut draw;
    let mut subscribers = sink.rows("subscriber", loading)?;
    let mut accesses = sink.rows("access_info", loading)?;
    let mut facilities = sink.rows("special_facility", loading)?;
    let mut forwardings = sink.rows("call_forwarding", loading)?;
    let first = part as i64 * PART_SUBSCRIBERS + 1;
    for id in first..=tatp.subscribers.min(first + PART_SUBSCRIBERS - 1) {
        subscribers.whole(id).word(&format!("{id:015}"));
        for high in [1, 15, 255] {
            for _ in 0..10 {
                subscribers.whole(draw.between(0, high));
            }
        }
        let location = || i64::from(u32::MAX);
        subscribers.whole(draw.between(1, location())).whole(draw.between(1, location()));
        subscribers.end(sink)?;
        for kind in kinds(draw) {
            accesses.whole(id).whole(kind).whole(draw.between(0, 255)).whole(draw.between(0, 255));
            accesses.word(&draw.drawn_from(CAPITALS, 3)).word(&draw.drawn_from(CAPITALS, 5));
            accesses.end(sink)?;
        }
        for kind in kinds(draw) {
            let is_active = i64::from(draw.percent(85.0));
            facilities.whole(id).whole(kind).whole(is_active).whole(draw.between(0, 255));
            facilities.whole(draw.between(0, 255)).word(&draw.drawn_from(CAPITALS, 5));
            facilities.end(sink)?;
            let mut starts = vec![0, 8, 16];
            for _ in 0..draw.between(0, 3) {
                let start = starts.remove(draw.between(0, starts.len() as i64 - 1) as usize);
                forwardings.whole(id).whole(kind).whole(start);
                forwardings.whole(start + draw.between(1, 8)).word(&draw.digits(15)).end(sink)?;
            }
        }
    }
    for rows in [&mut subscribers, &mut accesses, &mut facilities, &mut forwardings] {
        rows.flush(sink)?;
    }
    Ok(())
}
