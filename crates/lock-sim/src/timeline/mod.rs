//! A run as a picture: who held what when, what went wrong meanwhile, and which invariant broke.

mod axis;
mod bars;
mod canvas;
mod picture;
mod rows;
mod window;

pub use picture::svg;
