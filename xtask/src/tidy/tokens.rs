//! Rust files as tokens: comments and texts in quotes are not code, and what stands inside of a
//! macro is.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The tokens of a file; none for a file that is not Rust, which the compiler will tell.
pub(super) fn of(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}

/// Shows every run of tokens: those of the file, and those of each group in it.
pub(super) fn for_each_run(tokens: TokenStream, show: &mut impl FnMut(&[TokenTree])) {
    let run: Vec<_> = tokens.into_iter().collect();
    show(&run);
    for token in run {
        if let TokenTree::Group(group) = token {
            for_each_run(group.stream(), show);
        }
    }
}

/// Whether a token is this word.
pub(super) fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

/// Whether a token is this sign.
pub(super) fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == sign)
}

/// What is between brackets of this kind, if the token is such a group.
pub(super) fn between(token: &TokenTree, delimiter: Delimiter) -> Option<TokenStream> {
    match token {
        TokenTree::Group(group) if group.delimiter() == delimiter => Some(group.stream()),
        _ => None,
    }
}

/// The line a token stands on.
pub(super) fn line(token: &TokenTree) -> usize {
    token.span().start().line
}
