//! What was reported about locks on Postgres elsewhere, and what surrounds a server, on real servers:
//! fail-overs, crashes in the middle of calls, crowds, clocks.
// Helpers of tests unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod stage;

mod cases {
    mod broken_off;
    mod clocks;
    mod crowds;
    mod durability;
    mod fail_over;
    mod silence;
    mod support;
    mod tls;
    mod waiting;
}
