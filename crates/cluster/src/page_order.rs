//! What control orders about a chunk of a page node.

use firn_base::network::NodeId;
use firn_control::{Action, ChunkId, Epoch, OrderNumber};

use crate::layout::Layout;
use crate::layout::parts::HeldPart;

/// An order about a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PageOrder {
    pub(crate) number: OrderNumber,
    pub(crate) chunk: ChunkId,
    pub(crate) epoch: Epoch,
    pub(crate) act: PageAct,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageAct {
    /// Get these pages from these nodes.
    Copy { part: HeldPart, sources: Vec<NodeId> },
    /// Get these pages from another chunk of the node itself.
    CopyPart { part: HeldPart, of: ChunkId },
    /// Readers come from now on.
    Serve,
    /// Delete the pages.
    Retire,
}

impl PageAct {
    /// The pages that the order gives the node.
    pub(crate) fn wanted(&self) -> Option<&HeldPart> {
        match self {
            PageAct::Copy { part, .. } | PageAct::CopyPart { part, .. } => Some(part),
            PageAct::Serve | PageAct::Retire => None,
        }
    }
}

/// The order about a chunk that an order of control is; any other action is returned.
///
/// A chunk is copied with the places that the layout gives it. An order that came before the layout
/// with these places, or is late, is none: how pages lie is in the layout. Control repeats it.
pub(crate) fn page_order(
    number: OrderNumber,
    action: Action,
    layout: &Layout,
) -> Result<Option<PageOrder>, Action> {
    let (chunk, epoch, act) = match action {
        Action::CopyChunk { chunk, epoch, range, sources } => {
            let known = layout.held_part(chunk);
            let Some(part) = known.filter(|part| part.places() == (range.first..range.end)) else {
                tracing::warn!(chunk = chunk.0, "this node knows of no such chunk of pages yet");
                return Ok(None);
            };
            (chunk, epoch, PageAct::Copy { part, sources })
        }
        Action::CopyPart { of, chunk, epoch, range, extents } => {
            let (first, end) = (range.first, range.end);
            let part = HeldPart { first, end, extents, is_alone: false };
            (chunk, epoch, PageAct::CopyPart { part, of })
        }
        Action::ServeChunk { chunk, epoch } => (chunk, epoch, PageAct::Serve),
        Action::RetireChunk { chunk, epoch } => (chunk, epoch, PageAct::Retire),
        other => return Err(other),
    };
    Ok(Some(PageOrder { number, chunk, epoch, act }))
}

#[cfg(test)]
mod tests {
    use firn_api::PageFilter;
    use firn_base::{Extents, PageNo};
    use firn_control::{ChunkRange, EVERY_SPACE};

    use super::*;
    use crate::layout::catalog::LOG_GROUP;

    const TEXT: &str = "cluster = \"0000000000000000000000000000000a\"\npage_chunks = 2\n[[node]]\n\
                        number = 2\nname = \"n\"\naddress = \"10.0.0.1:258\"\n\
                        client_address = \"10.0.0.1:3306\"\n\
                        roles = [\"database\", \"log\", \"pages\", \"control\"]\n";

    #[test]
    fn a_chunk_is_copied_as_the_layout_has_it() {
        let layout = Layout::parse(TEXT).unwrap();
        let half = PageNo(u32::MAX / 2);
        let range = |first, end| ChunkRange { space: EVERY_SPACE, first, end, group: LOG_GROUP };
        let order = |range| {
            let (chunk, epoch, sources) = (ChunkId(1), Epoch(3), vec![NodeId(2)]);
            let action = Action::CopyChunk { chunk, epoch, range, sources };
            page_order(OrderNumber::default(), action, &layout).unwrap()
        };
        let known = order(range(PageNo(0), half)).unwrap();
        assert_eq!(known.act.wanted(), layout.held_part(ChunkId(1)).as_ref());
        assert_eq!(order(range(PageNo(0), PageNo::NONE)), None, "it was cut since");
        let (of, chunk, epoch, extents) = (ChunkId(2), ChunkId(7), Epoch(1), Extents { pages: 5 });
        let range = range(PageNo(u32::MAX / 4 * 3), PageNo::NONE);
        let action = Action::CopyPart { of, chunk, epoch, range, extents };
        let part = page_order(OrderNumber::default(), action, &layout).unwrap().unwrap();
        let wanted = part.act.wanted().unwrap();
        assert!(!wanted.is_alone && matches!(wanted.filter(), PageFilter::Places { .. }));
    }
}
