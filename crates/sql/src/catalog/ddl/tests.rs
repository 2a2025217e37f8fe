//! Tests of DDL.
