//! Finding a pattern in bytes that come in pieces.

/// The longest pattern that can be found.
pub(super) const LONGEST: usize = 1024;

/// The end of what has passed, as much as the beginning of a pattern can be in it.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    fresh: usize,
}

impl Window {
    /// Goes on to the next piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        let surplus = self.bytes.len().saturating_sub(LONGEST);
        self.bytes.drain(..surplus);
        self.bytes.extend_from_slice(piece);
        self.fresh = piece.len();
    }

    /// Whether the pattern ends in the last piece. One that ended before is past.
    pub(super) fn shows(&self, pattern: &[u8]) -> bool {
        let past = self.bytes.len() - self.fresh;
        let begin = (past + 1).saturating_sub(pattern.len());
        self.bytes[begin..]
            .windows(pattern.len())
            .any(|window| window == pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_found_inside_a_piece_and_across_pieces() {
        let mut window = Window::default();
        window.push(b"a green");
        assert!(window.shows(b"green") && !window.shows(b"greens"));
        for piece in ["h", "ou", "se"] {
            assert!(!window.shows(b"house"));
            window.push(piece.as_bytes());
        }
        assert!(window.shows(b"house") && window.shows(b"greenhouse"));
    }

    #[test]
    fn a_pattern_of_earlier_pieces_is_past() {
        let mut window = Window::default();
        window.push(b"green");
        window.push(b"house");
        assert!(!window.shows(b"green"));
    }

    #[test]
    fn the_longest_pattern_is_found_after_much_else() {
        let mut window = Window::default();
        let pattern = [7; LONGEST];
        window.push(&[1; 5000]);
        window.push(&pattern[1..]);
        assert!(!window.shows(&pattern));
        window.push(&[7]);
        assert!(window.shows(&pattern));
    }
}
