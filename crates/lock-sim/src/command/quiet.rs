//! Panics are part of what is played: their words are told with their seed, and nowhere else.

pub(crate) fn keep_panics_quiet() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Outside of a world a panic is a fault of this program.
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            usual(panic);
        }
    }));
}
