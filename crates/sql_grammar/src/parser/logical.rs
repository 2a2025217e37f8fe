//! `OR`, `XOR`, `AND`, `NOT` and the parentheses around them, without recursion: generated
//! conditions nest them thousands of levels deep, and MySQL takes more than 10,000.
//!
//! ```text
//!   a AND (b OR NOT (c AND d))         what is open when `d` has been read
//!
//!       AND a │ ( │ OR b │ NOT │ ( │ AND c
//! ```
//!
//! All three operators are associative, so a chain in parentheses joins the chain of the same
//! operator around it: `a AND (b AND c)` is one chain of three operands.

use std::collections::VecDeque;

use firn_sql_types::error::{Result, SqlError};

use super::super::ast::{BinaryOperator, Expr, UnaryOperator};
use super::super::lexer::Kind;
use super::super::node_builders::{binary, unary};
use super::expression::{IS, Infix, MAX_HEIGHT, climb_operators, infix, too_tall};
use super::{Parser, parentheses};

/// With more operands, the tree of a chain is balanced instead of leaning left.
const LEANING_OPERANDS: usize = 16;
/// More open parts than any MySQL takes.
const TOO_MANY: usize = 60_000;

/// What waits for the end of the operand that is being read.
enum Open {
    /// This many parentheses in a row.
    Parentheses(usize),
    Not,
    /// An operator and the operands before it.
    Chain(Chain),
}

/// Operands joined by one operator, and the height of the tallest.
struct Chain {
    op: BinaryOperator,
    binds: u8,
    operands: VecDeque<Expr>,
    height: u32,
}

/// What has been read: an expression, or a chain that a chain around it may take over.
enum Operand {
    Whole { expr: Expr, height: u32 },
    Chain(Chain),
}

/// An expression with any operators. Leaves its height in the parser.
pub(super) fn logical(parser: &mut Parser<'_>) -> Result<Expr> {
    let mut open: Vec<Open> = Vec::new();
    loop {
        begin_operand(parser, &mut open)?;
        parser.height = 0;
        let expr = climb_operators(parser, IS)?;
        let mut read = Operand::Whole { expr, height: parser.height };
        loop {
            while let Some(Open::Not) = open.last() {
                open.pop();
                read = negated(read)?;
            }
            if let Some((Infix::Chain(op), binds)) = infix(parser) {
                parser.at += 1;
                read = close_chains(&mut open, read, binds + 1)?;
                let chain = chain_with(&mut open, read, op, binds)?;
                open.push(Open::Chain(chain));
                break;
            }
            read = close_chains(&mut open, read, 0)?;
            let Some(Open::Parentheses(count)) = open.pop() else {
                let (expr, height) = read.settled()?;
                parser.height = height;
                return Ok(expr);
            };
            for _ in 0..count {
                parser.need(Kind::RightParen)?;
            }
        }
    }
}

/// Takes what may stand before an operand.
fn begin_operand(parser: &mut Parser<'_>, open: &mut Vec<Open>) -> Result<()> {
    loop {
        if parser.kind() == Kind::LeftParen {
            let Some(count) = grouping(parser)? else { return Ok(()) };
            parser.at += count;
            open.push(Open::Parentheses(count));
        } else if parser.is("NOT") && !parser.mode.high_not_precedence {
            parser.at += 1;
            open.push(Open::Not);
        } else {
            return Ok(());
        }
        parser.watch.step()?;
        if open.len() > TOO_MANY {
            let message = format!("Conditions may nest {TOO_MANY} levels deep; use fewer");
            return Err(SqlError::too_complex(message));
        }
    }
}

/// How many parentheses open here in a row and only group an operand. `None` if they enclose a
/// query or a row, or are the operand of an operator that binds more tightly.
fn grouping(parser: &mut Parser<'_>) -> Result<Option<usize>> {
    let count = parentheses::needless_parentheses(parser)? + 1;
    let Some(end) = parentheses::end_of_grouping(parser, count)? else { return Ok(None) };
    let here = std::mem::replace(&mut parser.at, end + 1);
    let is_operand = parser.is("COLLATE")
        || infix(parser).is_some_and(|(infix, _)| !matches!(infix, Infix::Chain(_)));
    parser.at = here;
    Ok((!is_operand).then_some(count))
}

