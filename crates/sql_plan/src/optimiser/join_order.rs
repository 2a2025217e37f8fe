//! The order in which a graph's items are joined.
//!
//! ```text
//!   {t} ── {t,u} ── {t,u,v}    for each set of items the cheapest way to it, and the cheapest that
//!   {u} ──/   \──── {t,u,w}    comes in the requested order (dynamic programming, left-deep)
//! ```
//!
//! Beyond [`MOST_EXACT`] items, the search is greedy: it takes the cheapest next step.

use firn_sql_logical::expression::SortKey;
use firn_sql_types::error::Result;
use firn_sql_types::watch::{Recursion, nest};

use super::Optimiser;
use super::join_graph::{Item, JoinGraph};
use super::join_items::{Bound, Priced, filter, one_row};
use crate::visit::SlotSet;
use crate::{NodeKind, PlanNode};

const MOST_EXACT: usize = 10;
/// The search over all sets is also given up if it needs to check more conditions than this.
const MOST_EXACT_LOOKS: usize = 1 << 20;

/// The steps to a set of items.
#[derive(Debug, Clone)]
struct Path {
    steps: Vec<(usize, Priced)>,
    bound: Bound,
    ordered: bool,
}

/// A graph's plan, and whether its rows come in the requested order.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub node: PlanNode,
    /// Whether it returns the order.
    pub ordered: bool,
}

impl Path {
    fn start() -> Path {
        let bound = Bound { slots: SlotSet::default(), rows: 1.0, cost: 0.0, is_first: true };
        Path { steps: Vec::new(), bound, ordered: true }
    }

    fn with(&self, number: usize, item: &Item, priced: Priced) -> Path {
        let mut slots = self.bound.slots.clone();
        slots.extend(&item.fills);
        let bound = Bound { slots, rows: priced.rows, cost: priced.cost, is_first: false };
        let ordered = self.ordered && priced.ordered;
        let mut steps = self.steps.clone();
        steps.push((number, priced));
        Path { steps, bound, ordered }
    }

    fn cost(&self) -> f64 {
        self.bound.cost
    }
}

/// The cheapest path to a set, and the cheapest one in order.
#[derive(Debug, Clone, Default)]
struct Best {
    any: Option<Path>,
    ordered: Option<Path>,
}

impl Best {
    fn consider(&mut self, path: Path) {
        let is_better =
            |best: &Option<Path>| best.as_ref().is_none_or(|best| path.cost() < best.cost());
        if path.ordered && is_better(&self.ordered) {
            self.ordered = Some(path.clone());
        }
        if is_better(&self.any) {
            self.any = Some(path);
        }
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let same = |one: &Path, two: &Path| one.cost() == two.cost() && one.ordered == two.ordered;
        let ordered = self.ordered.as_ref();
        let ordered = ordered.filter(|path| !self.any.as_ref().is_some_and(|any| same(any, path)));
        self.any.iter().chain(ordered)
    }
}

