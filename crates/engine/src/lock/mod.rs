//! Row and range locks.
