//! What is asked of the nodes again and again: how far they are. Leases go with it.

use std::sync::Arc;
use std::time::Duration;

use firn_base::{Lsn, PageId, SpaceId};
use firn_link::Call;

use super::Shared;
use super::node::Node;
use super::placement::{Chunk, Map};
use crate::message::{MAX_PAGES, Request, decode_positions, decode_spaces};

/// The pause before nodes that did not answer are asked for their spaces again.
const PAUSE: Duration = Duration::from_millis(20);

/// Chunks of one node whose positions were asked for, with the node's place in each.
type Asked = Vec<(Arc<Chunk>, usize)>;

impl Shared {
    /// The body of the client's task.
    pub(super) fn refresh_until_closed(&self) {
        while !self.is_closing() {
            let map = self.map();
            let leases = self.send_leases(&map);
            let positions: Vec<(Call, Asked)> =
                map.nodes.iter().flat_map(|node| self.ask_applied(&map, node)).collect();
            // Their answers change nothing here.
            leases.into_iter().for_each(|(_, call)| drop(call.wait()));
            positions.into_iter().for_each(|(call, asked)| take_applied(call, &asked));
            let ticket = self.changed.listen();
            if !self.is_closing() {
                self.changed.wait(ticket, Some(self.options.refresh));
            }
        }
    }

    fn ask_applied(&self, map: &Map, node: &Arc<Node>) -> Vec<(Call, Asked)> {
        let chunks = map.chunks_of(node);
        let ask = |some: &[(Arc<Chunk>, usize)]| {
            let pages: Vec<PageId> = some.iter().map(|(chunk, _)| chunk.sample()).collect();
            let call = self.begin(node, Request::Applied(pages).encode().into())?;
            Some((call, some.to_vec()))
        };
        chunks.chunks(MAX_PAGES).filter_map(ask).collect()
    }

    /// The spaces of all nodes; waits a while for nodes that do not answer at once.
    pub(super) fn spaces(&self) -> Vec<SpaceId> {
        let until = self.now() + self.options.hold_grace;
        let mut spaces = Vec::new();
        let mut left = self.map().nodes.clone();
        loop {
            let ask = |node: &Arc<Node>| self.begin(node, Request::Spaces.encode().into());
            let calls: Vec<Option<Call>> = left.iter().map(ask).collect();
            let mut answers = calls.into_iter().map(|call| {
                let answer = call.and_then(|call| call.wait().ok());
                answer.and_then(|payload| decode_spaces(&payload).ok())
            });
            left.retain(|_| match answers.next().flatten() {
                Some(answer) => {
                    spaces.extend(answer);
                    false
                }
                None => true,
            });
            if left.is_empty() || self.now() >= until || self.is_closing() {
                break;
            }
            self.changed.wait_until(Some(PAUSE), || self.is_closing());
        }
        spaces.sort_unstable();
        spaces.dedup();
        spaces
    }
}

fn take_applied(call: Call, asked: &[(Arc<Chunk>, usize)]) {
    let answer = call.wait().ok().and_then(|payload| decode_positions(&payload).ok());
    let positions: Vec<Lsn> = answer.unwrap_or_default();
    if positions.len() == asked.len() {
        for ((chunk, place), position) in asked.iter().zip(positions) {
            chunk.note_applied(*place, position);
        }
    }
}
