use std::collections::BTreeMap;

use super::{Global, Id, Object, Pickle, PickleError, Value};

const BYTES: usize = 64 << 20;
const INSTRUCTIONS: usize = 1 << 20;
const MARKS: usize = 256;

/// Reads a pickle of protocol 2 to 5.
pub(crate) fn parse(bytes: &[u8]) -> Result<Pickle<'_>, PickleError> {
    if bytes.len() > BYTES {
        return Err(PickleError::TooLarge {
            limit: BYTES,
            what: "bytes",
        });
    }
    let mut machine = Machine {
        bytes,
        at: 0,
        instruction: 0,
        values: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: BTreeMap::new(),
    };
    for _ in 0..INSTRUCTIONS {
        if let Some(root) = machine.step()? {
            return Ok(Pickle {
                values: machine.values,
                root,
            });
        }
    }
    Err(PickleError::TooLarge {
        limit: INSTRUCTIONS,
        what: "instructions",
    })
}

/// Invariants: marks are in ascending order and no greater than the height of the stack; every place on the stack and
/// in the memo is one of `values`, of which there are no more than [`INSTRUCTIONS`].
struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the instruction under way begins.
    instruction: usize,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: BTreeMap<u32, Id>,
}

/// Instruction codes, named as in Python's own `pickle.py`.
mod code {
    pub(super) const PROTO: u8 = 0x80;
    pub(super) const FRAME: u8 = 0x95;
    pub(super) const STOP: u8 = b'.';
    pub(super) const MARK: u8 = b'(';
    pub(super) const POP: u8 = b'0';
    pub(super) const POP_MARK: u8 = b'1';
    pub(super) const NONE: u8 = b'N';
    pub(super) const NEWTRUE: u8 = 0x88;
    pub(super) const NEWFALSE: u8 = 0x89;
    pub(super) const BININT: u8 = b'J';
    pub(super) const BININT1: u8 = b'K';
    pub(super) const BININT2: u8 = b'M';
    pub(super) const LONG1: u8 = 0x8a;
    pub(super) const LONG4: u8 = 0x8b;
    pub(super) const BINFLOAT: u8 = b'G';
    pub(super) const BINUNICODE: u8 = b'X';
    pub(super) const SHORT_BINUNICODE: u8 = 0x8c;
    pub(super) const BINUNICODE8: u8 = 0x8d;
    pub(super) const BINBYTES: u8 = b'B';
    pub(super) const SHORT_BINBYTES: u8 = b'C';
    pub(super) const BINBYTES8: u8 = 0x8e;
    pub(super) const BYTEARRAY8: u8 = 0x96;
    pub(super) const EMPTY_TUPLE: u8 = b')';
    pub(super) const TUPLE: u8 = b't';
    pub(super) const TUPLE1: u8 = 0x85;
    pub(super) const TUPLE2: u8 = 0x86;
    pub(super) const TUPLE3: u8 = 0x87;
    pub(super) const EMPTY_LIST: u8 = b']';
    pub(super) const LIST: u8 = b'l';
    pub(super) const APPEND: u8 = b'a';
    pub(super) const APPENDS: u8 = b'e';
    pub(super) const EMPTY_DICT: u8 = b'}';
    pub(super) const DICT: u8 = b'd';
    pub(super) const SETITEM: u8 = b's';
    pub(super) const SETITEMS: u8 = b'u';
    pub(super) const BINPUT: u8 = b'q';
    pub(super) const LONG_BINPUT: u8 = b'r';
    pub(super) const MEMOIZE: u8 = 0x94;
    pub(super) const BINGET: u8 = b'h';
    pub(super) const LONG_BINGET: u8 = b'j';
    pub(super) const GLOBAL: u8 = b'c';
    pub(super) const STACK_GLOBAL: u8 = 0x93;
    pub(super) const REDUCE: u8 = b'R';
    pub(super) const NEWOBJ: u8 = 0x81;
    pub(super) const BUILD: u8 = b'b';
    pub(super) const BINPERSID: u8 = b'Q';
}

impl<'a> Machine<'a> {
    /// Takes one instruction; the root, where it was the last.
    fn step(&mut self) -> Result<Option<Id>, PickleError> {
        self.instruction = self.at;
        let [code] = self.array()?;
        match code {
            code::PROTO => {
                let [protocol] = self.array()?;
                if !(2..=5).contains(&protocol) {
                    return Err(self.malformed("only protocols 2 to 5 are read"));
                }
            }
            // Frames only help readers that buffer.
            code::FRAME => drop(self.array::<8>()?),
            code::STOP => return self.stop().map(Some),
            code::MARK => self.mark()?,
            code::POP => match self.marks.last() {
                // As Python does: a pop of a mark, where nothing lies on it, takes the mark away.
                Some(mark) if *mark == self.stack.len() => drop(self.marks.pop()),
                _ => drop(self.pop()?),
            },
            code::POP_MARK => drop(self.pop_to_mark()?),
            code::BINPUT | code::LONG_BINPUT | code::MEMOIZE | code::BINGET | code::LONG_BINGET => {
                self.remember(code)?;
            }
            code::GLOBAL => {
                let module = self.line()?;
                let name = self.line()?;
                self.global(module, name)?;
            }
            code::STACK_GLOBAL => {
                let name = self.pop_text()?;
                let module = self.pop_text()?;
                self.global(module, name)?;
            }
            code::REDUCE | code::NEWOBJ => self.call()?,
            code::BUILD => self.build()?,
            code::BINPERSID => {
                let id = self.pop()?;
                self.push(Value::Persistent(id));
            }
            code => {
                if !self.scalar(code)? && !self.container(code)? {
                    return Err(PickleError::Instruction {
                        at: self.instruction,
                        code,
                    });
                }
            }
        }
        Ok(None)
    }

