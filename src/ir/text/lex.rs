//! Tokens of a module's text.

use super::error::ParseError;

/// The result of reading a part of a text.
pub(super) type Parsed<T> = Result<T, ParseError>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// Letters, digits, `_`, `.` and `$`, with the sign of a number's exponent.
    Word(&'a str),
    /// The contents of a quoted string, with escapes as written.
    Text(&'a str),
    Sign(&'static str),
    /// The end of a line that isn't empty.
    LineEnd,
    End,
}

const SIGNS: [&str; 13] = ["->", "(", ")", "{", "}", ",", ":", ";", "=", "@", "+", "-", "?"];

/// All tokens of a text, and the place of the next one.
pub(super) struct Tokens<'a> {
    text: &'a str,
    /// Each with the offset of its first byte.
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Parsed<Self> {
        // each entity takes bytes of the text, so all numbers of entities fit
        if u32::try_from(text.len()).is_err() {
            return Err(ParseError::new(text, 0, "a text of less than 4 GiB", format!("{} bytes", text.len())));
        }
        let mut tokens: Vec<(usize, Token<'a>)> = Vec::new();
        let (mut at, mut open) = (0, 0u32);
        while let Some(first) = text[at..].chars().next() {
            let rest = &text[at..];
            let (token, len) = match first {
                '\n' if open > 0 || matches!(tokens.last(), None | Some((_, Token::LineEnd))) => (None, 1),
                '\n' => (Some(Token::LineEnd), 1),
                '#' => (None, rest.find('\n').unwrap_or(rest.len())),
                _ if first.is_whitespace() => (None, first.len_utf8()),
                '"' => {
                    let inside = quoted(rest).ok_or_else(|| error_at_line_end(text, at))?;
                    (Some(Token::Text(inside)), inside.len() + 2)
                }
                _ => {
                    let found = word_or_sign(rest);
                    let (token, len) =
                        found.ok_or_else(|| ParseError::new(text, at, "a word or a sign", format!("{first:?}")))?;
                    (Some(token), len)
                }
            };
            match token {
                Some(Token::Sign("(")) => open += 1,
                Some(Token::Sign(")")) => open = open.saturating_sub(1),
                _ => {}
            }
            tokens.extend(token.map(|token| (at, token)));
            at += len;
        }
        Ok(Tokens { text, tokens, next: 0 })
    }

    /// The next token.
    pub(super) fn peek(&self) -> Token<'a> {
        self.peek_behind(0)
    }

    /// The token that is `skip` tokens after the next one.
    pub(super) fn peek_behind(&self, skip: usize) -> Token<'a> {
        self.tokens.get(self.next + skip).map_or(Token::End, |(_, token)| *token)
    }

    /// The offset of the next token.
    pub(super) fn at(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |(at, _)| *at)
    }

    /// Consumes the next token.
    pub(super) fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    /// The index of the next token, to return to it later.
    pub(super) fn mark(&self) -> usize {
        self.next
    }

    /// Moves to the token with this index.
    pub(super) fn go_to(&mut self, mark: usize) {
        self.next = mark;
    }

    /// Consumes the token if it comes next; returns whether it does.
    pub(super) fn takes(&mut self, token: Token<'_>) -> bool {
        let found = self.peek() == token;
        self.next += usize::from(found);
        found
    }

    pub(super) fn takes_sign(&mut self, sign: &'static str) -> bool {
        self.takes(Token::Sign(sign))
    }

    pub(super) fn takes_word(&mut self, word: &str) -> bool {
        self.takes(Token::Word(word))
    }

    pub(super) fn sign(&mut self, sign: &'static str) -> Parsed<()> {
        if self.takes_sign(sign) { Ok(()) } else { Err(self.error(format!("`{sign}`"))) }
    }

    pub(super) fn this_word(&mut self, word: &str) -> Parsed<()> {
        if self.takes_word(word) { Ok(()) } else { Err(self.error(format!("`{word}`"))) }
    }

    /// The end of a line, or of the text.
    pub(super) fn line_end(&mut self) -> Parsed<()> {
        if self.peek() == Token::End || self.takes(Token::LineEnd) {
            Ok(())
        } else {
            Err(self.error("the end of the line"))
        }
    }

    /// A word of any spelling; `expected` says what for.
    pub(super) fn word(&mut self, expected: &str) -> Parsed<&'a str> {
        match self.peek() {
            Token::Word(word) => {
                self.next += 1;
                Ok(word)
            }
            _ => Err(self.error(expected)),
        }
    }

    /// A word that `meaning` knows.
    pub(super) fn known<T>(&mut self, expected: &str, meaning: impl FnOnce(&str) -> Option<T>) -> Parsed<T> {
        let Token::Word(word) = self.peek() else { return Err(self.error(expected)) };
        let known = meaning(word).ok_or_else(|| self.error(expected))?;
        self.next += 1;
        Ok(known)
    }

    /// An integer, decimal or with `0x`, with a sign.
    pub(super) fn integer<T: TryFrom<i128>>(&mut self, expected: &str) -> Parsed<T> {
        let start = self.next;
        let negative = self.takes_sign("-");
        let number = self.known(expected, |word| {
            let digits = word.strip_prefix("0x");
            let (digits, radix) = digits.map_or((word, 10), |digits| (digits, 16));
            // `from_str_radix` accepts a sign, which no word begins with
            let number = i128::from_str_radix(digits, radix).ok()?;
            T::try_from(if negative { -number } else { number }).ok()
        });
        number.inspect_err(|_| self.next = start).map_err(|_| self.error(expected))
    }

    /// The integer after a `+` or `-`; 0 without one.
    pub(super) fn offset<T: TryFrom<i128> + Default>(&mut self) -> Parsed<T> {
        let signed = self.takes_sign("+") || self.peek() == Token::Sign("-");
        if signed { self.integer("an offset in bytes") } else { Ok(T::default()) }
    }

    /// The items of a list in parentheses.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.sign("(")?;
        let mut items = Vec::new();
        if self.takes_sign(")") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.takes_sign(",") {
                break;
            }
        }
        if self.takes_sign(")") { Ok(items) } else { Err(self.error("`,` or `)`")) }
    }

    /// The bytes of a quoted string.
    pub(super) fn bytes(&mut self) -> Parsed<Vec<u8>> {
        let at = self.at();
        let Token::Text(inside) = self.peek() else { return Err(self.error("a quoted text")) };
        self.next += 1;
        unescape(inside).map_err(|offset| {
            let escape: String = inside[offset..].chars().take(2).collect();
            let expected = "an escape, such as `\\n`, `\\\"`, `\\\\`, `\\x0a` or `\\u{a}`";
            self.error_at(at + 1 + offset, expected, format!("`{escape}`"))
        })
    }

    /// A quoted string.
    pub(super) fn string(&mut self) -> Parsed<String> {
        let at = self.at();
        String::from_utf8(self.bytes()?).map_err(|_| self.error_at(at, "a text in UTF-8", "other bytes"))
    }

    /// The error of the next token.
    pub(super) fn error(&self, expected: impl Into<String>) -> ParseError {
        let found = match self.peek() {
            Token::Word(word) => format!("`{}`", short(word)),
            Token::Text(text) => format!("\"{}\"", short(text)),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::LineEnd => "the end of the line".to_owned(),
            Token::End => "the end of the text".to_owned(),
        };
        self.error_at(self.at(), expected, found)
    }

    pub(super) fn error_at(&self, at: usize, expected: impl Into<String>, found: impl Into<String>) -> ParseError {
        ParseError::new(self.text, at, expected, found)
    }
}

