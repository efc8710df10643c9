//! Whole values, for the few places that hand a part of a record on.

use serde_json::{Map, Number, Value};

use super::cursor::{Bytes, SliceBytes};
use super::{Kept, Read, Reader, Start};

/// How deep a value may be to be handed on whole. What lies deeper becomes null; JSON writers and readers downstream
/// stop at about the same depth.
pub(super) const DEPTH_MAX: usize = 120;

/// Reads one whole value. None when the bytes are no JSON.
pub(crate) fn value(bytes: &[u8]) -> Option<Value> {
    let mut reader = Reader::new(SliceBytes::new(bytes, 0));
    let value = read(&mut reader, DEPTH_MAX).ok()?;
    reader.is_at_end().then_some(value)
}

fn read<B: Bytes>(reader: &mut Reader<B>, depth: usize) -> Read<Value> {
    let Some(inner) = depth.checked_sub(1) else {
        reader.skip()?;
        return Ok(Value::Null);
    };
    match reader.start()? {
        Start::String => string(reader).map(Value::String),
        Start::Word => reader.word().map(|word| word_value(&word)),
        Start::Array => {
            let mut elements = Vec::new();
            reader.array(|reader| {
                elements.push(read(reader, inner)?);
                Ok(())
            })?;
            Ok(Value::Array(elements))
        }
        Start::Object => object(reader, inner),
    }
}

fn object<B: Bytes>(reader: &mut Reader<B>, depth: usize) -> Read<Value> {
    let mut fields = Map::new();
    reader.members(
        || Kept::new(usize::MAX),
        |key, reader| {
            fields.insert(key.into_prefix(), read(reader, depth)?);
            Ok(())
        },
    )?;
    Ok(Value::Object(fields))
}

fn string<B: Bytes>(reader: &mut Reader<B>) -> Read<String> {
    let mut kept = Kept::new(usize::MAX);
    reader.string(&mut kept)?;
    Ok(kept.into_prefix())
}

/// A number that no double can hold is infinite in a browser, and JSON has no word for that.
pub(super) fn word_value(word: &str) -> Value {
    match word {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        number => number_value(number).map_or(Value::Null, Value::Number),
    }
}

fn number_value(text: &str) -> Option<Number> {
    let whole = text.parse().ok().map(|number: i64| Number::from(number));
    whole.or_else(|| Number::from_f64(text.parse().ok()?))
}