    /// Takes an instruction that makes a value without parts; whether it was one.
    fn scalar(&mut self, code: u8) -> Result<bool, PickleError> {
        let value = match code {
            code::NONE => Value::None,
            code::NEWTRUE => Value::Bool(true),
            code::NEWFALSE => Value::Bool(false),
            code::BININT => Value::Int(i32::from_le_bytes(self.array()?).into()),
            code::BININT1 => Value::Int(u8::from_le_bytes(self.array()?).into()),
            code::BININT2 => Value::Int(u16::from_le_bytes(self.array()?).into()),
            code::LONG1 => {
                let length = u8::from_le_bytes(self.array()?);
                long(self.take(length.into())?)
            }
            code::LONG4 => {
                let length = u32::from_le_bytes(self.array()?);
                long(self.take(length.into())?)
            }
            code::BINFLOAT => Value::Float(f64::from_be_bytes(self.array()?)),
            code::BINUNICODE | code::SHORT_BINUNICODE | code::BINUNICODE8 => {
                let bytes = self.counted(code)?;
                Value::Text(str::from_utf8(bytes).map_err(|_| self.malformed("a text is not UTF-8"))?)
            }
            code::BINBYTES | code::SHORT_BINBYTES | code::BINBYTES8 | code::BYTEARRAY8 => {
                Value::Bytes(self.counted(code)?)
            }
            _ => return Ok(false),
        };
        self.push(value);
        Ok(true)
    }

    /// Takes an instruction that makes or fills a tuple, a list or a dict; whether it was one.
    fn container(&mut self, code: u8) -> Result<bool, PickleError> {
        match code {
            code::EMPTY_TUPLE => self.push(Value::Tuple(Vec::new())),
            code::TUPLE1 => self.tuple(1)?,
            code::TUPLE2 => self.tuple(2)?,
            code::TUPLE3 => self.tuple(3)?,
            code::TUPLE => {
                let items = self.pop_to_mark()?;
                self.push(Value::Tuple(items));
            }
            code::EMPTY_LIST => self.push(Value::List(Vec::new())),
            code::LIST => {
                let items = self.pop_to_mark()?;
                self.push(Value::List(items));
            }
            code::APPEND => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            code::APPENDS => {
                let items = self.pop_to_mark()?;
                self.append(&items)?;
            }
            code::EMPTY_DICT => self.push(Value::Dict(Vec::new())),
            code::DICT => {
                let items = self.pop_to_mark()?;
                self.push(Value::Dict(Vec::new()));
                self.set_items(&items)?;
            }
            code::SETITEM => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set_items(&[key, value])?;
            }
            code::SETITEMS => {
                let items = self.pop_to_mark()?;
                self.set_items(&items)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes an instruction that keeps the value on top, or pushes one that was kept.
    fn remember(&mut self, code: u8) -> Result<(), PickleError> {
        let index = match code {
            code::BINPUT | code::BINGET => u8::from_le_bytes(self.array()?).into(),
            code::MEMOIZE => self.memo.len() as u32,
            _ => u32::from_le_bytes(self.array()?),
        };
        if !matches!(code, code::BINGET | code::LONG_BINGET) {
            let id = self.top()?;
            self.memo.insert(index, id);
            return Ok(());
        }
        match self.memo.get(&index) {
            Some(id) => {
                self.stack.push(*id);
                Ok(())
            }
            None => Err(self.malformed("it refers to a value that was not kept")),
        }
    }

    fn stop(&mut self) -> Result<Id, PickleError> {
        let root = self.pop()?;
        if !self.stack.is_empty() || !self.marks.is_empty() {
            return Err(self.malformed("it ends before its values are complete"));
        }
        if self.at != self.bytes.len() {
            return Err(self.malformed("more bytes follow its end"));
        }
        Ok(root)
    }

    fn call(&mut self) -> Result<(), PickleError> {
        let arguments = self.pop()?;
        let callable = self.pop()?;
        let Value::Global(class) = *self.value(callable) else {
            return Err(self.malformed("it calls something that is not an imported name"));
        };
        if !matches!(self.value(arguments), Value::Tuple(_)) {
            return Err(self.malformed("it calls with something other than a tuple"));
        }
        self.push(Value::Object(Box::new(Object {
            class,
            arguments,
            state: None,
            items: Vec::new(),
        })));
        Ok(())
    }

    fn build(&mut self) -> Result<(), PickleError> {
        let state = self.pop()?;
        let target = self.top()?;
        match &mut self.values[target.0 as usize] {
            Value::Object(object) if object.state.is_none() => {
                object.state = Some(state);
                Ok(())
            }
            _ => Err(self.malformed("it completes something that is not an object, or completes one twice")),
        }
    }

    fn append(&mut self, items: &[Id]) -> Result<(), PickleError> {
        let target = self.top()?;
        match &mut self.values[target.0 as usize] {
            Value::List(list) => {
                list.extend_from_slice(items);
                Ok(())
            }
            _ => Err(self.malformed("it appends to something that is not a list")),
        }
    }

    fn set_items(&mut self, items: &[Id]) -> Result<(), PickleError> {
        let target = self.top()?;
        let (pairs, rest) = items.as_chunks::<2>();
        let entries = match &mut self.values[target.0 as usize] {
            Value::Dict(entries) => entries,
            Value::Object(object) if object.class == Global::OrderedDict => &mut object.items,
            _ => return Err(self.malformed("it sets items of something that is not a dict")),
        };
        entries.extend(pairs.iter().map(|[key, value]| (*key, *value)));
        if rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed("a key lacks its value"))
        }
    }

