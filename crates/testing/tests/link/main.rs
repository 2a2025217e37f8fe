//! Links between simulated processes: calls, casts and streams over a network that loses, cuts and
//! resets, with peers that are slow, die and come back.

mod calls;
mod exchanges;
mod handshakes;
mod model;
mod streams;
mod support;
