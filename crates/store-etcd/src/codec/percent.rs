//! Percent-encoding with one form only: every byte but `A-Za-z0-9._-`, in upper-case hexadecimal.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'_').remove(b'-');

/// Encodes byte by byte, so the encoding of a prefix is a prefix of the encoding.
pub(crate) fn encode(bytes: &[u8]) -> Cow<'_, str> {
    percent_encode(bytes, ESCAPED).into()
}

/// Reads what [`encode`] writes; any other form is refused, so that one key has one name.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_form_is_pinned() {
        for (bytes, text) in [
            ("a.b_c-D9", "a.b_c-D9"),
            ("a/b", "a%2Fb"),
            ("a%2Fb", "a%252Fb"),
            ("~ é", "%7E%20%C3%A9"),
            ("", ""),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in ["a/b", "%2f", "%61", "%", "%2", "%zz", "a b", "é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_reads_back(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn at_most_one_text_reads_back_as_the_same_bytes(text in "[a-c%/0-9A-F]{0,8}") {
            if let Some(bytes) = decode(&text) {
                prop_assert_eq!(encode(&bytes), text);
            }
        }

        #[test]
        fn prefixes_stay_prefixes(head: Vec<u8>, tail: Vec<u8>) {
            let whole = [head.clone(), tail].concat();
            prop_assert!(encode(&whole).starts_with(&*encode(&head)));
        }
    }
}
