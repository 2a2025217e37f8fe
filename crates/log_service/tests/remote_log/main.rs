//! A log read from the members of a simulated group.

mod conformance;
mod following;
mod support;
