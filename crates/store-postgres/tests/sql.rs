//! The functions of the schema, on a real server: what the store cannot see from outside, and what
//! must hold when calls meet in the most unfortunate order.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod sql {
    mod batches;
    mod costs;
    mod faults;
    mod interleavings;
    mod queue;
    mod renewals;
    mod sessions;
    mod support;
    mod surroundings;
    mod terms;
    mod tokens;
    mod upkeep;
}
