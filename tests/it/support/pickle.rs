//! Arrays of objects in `.npy` files, which are pickles: as much of the format as the fixtures have, and nothing is run.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Tuple(Vec<Object>),
    List(Vec<Object>),
    Dict(Vec<(Object, Object)>),
    /// An array of numbers: numpy's name of their type, and their bytes.
    Numbers(String, Vec<u8>),
}

impl Object {
    /// The object as JSON, in which a NaN is a text.
    pub fn to_json(&self) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Bool(value) => json!(value),
            Self::Int(value) => json!(value),
            Self::Float(value) if value.is_nan() => json!("NaN"),
            Self::Float(value) => json!(value),
            Self::Text(text) => json!(text),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Dict(members) => {
                let member = |(name, value): &(Self, Self)| match name {
                    Self::Text(name) => (name.clone(), value.to_json()),
                    other => panic!("{other:?} is no name"),
                };
                Value::Object(members.iter().map(member).collect::<Map<_, _>>())
            }
            other => panic!("{other:?} is no JSON"),
        }
    }
}

/// What the machine of a pickle has on its stack, by its place among all that were made: lists are filled after they
/// are kept.
#[derive(Clone, Debug)]
enum Made {
    Plain(Object),
    Tuple(Vec<usize>),
    List(Vec<usize>),
    Dict(Vec<usize>),
    Global(String),
    DataType(String),
    Array(Option<(String, usize)>),
}

/// The objects of a pickled array, in the order they are in memory.
pub fn objects(pickle: &[u8]) -> Vec<Object> {
    let mut machine = Machine { rest: pickle, made: Vec::new(), stack: Vec::new(), marks: Vec::new() };
    let array = machine.run();
    let Made::Array(Some((dtype, data))) = machine.made[array].clone() else { panic!("not an array") };
    assert!(dtype.starts_with('O'), "{dtype}");
    match machine.resolve(data) {
        Object::List(objects) => objects,
        other => panic!("{other:?} are no objects"),
    }
}

struct Machine<'a> {
    rest: &'a [u8],
    made: Vec<Made>,
    stack: Vec<usize>,
    marks: Vec<usize>,
}