impl Optimiser<'_> {
    /// The plan of a graph.
    ///
    /// # Errors
    /// Errors of planning a subquery.
    pub(crate) fn plan_graph(
        &mut self,
        graph: &JoinGraph,
        order: &[SortKey],
        straight: bool,
    ) -> Result<PlanNode> {
        Ok(self.plan_ordered(graph, order, straight, None)?.node)
    }

    /// The plan of a graph, in the requested order if that is cheaper than a sort. `limit`: only
    /// this many rows will be read.
    ///
    /// # Errors
    /// Errors of planning a subquery.
    pub(crate) fn plan_ordered(
        &mut self,
        graph: &JoinGraph,
        order: &[SortKey],
        straight: bool,
        limit: Option<f64>,
    ) -> Result<Ordered> {
        if graph.conditions.iter().any(firn_sql_logical::expression::fold::is_never_true) {
            let node = PlanNode { kind: NodeKind::Empty, rows: 0.0, cost: 0.0 };
            return Ok(Ordered { node, ordered: true });
        }
        if graph.items.is_empty() {
            return Ok(Ordered {
                node: filter(one_row(), graph.conditions.clone()),
                ordered: false,
            });
        }
        let (path, ordered) = self.find_path(graph, order, straight, limit)?;
        let node = self.build(graph, &path)?;
        Ok(Ordered { node, ordered: ordered && !order.is_empty() })
    }

    /// Rows and cost of a graph.
    ///
    /// # Errors
    /// Errors of planning a subquery.
    pub(crate) fn price_graph(&mut self, graph: &JoinGraph) -> Result<(f64, f64)> {
        nest(Recursion::Bind)?;
        if graph.items.is_empty()
            || graph.conditions.iter().any(firn_sql_logical::expression::fold::is_never_true)
        {
            return Ok((0.0, 0.0));
        }
        let (path, _) = self.find_path(graph, &[], false, None)?;
        Ok((path.bound.rows, path.bound.cost))
    }

    fn find_path(
        &mut self,
        graph: &JoinGraph,
        order: &[SortKey],
        straight: bool,
        limit: Option<f64>,
    ) -> Result<(Path, bool)> {
        let best = if straight {
            self.straight(graph, order)?
        } else if is_small(graph) {
            self.exact(graph, order)?
        } else {
            self.greedy(graph, order)?
        };
        Ok(choose(best, order, limit))
    }

    fn build(&mut self, graph: &JoinGraph, path: &Path) -> Result<PlanNode> {
        let mut bound = SlotSet::default();
        let mut node = None;
        for (number, priced) in &path.steps {
            let item = &graph.items[*number];
            node = Some(self.join_item(graph, item, node, &bound, priced)?);
            bound.extend(&item.fills);
        }
        Ok(node.unwrap_or_else(one_row))
    }

    fn exact(&mut self, graph: &JoinGraph, order: &[SortKey]) -> Result<Best> {
        let count = graph.items.len();
        let mut best = vec![Best::default(); 1 << count];
        best[0].consider(Path::start());
        for set in 0..(1_usize << count) {
            let paths: Vec<Path> = best[set].paths().cloned().collect();
            for path in &paths {
                for number in (0..count).filter(|number| set >> number & 1 == 0) {
                    self.extend(graph, path, number, order, &mut best[set | 1 << number])?;
                }
            }
        }
        Ok(best.pop().unwrap_or_default())
    }

    fn extend(
        &mut self,
        graph: &JoinGraph,
        path: &Path,
        number: usize,
        order: &[SortKey],
        into: &mut Best,
    ) -> Result<()> {
        let item = &graph.items[number];
        if !item.depends.intersection(&graph.fills).is_subset(&path.bound.slots) {
            return Ok(());
        }
        for priced in self.price(graph, item, &path.bound, order)? {
            into.consider(path.with(number, item, priced));
        }
        Ok(())
    }

    fn greedy(&mut self, graph: &JoinGraph, order: &[SortKey]) -> Result<Best> {
        let mut path = Path::start();
        let mut left: Vec<usize> = (0..graph.items.len()).collect();
        while !left.is_empty() {
            let mut best = Best::default();
            for number in left.iter().copied().filter(|number| is_connected(graph, &path, *number))
            {
                self.extend(graph, &path, number, order, &mut best)?;
            }
            if best.any.is_none() {
                for number in left.iter().copied() {
                    self.extend(graph, &path, number, order, &mut best)?;
                }
            }
            let Some(next) = best.any else { break };
            left.retain(|number| next.steps.last().is_none_or(|(last, _)| last != number));
            path = next;
        }
        Ok(Best { ordered: path.ordered.then(|| path.clone()), any: Some(path) })
    }

    fn straight(&mut self, graph: &JoinGraph, order: &[SortKey]) -> Result<Best> {
        let mut best = Best::default();
        best.consider(Path::start());
        for number in 0..graph.items.len() {
            let mut next = Best::default();
            for path in best.paths().cloned().collect::<Vec<_>>() {
                self.extend(graph, &path, number, order, &mut next)?;
            }
            best = next;
        }
        Ok(best)
    }
}

/// Whether the search can visit every set of a graph's items.
fn is_small(graph: &JoinGraph) -> bool {
    let items = graph.items.len();
    items <= MOST_EXACT && (items << items) * (1 + graph.conditions.len()) <= MOST_EXACT_LOOKS
}

/// Whether a condition joins an item with a bound one, or nothing is bound yet.
fn is_connected(graph: &JoinGraph, path: &Path, number: usize) -> bool {
    path.bound.is_first
        || !graph.applicable(&graph.items[number], &path.bound.slots).joining.is_empty()
        || !graph.items[number].depends.is_empty()
}

/// The cheaper of the path in order and the cheapest path followed by a sort.
fn choose(best: Best, order: &[SortKey], limit: Option<f64>) -> (Path, bool) {
    let Some(any) = best.any else { return (Path::start(), false) };
    let Some(ordered) = best.ordered.filter(|_| !order.is_empty()) else { return (any, false) };
    let rows = any.bound.rows.max(1.0);
    let share = limit.map_or(1.0, |limit| (limit / rows).min(1.0));
    let sorted = any.cost() + rows * (rows + 1.0).log2().max(1.0) * 0.15;
    match ordered.cost() * share.max(1e-9) <= sorted || any.ordered {
        true => (ordered, true),
        false => (any, false),
    }
}
