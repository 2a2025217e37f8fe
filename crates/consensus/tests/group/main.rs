//! Groups of members in one thread: scenarios that are scripts, and seeded runs with faults.

mod checker;
mod disk;
mod faults;
mod scenario;
mod scenarios;
mod simulation;
