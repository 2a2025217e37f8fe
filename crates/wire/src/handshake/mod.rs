//! The exchange before the first command.