/// Ends the chains whose operators bind at least as tightly as a level.
fn close_chains(open: &mut Vec<Open>, mut read: Operand, level: u8) -> Result<Operand> {
    while let Some(Open::Chain(chain)) = open.last()
        && chain.binds >= level
    {
        let Some(Open::Chain(mut chain)) = open.pop() else { break };
        chain.append(read)?;
        read = Operand::Chain(chain);
    }
    Ok(read)
}

/// The chain that waits for the operand after an operator.
fn chain_with(open: &mut Vec<Open>, read: Operand, op: BinaryOperator, binds: u8) -> Result<Chain> {
    let mut chain = match open.last() {
        Some(Open::Chain(before)) if before.op == op => match open.pop() {
            Some(Open::Chain(before)) => before,
            _ => Chain::new(op, binds),
        },
        _ => Chain::new(op, binds),
    };
    chain.append(read)?;
    Ok(chain)
}

/// `NOT` of what has been read. Of three in a row, two are left out.
fn negated(read: Operand) -> Result<Operand> {
    let (expr, height) = read.settled()?;
    if height >= MAX_HEIGHT {
        return Err(too_tall());
    }
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Not, expr: inner } if is_not(&inner) => {
            Ok(Operand::Whole { expr: *inner, height: height - 1 })
        }
        expr => Ok(Operand::Whole { expr: unary(UnaryOperator::Not, expr), height: height + 1 }),
    }
}

fn is_not(expr: &Expr) -> bool {
    matches!(expr, Expr::UnaryOp { op: UnaryOperator::Not, .. })
}

impl Operand {
    /// As one expression, and its height.
    fn settled(self) -> Result<(Expr, u32)> {
        match self {
            Operand::Whole { expr, height } => Ok((expr, height)),
            Operand::Chain(chain) => chain.joined(),
        }
    }
}

impl Chain {
    fn new(op: BinaryOperator, binds: u8) -> Chain {
        Chain { op, binds, operands: VecDeque::new(), height: 0 }
    }

    /// Adds an operand, or the operands of a chain of the same operator. The shorter chain moves.
    fn append(&mut self, read: Operand) -> Result<()> {
        match read {
            Operand::Chain(mut more) if more.op == self.op => {
                self.height = self.height.max(more.height);
                if more.operands.len() > self.operands.len() {
                    std::mem::swap(&mut self.operands, &mut more.operands);
                    more.operands.into_iter().rev().for_each(|one| self.operands.push_front(one));
                } else {
                    self.operands.extend(more.operands);
                }
            }
            read => {
                let (expr, height) = read.settled()?;
                self.height = self.height.max(height);
                self.operands.push_back(expr);
            }
        }
        Ok(())
    }

    /// The chain's tree, and its height.
    fn joined(self) -> Result<(Expr, u32)> {
        let Chain { op, operands, height, .. } = self;
        let count = operands.len();
        let (levels, tree) = match count > LEANING_OPERANDS {
            true => ((count - 1).ilog2() + 1, balanced(operands, op)),
            false => (
                count as u32 - 1,
                operands.into_iter().reduce(|left, right| binary(left, op, right)),
            ),
        };
        let height = height + levels;
        if height > MAX_HEIGHT {
            return Err(too_tall());
        }
        tree.map(|tree| (tree, height)).ok_or_else(too_tall)
    }
}

fn balanced(operands: VecDeque<Expr>, op: BinaryOperator) -> Option<Expr> {
    let mut operands = Vec::from(operands);
    while operands.len() > 1 {
        let mut joined = Vec::with_capacity(operands.len().div_ceil(2));
        let mut left = None;
        for operand in operands {
            match left.take() {
                None => left = Some(operand),
                Some(first) => joined.push(binary(first, op, operand)),
            }
        }
        joined.extend(left);
        operands = joined;
    }
    operands.pop()
}
