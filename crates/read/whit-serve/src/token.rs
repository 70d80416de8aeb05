//! The secret in the address.

use std::fmt::{self, Write};
use std::fs::File;
use std::io::{self, Read};

/// Random bytes of a token: 192 bits.
const TOKEN_BYTES: usize = 24;

/// A secret that each request has in its path.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new one, from the kernel's random numbers.
    ///
    /// # Errors
    /// The kernel's device is not at hand.
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        let mut text = String::with_capacity(2 * TOKEN_BYTES);
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Token(text))
    }

    /// As it stands in the path.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares all bytes, so that the time tells nothing of the first wrong one.
    pub(crate) fn is(&self, given: &str) -> bool {
        let (own, given) = (self.0.as_bytes(), given.as_bytes());
        let difference = own.iter().zip(given).fold(0, |sum, (a, b)| sum | (a ^ b));
        own.len() == given.len() && difference == 0
    }
}

/// A secret is not for logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_equal_themselves_alone() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.text().len(), 48);
        assert!(one.is(one.text()) && !one.is(other.text()));
        assert!(!one.is("") && !one.is(&one.text()[1..]) && !one.is(&format!("{}0", one.text())));
    }
}
