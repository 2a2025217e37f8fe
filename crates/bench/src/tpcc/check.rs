//! The consistency conditions (specification 3.3.2.1 to 3.3.2.12), each a query for violations.
//!
//! Conditions on sums group both sides and join the groups, so that each table is read once.

use crate::client::Target;
use crate::error::BenchError;
use crate::workload::Condition;

/// Condition 11 counts 2100 delivered orders in each district, the state after a load. Here later
/// deliveries count too; each has increased a customer's number of deliveries by one.
const CONDITIONS: [(&str, &str); 12] = [
    (
        "1: W_YTD = sum(D_YTD)",
        "SELECT w_id, w_ytd, total FROM warehouse
         JOIN (SELECT d_w_id, SUM(d_ytd) AS total FROM district GROUP BY d_w_id) d ON d_w_id = w_id
         WHERE w_ytd <> total",
    ),
    (
        "2: D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        "SELECT d_w_id, d_id, d_next_o_id, last_order, last_new FROM district
         JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last_order FROM orders GROUP BY o_w_id, o_d_id) o
           ON o_w_id = d_w_id AND o_d_id = d_id
         LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_new FROM new_order
                    GROUP BY no_w_id, no_d_id) n ON no_w_id = d_w_id AND no_d_id = d_id
         WHERE d_next_o_id - 1 <> last_order OR last_order <> last_new",
    ),
    (
        "3: max(NO_O_ID) - min(NO_O_ID) + 1 = rows in NEW-ORDER",
        "SELECT no_w_id, no_d_id, MAX(no_o_id), MIN(no_o_id), COUNT(*) FROM new_order
         GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    ),
    (
        "4: sum(O_OL_CNT) = rows in ORDER-LINE, by district",
        "SELECT o_w_id, o_d_id, expected, found FROM
           (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS expected FROM orders GROUP BY o_w_id, o_d_id) o
         JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line GROUP BY ol_w_id, ol_d_id) l
           ON ol_w_id = o_w_id AND ol_d_id = o_d_id
         WHERE expected <> found",
    ),
    (
        "5: O_CARRIER_ID is null if and only if there is a row in NEW-ORDER",
        "SELECT o_w_id, o_d_id, o_id, o_carrier_id FROM orders
         LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
         WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    (
        "6: O_OL_CNT = rows in ORDER-LINE, by order",
        "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, found FROM orders
         LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS found FROM order_line
                    GROUP BY ol_w_id, ol_d_id, ol_o_id) l
           ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
         WHERE o_ol_cnt <> COALESCE(found, 0)",
    ),
    (
        "7: OL_DELIVERY_D is null if and only if O_CARRIER_ID is",
        "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line
         JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
         WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        "8: W_YTD = sum(H_AMOUNT)",
        "SELECT w_id, w_ytd, total FROM warehouse
         JOIN (SELECT h_w_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id) h ON h_w_id = w_id
         WHERE w_ytd <> total",
    ),
    (
        "9: D_YTD = sum(H_AMOUNT)",
        "SELECT d_w_id, d_id, d_ytd, total FROM district
         JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id, h_d_id) h
           ON h_w_id = d_w_id AND h_d_id = d_id
         WHERE d_ytd <> total",
    ),
    (
        "10: C_BALANCE = sum(OL_AMOUNT) delivered - sum(H_AMOUNT)",
        "SELECT c_w_id, c_d_id, c_id, c_balance, bought, paid FROM customer
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS bought FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) b
           ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
         LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history
                    GROUP BY h_c_w_id, h_c_d_id, h_c_id) p
           ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
         WHERE c_balance <> COALESCE(bought, 0) - COALESCE(paid, 0)",
    ),
    (
        "11: rows in ORDER - rows in NEW-ORDER = delivered orders, by district",
        "SELECT c_w_id, c_d_id, ordered, waiting, delivered, customers FROM
           (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS delivered, COUNT(*) AS customers FROM customer
            GROUP BY c_w_id, c_d_id) c
         JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS ordered FROM orders GROUP BY o_w_id, o_d_id) o
           ON o_w_id = c_w_id AND o_d_id = c_d_id
         LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS waiting FROM new_order
                    GROUP BY no_w_id, no_d_id) n ON no_w_id = c_w_id AND no_d_id = c_d_id
         WHERE ordered - COALESCE(waiting, 0) <> customers * 7 DIV 10 + delivered",
    ),
    (
        "12: C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT) delivered",
        "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, bought FROM customer
         LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS bought FROM orders
                    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
                    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) b
           ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
         WHERE c_balance + c_ytd_payment <> COALESCE(bought, 0)",
    ),
];

pub(crate) fn check(target: &Target) -> Result<Vec<Condition>, BenchError> {
    let mut session = target.connect()?;
    let ask = |(name, sql): &(&str, &str)| Condition::ask(&mut session, name, sql);
    CONDITIONS.iter().map(ask).collect()
}
