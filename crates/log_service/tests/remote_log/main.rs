//! A log read from the members of a simulated group.

mod conformance;
mod following;
mod leases;
mod page_node;
mod support;