impl Machine<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (taken, rest) = self.rest.split_first_chunk().unwrap();
        self.rest = rest;
        *taken
    }

    fn line(&mut self) -> String {
        let end = self.rest.iter().position(|&byte| byte == b'\n').unwrap();
        let line = String::from_utf8(self.rest[..end].to_vec()).unwrap();
        self.rest = &self.rest[end + 1..];
        line
    }

    fn push(&mut self, made: Made) {
        self.stack.push(self.made.len());
        self.made.push(made);
    }

    fn plain(&mut self, object: Object) {
        self.push(Made::Plain(object));
    }

    fn pop(&mut self) -> usize {
        self.stack.pop().unwrap()
    }

    fn since_mark(&mut self) -> Vec<usize> {
        let mark = self.marks.pop().unwrap();
        self.stack.split_off(mark)
    }

    fn tuple(&mut self, count: usize) {
        let items = self.stack.split_off(self.stack.len() - count);
        self.push(Made::Tuple(items));
    }

    fn run(&mut self) -> usize {
        let mut memo = HashMap::new();
        loop {
            match self.take::<1>()[0] {
                0x80 => assert!(self.take::<1>()[0] <= 2),
                b'c' => {
                    let name = format!("{} {}", self.line(), self.line());
                    self.push(Made::Global(name));
                }
                b'q' => {
                    memo.insert(u32::from(self.take::<1>()[0]), *self.stack.last().unwrap());
                }
                b'r' => {
                    memo.insert(u32::from_le_bytes(self.take()), *self.stack.last().unwrap());
                }
                b'h' => {
                    let place = u32::from(self.take::<1>()[0]);
                    self.stack.push(memo[&place]);
                }
                b'j' => {
                    let place = u32::from_le_bytes(self.take());
                    self.stack.push(memo[&place]);
                }
                b'K' => {
                    let number = self.take::<1>()[0];
                    self.plain(Object::Int(number.into()));
                }
                b'M' => {
                    let number = u16::from_le_bytes(self.take());
                    self.plain(Object::Int(number.into()));
                }
                b'J' => {
                    let number = i32::from_le_bytes(self.take());
                    self.plain(Object::Int(number.into()));
                }
                b'G' => {
                    let number = f64::from_be_bytes(self.take());
                    self.plain(Object::Float(number));
                }
                b'X' => {
                    let length = usize::try_from(u32::from_le_bytes(self.take())).unwrap();
                    let (text, rest) = self.rest.split_at(length);
                    self.rest = rest;
                    self.plain(Object::Text(String::from_utf8(text.to_vec()).unwrap()));
                }
                b'N' => self.plain(Object::None),
                0x88 => self.plain(Object::Bool(true)),
                0x89 => self.plain(Object::Bool(false)),
                b'(' => self.marks.push(self.stack.len()),
                b't' => {
                    let items = self.since_mark();
                    self.push(Made::Tuple(items));
                }
                count @ 0x85..=0x87 => self.tuple(usize::from(count - 0x84)),
                b']' => self.push(Made::List(Vec::new())),
                b'}' => self.push(Made::Dict(Vec::new())),
                b'e' | b'u' => {
                    let more = self.since_mark();
                    match &mut self.made[*self.stack.last().unwrap()] {
                        Made::List(items) | Made::Dict(items) => items.extend(more),
                        other => panic!("{other:?} is not filled"),
                    }
                }
                b'R' => self.reduce(),
                b'b' => self.build(),
                b'.' => return self.pop(),
                other => panic!("opcode {other:#x}"),
            }
        }
    }

    /// The calls that numpy's pickles ask for.
    fn reduce(&mut self) {
        let (arguments, function) = (self.pop(), self.pop());
        let Object::Tuple(arguments) = self.resolve(arguments) else { panic!("no arguments") };
        let Made::Global(name) = self.made[function].clone() else { panic!("no function") };
        match (name.as_str(), arguments.as_slice()) {
            ("_codecs encode", [Object::Text(text), _]) => {
                let bytes = text.chars().map(|byte| u8::try_from(u32::from(byte)).unwrap()).collect();
                self.plain(Object::Bytes(bytes));
            }
            ("numpy.core.multiarray _reconstruct", _) => self.push(Made::Array(None)),
            ("numpy dtype", [Object::Text(name), ..]) => self.push(Made::DataType(name.clone())),
            other => panic!("{other:?} is not called here"),
        }
    }

    fn build(&mut self) {
        let (state, object) = (self.pop(), self.pop());
        let Made::Tuple(state) = self.made[state].clone() else { panic!("no state") };
        // The state of a data type is its byte order, which is little-endian throughout.
        if let Made::Array(_) = self.made[object] {
            let Made::DataType(dtype) = self.made[state[2]].clone() else { panic!("no data type") };
            self.made[object] = Made::Array(Some((dtype, state[4])));
        }
        self.stack.push(object);
    }

    fn resolve(&self, place: usize) -> Object {
        let all = |places: &[usize]| places.iter().map(|&place| self.resolve(place)).collect();
        match &self.made[place] {
            Made::Plain(object) => object.clone(),
            Made::Tuple(items) => Object::Tuple(all(items)),
            Made::List(items) => Object::List(all(items)),
            Made::Dict(items) => {
                let pair = |pair: &[usize]| (self.resolve(pair[0]), self.resolve(pair[1]));
                Object::Dict(items.chunks(2).map(pair).collect())
            }
            // Always the class of the reconstructed object.
            Made::Global(name) | Made::DataType(name) => Object::Text(name.clone()),
            Made::Array(state) => {
                let (dtype, data) = state.clone().unwrap();
                match self.resolve(data) {
                    Object::Bytes(bytes) => Object::Numbers(dtype, bytes),
                    other => panic!("{other:?} are no numbers"),
                }
            }
        }
    }
}
