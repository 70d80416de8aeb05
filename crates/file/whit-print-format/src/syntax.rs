//! The arguments of a `print fmt`: a parser for the C expressions that kernels write there.
//!
//! Precedences are C's. The macros of `TRACE_EVENT` (`__print_flags`, `__get_str` …) stand in
//! formats under their own names; see `include/trace/stages/stage3_trace_output.h` in the kernel.

use super::TraceFormatError as Error;
use super::ctype::{CastType, IntType, is_type_word, parse_number, parse_type};
use super::lexer::{Lexer, Token};
use crate::format_file::{TraceEvent, TraceField};

/// Parts that may stand inside one another.
const MAX_DEPTH: usize = 128;

/// Numbers of softirqs and of timers' answers, which old kernels left as names.
const KNOWN_NAMES: [(&str, u64); 12] = [
    ("HI_SOFTIRQ", 0),
    ("TIMER_SOFTIRQ", 1),
    ("NET_TX_SOFTIRQ", 2),
    ("NET_RX_SOFTIRQ", 3),
    ("BLOCK_SOFTIRQ", 4),
    ("IRQ_POLL_SOFTIRQ", 5),
    ("TASKLET_SOFTIRQ", 6),
    ("SCHED_SOFTIRQ", 7),
    ("HRTIMER_SOFTIRQ", 8),
    ("RCU_SOFTIRQ", 9),
    ("HRTIMER_NORESTART", 0),
    ("HRTIMER_RESTART", 1),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum UnaryOp {
    Negate,
    Not,
    LogicalNot,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub(super) enum BinaryOp {
    Mul,
    Div,
    Rem,
    Add,
    Sub,
    Shl,
    Shr,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Xor,
    Or,
    LogicalAnd,
    LogicalOr,
}

/// Value and name, of flags and symbols; `None` where the value is one that only the kernel knows.
pub(super) type NameTable<'e> = Vec<(Node<'e>, String)>;

/// An expression.
#[derive(Clone, Debug)]
pub(super) enum Node<'e> {
    Number(u64, IntType),
    /// A constant that only the kernel knows.
    Name,
    Text(String),
    Field(&'e TraceField),
    /// `__get_dynamic_array`, `__get_sockaddr`: the bytes.
    DynamicArray(&'e TraceField),
    DynamicLen(&'e TraceField),
    /// `__get_str`.
    DynamicText(&'e TraceField),
    Bitmask(&'e TraceField),
    CpuMask(&'e TraceField),
    Flags(Box<Node<'e>>, String, NameTable<'e>),
    Symbolic(Box<Node<'e>>, NameTable<'e>),
    /// Bytes, their number, and whether blanks part them.
    Hex(Box<[Node<'e>; 2]>, bool),
    /// Elements, their number, and the size of one.
    Array(Box<[Node<'e>; 3]>),
    Cast(CastType, Box<Node<'e>>),
    Unary(UnaryOp, Box<Node<'e>>),
    Binary(BinaryOp, Box<[Node<'e>; 2]>),
    Conditional(Box<[Node<'e>; 3]>),
    Index(Box<[Node<'e>; 2]>),
}

/// Reads the format string and the arguments behind it.
pub(super) fn parse<'e>(
    event: &'e TraceEvent,
    long_bits: u8,
) -> Result<(String, Vec<Node<'e>>), Error> {
    let mut parser = Parser::new(event, long_bits);
    let Token::Text(format) = parser.advance() else {
        return Err(parser.wrong("a format string"));
    };
    let mut arguments = Vec::new();
    while parser.eat(",") {
        // A comma may close the list.
        if parser.token == Token::End {
            break;
        }
        arguments.push(parser.expression()?.0);
    }
    match parser.token {
        Token::End => Ok((format, arguments)),
        _ => Err(parser.wrong("a comma or the end")),
    }
}

/// An expression and how deep it is.
type Deep<'e> = (Node<'e>, usize);

struct Parser<'e> {
    event: &'e TraceEvent,
    long_bits: u8,
    lexer: Lexer<'e>,
    token: Token<'e>,
    open: usize,
}

impl<'e> Parser<'e> {
    fn new(event: &'e TraceEvent, long_bits: u8) -> Self {
        let mut lexer = Lexer::new(&event.print_fmt);
        let token = lexer.next();
        Parser { event, long_bits, lexer, token, open: 0 }
    }

    /// Steps on; gives back the word that stood there.
    fn advance(&mut self) -> Token<'e> {
        std::mem::replace(&mut self.token, self.lexer.next())
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.token == Token::Sign(sign);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), Error> {
        if self.eat(sign) { Ok(()) } else { Err(self.wrong(sign)) }
    }

    fn wrong(&self, expected: &'static str) -> Error {
        let found = match &self.token {
            Token::Name(word) | Token::Number(word) | Token::Sign(word) => (*word).to_owned(),
            Token::Text(text) => format!("\"{text}\""),
            Token::Char(byte) => format!("'{}'", char::from(*byte)),
            Token::End => String::new(),
        };
        Error::Syntax { found, expected }
    }

    fn name(&mut self) -> Result<&'e str, Error> {
        match self.token {
            Token::Name(name) => {
                self.advance();
                Ok(name)
            }
            _ => Err(self.wrong("a name")),
        }
    }

    fn grown(depth: usize) -> Result<usize, Error> {
        if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(Error::TooDeep) }
    }

    /// A whole expression, `?:` included.
    fn expression(&mut self) -> Result<Deep<'e>, Error> {
        self.open = Self::grown(self.open)?;
        let (condition, depth) = self.binary(0)?;
        let result = if self.eat("?") {
            let (yes, yes_depth) = self.expression()?;
            self.expect(":")?;
            let (no, no_depth) = self.expression()?;
            let depth = Self::grown(depth.max(yes_depth).max(no_depth))?;
            (Node::Conditional(Box::new([condition, yes, no])), depth)
        } else {
            (condition, depth)
        };
        self.open -= 1;
        Ok(result)
    }

    fn binary(&mut self, min_precedence: u8) -> Result<Deep<'e>, Error> {
        let (mut left, mut depth) = self.unary()?;
        while let Token::Sign(sign) = self.token
            && let Some((op, precedence)) = binary_op(sign)
            && precedence >= min_precedence
        {
            self.advance();
            let (right, right_depth) = self.binary(precedence + 1)?;
            depth = Self::grown(depth.max(right_depth))?;
            left = Node::Binary(op, Box::new([left, right]));
        }
        Ok((left, depth))
    }

    fn unary(&mut self) -> Result<Deep<'e>, Error> {
        let op = match self.token {
            Token::Sign("-") => Some(UnaryOp::Negate),
            Token::Sign("~") => Some(UnaryOp::Not),
            Token::Sign("!") => Some(UnaryOp::LogicalNot),
            Token::Sign("+") => None,
            _ => return self.postfix(),
        };
        self.advance();
        self.open = Self::grown(self.open)?;
        let (of, depth) = self.unary()?;
        self.open -= 1;
        match op {
            Some(op) => Ok((Node::Unary(op, Box::new(of)), Self::grown(depth)?)),
            None => Ok((of, depth)),
        }
    }

    fn postfix(&mut self) -> Result<Deep<'e>, Error> {
        let (mut node, mut depth) = self.primary()?;
        while self.eat("[") {
            let (index, index_depth) = self.expression()?;
            self.expect("]")?;
            depth = Self::grown(depth.max(index_depth))?;
            node = Node::Index(Box::new([node, index]));
        }
        Ok((node, depth))
    }

    fn primary(&mut self) -> Result<Deep<'e>, Error> {
        match self.token.clone() {
            Token::Number(text) => {
                let number = parse_number(text, self.long_bits);
                let (value, int) = number.ok_or_else(|| self.wrong("a number"))?;
                self.advance();
                Ok((Node::Number(value, int), 1))
            }
            Token::Char(byte) => {
                self.advance();
                Ok((Node::Number(u64::from(byte), super::ctype::INT), 1))
            }
            Token::Text(text) => {
                self.advance();
                Ok((Node::Text(text), 1))
            }
            Token::Name("REC") => {
                self.advance();
                self.field_of_record()
            }
            Token::Name(name) => {
                self.advance();
                if self.eat("(") { self.call(name) } else { Ok((self.constant(name), 1)) }
            }
            Token::Sign("(") => {
                self.advance();
                self.parenthesis()
            }
            _ => Err(self.wrong("an expression")),
        }
    }

    fn constant(&self, name: &str) -> Node<'e> {
        let known = KNOWN_NAMES.iter().find(|(known, _)| *known == name);
        known.map_or(Node::Name, |(_, value)| Node::Number(*value, super::ctype::INT))
    }

    fn field_of_record(&mut self) -> Result<Deep<'e>, Error> {
        self.expect("->")?;
        Ok((Node::Field(self.field()?), 1))
    }

    fn field(&mut self) -> Result<&'e TraceField, Error> {
        let name = self.name()?;
        self.event.field(name).ok_or_else(|| Error::Field { name: name.to_owned() })
    }

    /// Behind an opening parenthesis: a cast, `(REC)->field`, or an expression.
    fn parenthesis(&mut self) -> Result<Deep<'e>, Error> {
        if let Some(cast) = self.cast_type() {
            self.open = Self::grown(self.open)?;
            let (of, depth) = self.unary()?;
            self.open -= 1;
            return Ok((Node::Cast(cast, Box::new(of)), Self::grown(depth)?));
        }
        if self.token == Token::Name("REC") {
            let mut ahead = self.lexer.clone();
            if ahead.next() == Token::Sign(")") {
                self.advance();
                self.advance();
                return self.field_of_record();
            }
        }
        let inner = self.expression()?;
        self.expect(")")?;
        Ok(inner)
    }

    /// Takes a type and its closing parenthesis, or nothing. Names that C does not have are a type
    /// where an operand follows that cannot follow a value.
    fn cast_type(&mut self) -> Option<CastType> {
        let (mut lexer, mut token) = (self.lexer.clone(), self.token.clone());
        let (mut words, mut stars) = (Vec::new(), 0);
        loop {
            match token {
                Token::Name(word) if word != "REC" && stars == 0 => words.push(word),
                Token::Sign("*") if !words.is_empty() => stars += 1,
                Token::Sign(")") if !words.is_empty() => break,
                _ => return None,
            }
            token = lexer.next();
        }
        let behind = lexer.next();
        let operand = matches!(
            behind,
            Token::Name(_) | Token::Number(_) | Token::Char(_) | Token::Text(_) | Token::Sign("(")
        );
        let only_type = stars > 0 || words.iter().any(|word| is_type_word(word));
        let prefix = matches!(behind, Token::Sign("-" | "~" | "!"));
        if !(operand || (only_type && prefix)) {
            return None;
        }
        (self.lexer, self.token) = (lexer, behind);
        Some(parse_type(&words, stars, self.long_bits))
    }

    /// Behind a function's opening parenthesis.
    fn call(&mut self, name: &str) -> Result<Deep<'e>, Error> {
        let leaf = |node| Ok((node, 1));
        match name {
            "__print_flags" | "__print_flags_u64" => self.flags(),
            "__print_symbolic" | "__print_symbolic64" | "__print_symbolic_u64" => {
                let (value, depth) = self.expression()?;
                let table = self.table()?;
                Ok((Node::Symbolic(Box::new(value), table), Self::grown(depth)?))
            }
            "__print_hex" | "__print_hex_str" => {
                let ([bytes, len], depth) = self.arguments()?;
                Ok((Node::Hex(Box::new([bytes, len]), name == "__print_hex"), depth))
            }
            "__print_array" => {
                let (parts, depth) = self.arguments()?;
                Ok((Node::Array(Box::new(parts)), depth))
            }
            "__get_str" | "__get_rel_str" => leaf(Node::DynamicText(self.only_field()?)),
            "__get_bitmask" | "__get_rel_bitmask" => leaf(Node::Bitmask(self.only_field()?)),
            "__get_cpumask" | "__get_rel_cpumask" => leaf(Node::CpuMask(self.only_field()?)),
            "__get_dynamic_array"
            | "__get_rel_dynamic_array"
            | "__get_sockaddr"
            | "__get_rel_sockaddr"
            | "__get_sockaddr_rel" => leaf(Node::DynamicArray(self.only_field()?)),
            "__get_dynamic_array_len" | "__get_rel_dynamic_array_len" => {
                leaf(Node::DynamicLen(self.only_field()?))
            }
            "__builtin_expect" => {
                let ([value, _], depth) = self.arguments()?;
                Ok((value, depth))
            }
            "sizeof" => self.size_of(),
            _ => Err(Error::Function { name: name.to_owned() }),
        }
    }

    fn only_field(&mut self) -> Result<&'e TraceField, Error> {
        let field = self.field()?;
        self.expect(")")?;
        Ok(field)
    }

    fn arguments<const N: usize>(&mut self) -> Result<([Node<'e>; N], usize), Error> {
        let mut nodes = [const { Node::Name }; N];
        let mut deepest = 0;
        for (index, node) in nodes.iter_mut().enumerate() {
            if index > 0 {
                self.expect(",")?;
            }
            let (argument, depth) = self.expression()?;
            *node = argument;
            deepest = deepest.max(depth);
        }
        self.expect(")")?;
        Ok((nodes, Self::grown(deepest)?))
    }

    fn flags(&mut self) -> Result<Deep<'e>, Error> {
        let (value, depth) = self.expression()?;
        self.expect(",")?;
        let delimiter = match self.token.clone() {
            Token::Text(text) => {
                self.advance();
                text
            }
            _ => String::new(),
        };
        let table = self.table()?;
        Ok((Node::Flags(Box::new(value), delimiter, table), Self::grown(depth)?))
    }

    /// `, { value, "name" }, …)`.
    fn table(&mut self) -> Result<NameTable<'e>, Error> {
        let mut table = Vec::new();
        while self.eat(",") {
            self.expect("{")?;
            if self.eat("}") {
                continue;
            }
            let (value, _) = self.expression()?;
            self.expect(",")?;
            let (name, _) = self.expression()?;
            self.expect("}")?;
            match name {
                Node::Text(name) => table.push((value, name)),
                // `{ 0, NULL }` and `{ -1, 0 }` end some tables.
                Node::Cast(..) | Node::Number(0, _) => {}
                _ => return Err(self.wrong("a table of names")),
            }
        }
        self.expect(")")?;
        Ok(table)
    }

    /// `sizeof` a type or a field.
    fn size_of(&mut self) -> Result<Deep<'e>, Error> {
        let (mut words, mut stars) = (Vec::new(), 0);
        let size = if self.token == Token::Name("REC") {
            self.advance();
            self.expect("->")?;
            self.field()?.size_bytes as u64
        } else {
            while let Token::Name(word) = self.token {
                words.push(word);
                self.advance();
            }
            while self.eat("*") {
                stars += 1;
            }
            match parse_type(&words, stars, self.long_bits) {
                CastType::Int(int) => u64::from(int.bits / 8),
                CastType::Pointer(_) => u64::from(self.long_bits / 8),
                CastType::Other => return Err(self.wrong("a type of known size")),
            }
        };
        self.expect(")")?;
        Ok((Node::Number(size, IntType { bits: self.long_bits, signed: false }), 1))
    }
}

fn binary_op(sign: &str) -> Option<(BinaryOp, u8)> {
    Some(match sign {
        "||" => (BinaryOp::LogicalOr, 1),
        "&&" => (BinaryOp::LogicalAnd, 2),
        "|" => (BinaryOp::Or, 3),
        "^" => (BinaryOp::Xor, 4),
        "&" => (BinaryOp::And, 5),
        "==" => (BinaryOp::Equal, 6),
        "!=" => (BinaryOp::NotEqual, 6),
        "<" => (BinaryOp::Less, 7),
        ">" => (BinaryOp::Greater, 7),
        "<=" => (BinaryOp::LessEqual, 7),
        ">=" => (BinaryOp::GreaterEqual, 7),
        "<<" => (BinaryOp::Shl, 8),
        ">>" => (BinaryOp::Shr, 8),
        "+" => (BinaryOp::Add, 9),
        "-" => (BinaryOp::Sub, 9),
        "*" => (BinaryOp::Mul, 10),
        "/" => (BinaryOp::Div, 10),
        "%" => (BinaryOp::Rem, 10),
        _ => return None,
    })
}
