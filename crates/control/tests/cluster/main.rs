//! Whole clusters in one thread: control nodes with their controllers, and simulated other nodes.

mod balance;
mod checker;
mod faults;
mod node;
mod scenario;
mod scenarios;
mod simulation;
mod world;
