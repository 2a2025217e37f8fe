//! Page nodes at the other end of links: `firn_page_service` in the simulator.

mod leases;
mod promises;
mod reads;
mod shelf;
mod support;