    fn global(&mut self, module: &str, name: &str) -> Result<(), PickleError> {
        match Global::named(module, name) {
            Some(global) => {
                self.push(Value::Global(global));
                Ok(())
            }
            None => Err(PickleError::Forbidden(shown(&format!("{module}.{name}")))),
        }
    }

    fn tuple(&mut self, count: usize) -> Result<(), PickleError> {
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(self.pop()?);
        }
        items.reverse();
        self.push(Value::Tuple(items));
        Ok(())
    }

    fn mark(&mut self) -> Result<(), PickleError> {
        if self.marks.len() == MARKS {
            return Err(PickleError::TooLarge {
                limit: MARKS,
                what: "levels of nesting",
            });
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(Id(self.values.len() as u32));
        self.values.push(value);
    }

    fn top(&self) -> Result<Id, PickleError> {
        let floor = self.marks.last().copied().unwrap_or(0);
        match self.stack.last() {
            Some(id) if self.stack.len() > floor => Ok(*id),
            _ => Err(self.malformed("an instruction finds nothing to work on")),
        }
    }

    fn pop(&mut self) -> Result<Id, PickleError> {
        let id = self.top()?;
        self.stack.pop();
        Ok(id)
    }

    fn pop_text(&mut self) -> Result<&'a str, PickleError> {
        let id = self.pop()?;
        match *self.value(id) {
            Value::Text(text) => Ok(text),
            _ => Err(self.malformed("an imported name is not a text")),
        }
    }

    fn pop_to_mark(&mut self) -> Result<Vec<Id>, PickleError> {
        match self.marks.pop() {
            // Collected, so that a tuple never inherits the capacity of the stack.
            Some(mark) => Ok(self.stack.drain(mark..).collect()),
            None => Err(self.malformed("an instruction looks for a mark that is not there")),
        }
    }

    fn value(&self, id: Id) -> &Value<'a> {
        &self.values[id.0 as usize]
    }

    /// Bytes behind a length whose width depends on the instruction.
    fn counted(&mut self, code: u8) -> Result<&'a [u8], PickleError> {
        let length = match code {
            code::SHORT_BINUNICODE | code::SHORT_BINBYTES => u8::from_le_bytes(self.array()?).into(),
            code::BINUNICODE | code::BINBYTES => u32::from_le_bytes(self.array()?).into(),
            _ => u64::from_le_bytes(self.array()?),
        };
        self.take(length)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], PickleError> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
        {
            Some((taken, _)) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(PickleError::Truncated(self.bytes.len())),
        }
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], PickleError> {
        match self.bytes[self.at..].first_chunk() {
            Some(bytes) => {
                self.at += LENGTH;
                Ok(*bytes)
            }
            None => Err(PickleError::Truncated(self.bytes.len())),
        }
    }

    fn line(&mut self) -> Result<&'a str, PickleError> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            return Err(PickleError::Truncated(self.bytes.len()));
        };
        self.at += length + 1;
        str::from_utf8(&rest[..length]).map_err(|_| self.malformed("an imported name is not UTF-8"))
    }

    fn malformed(&self, what: &'static str) -> PickleError {
        PickleError::Malformed {
            at: self.instruction,
            what,
        }
    }
}

/// A two's complement number of any length, least significant byte first.
fn long(bytes: &[u8]) -> Value<'static> {
    let negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 8];
    match wide.get_mut(..bytes.len()) {
        Some(low) => {
            low.copy_from_slice(bytes);
            Value::Int(i64::from_le_bytes(wide))
        }
        None => Value::BigInt,
    }
}

/// A text from the file as a message may show it: printable and short.
fn shown(text: &str) -> String {
    text.chars().take(120).flat_map(char::escape_debug).collect()
}
