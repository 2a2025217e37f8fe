//! Redundant parentheses: `((((a))))` is parsed as `(a)`, so the stack does not limit how many
//! there are. MySQL accepts between 30,000 and 60,000, depending on its parser's memory; more than
//! the greater number are refused here too.
//!
//! ```text
//!   (  (  (  a  +  (  b  )  )  )  )
//!   │  │  └──────────────────┘  │  │     each pair directly within the next is needless
//!   │  └────────────────────────┘  │     beside the outermost one
//!   └──────────────────────────────┘
//! ```

use firn_sql_types::error::{Result, SqlError};

use super::super::lexer::Kind;
use super::{Parser, query};

/// Fewer parentheses in a row are parsed recursively, without looking for their closing ones.
const FEW: usize = 8;
/// More redundant parentheses than any MySQL accepts.
const TOO_MANY: usize = 60_000;

/// How many parentheses are directly inside the current one, each closed directly before it.
///
/// # Errors
/// 1317 or 3024 if the statement must end; 1436 if there are [`TOO_MANY`].
pub(super) fn needless_parentheses(parser: &mut Parser<'_>) -> Result<usize> {
    let opens = |ahead: usize| parser.kind_at(ahead) == Kind::LeftParen;
    if !(0..FEW).all(opens) {
        return Ok(0);
    }
    match_parentheses(parser)?;
    let closed_at = |opened_at: usize| parser.closing[opened_at];
    let outermost = closed_at(parser.at);
    let is_needless = |count: &usize| {
        let opened_at = parser.at + count;
        parser.tokens[opened_at].kind == Kind::LeftParen
            && u64::from(closed_at(opened_at)) + *count as u64 == u64::from(outermost)
    };
    let needless = (1..).take_while(is_needless).count();
    if needless > TOO_MANY {
        let message = format!("{needless} parentheses stand in each other; leave them out");
        return Err(SqlError::too_complex(message));
    }
    Ok(needless)
}

/// Where the outermost of some parentheses in a row is closed, if the innermost ones only group an
/// expression.
///
/// # Errors
/// 1317 or 3024 if the statement must end.
pub(super) fn end_of_grouping(parser: &mut Parser<'_>, count: usize) -> Result<Option<usize>> {
    match_parentheses(parser)?;
    let end = parser.closing[parser.at] as usize;
    Ok((end > 0 && parser.grouping[parser.at + count - 1]).then_some(end))
}

/// Records for all tokens the token that closes them (0 for those that open nothing, or are never
/// closed), and for those from here on whether they only group.
fn match_parentheses(parser: &mut Parser<'_>) -> Result<()> {
    if !parser.closing.is_empty() {
        return Ok(());
    }
    parser.watch.steps(parser.tokens.len())?;
    let mut closing = vec![0; parser.tokens.len()];
    let mut grouping = vec![true; parser.tokens.len()];
    let mut begins_query = vec![false; parser.tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, token) in parser.tokens.iter().enumerate() {
        match token.kind {
            Kind::LeftParen => open.push(at),
            Kind::Comma => {
                if let Some(opened_at) = open.last() {
                    grouping[*opened_at] = false;
                }
            }
            Kind::RightParen => {
                if let Some(opened_at) = open.pop() {
                    closing[opened_at] = at as u32;
                }
            }
            _ => {}
        }
    }
    for at in (parser.at..parser.tokens.len() - 1).rev() {
        if parser.tokens[at].kind != Kind::LeftParen {
            continue;
        }
        let begins = match parser.tokens[at + 1].kind {
            // What begins a query may be in more parentheses.
            Kind::LeftParen => begins_query[at + 1],
            _ => query::begins_query(parser, at + 1 - parser.at),
        };
        begins_query[at] = begins;
        grouping[at] &= !begins;
    }
    (parser.closing, parser.grouping) = (closing, grouping);
    Ok(())
}