/// The word or sign at the start of a text, and its length in bytes.
fn word_or_sign(rest: &str) -> Option<(Token<'_>, usize)> {
    let word_len = |text: &str| text.find(|c| !is_word(c)).unwrap_or(text.len());
    let mut len = word_len(rest);
    if len == 0 {
        return SIGNS.into_iter().find(|sign| rest.starts_with(sign)).map(|sign| (Token::Sign(sign), sign.len()));
    }
    let exponent = rest[..len].strip_suffix('e').is_some_and(|digits| digits.parse::<f64>().is_ok());
    if exponent && rest[len..].starts_with('-') {
        len += 1 + word_len(&rest[len + 1..]);
    }
    Some((Token::Word(&rest[..len]), len))
}

/// True if a word may contain the character. A symbol of such characters needs no quotes.
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$')
}

/// The contents of the quoted string at the start of a text; `None` if it doesn't end on its line.
fn quoted(rest: &str) -> Option<&str> {
    let inside = rest.get(1..)?;
    let mut escaped = false;
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'\n' => return None,
            b'"' if !escaped => return Some(&inside[..at]),
            _ => escaped = byte == b'\\' && !escaped,
        }
    }
    None
}

fn error_at_line_end(text: &str, from: usize) -> ParseError {
    let end = text[from..].find('\n').map_or(text.len(), |len| from + len);
    ParseError::new(text, end, "`\"`", "the end of the line")
}

/// Replaces the escapes of Rust's string literals.
///
/// # Errors
/// The offset of a wrong escape.
fn unescape(inside: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let (escape, offset) = (&rest[at + 1..], inside.len() - rest.len() + at);
        rest = unescape_one(escape, &mut bytes).ok_or(offset)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Appends what an escape stands for; returns the text after it. `escape` begins after the backslash.
fn unescape_one<'a>(escape: &'a str, bytes: &mut Vec<u8>) -> Option<&'a str> {
    let hex = |digits: &str| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u32::from_str_radix(digits, 16).ok().filter(|_| plain)
    };
    let simple = [('n', b'\n'), ('r', b'\r'), ('t', b'\t'), ('0', 0), ('\\', b'\\'), ('"', b'"'), ('\'', b'\'')];
    let first = escape.chars().next()?;
    if let Some((_, byte)) = simple.into_iter().find(|(known, _)| *known == first) {
        bytes.push(byte);
        return Some(&escape[1..]);
    }
    if first == 'x' {
        bytes.push(u8::try_from(hex(escape.get(1..3)?)?).ok()?);
        return Some(&escape[3..]);
    }
    let (digits, rest) = escape.strip_prefix("u{")?.split_once('}')?;
    let c = char::from_u32(hex(digits)?)?;
    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Some(rest)
}

/// The start of a token, for a message.
fn short(text: &str) -> &str {
    const MOST: usize = 40;
    text.char_indices().nth(MOST).map_or(text, |(end, _)| &text[..end])
}
