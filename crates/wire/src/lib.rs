//! The MySQL protocol, server side.
