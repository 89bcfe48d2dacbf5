//! The JSON Schema of the manifest, made from the same tables of keys that the decoder reads.
//!
//! For editors: it knows keys, shapes and words; ranges, references and layers are judged by `check`.

use serde_json::{Map, Value, json};

use super::tables::{Field, Form, GROUP, Shape, TOP};

/// The schema as pretty-printed JSON with a final newline.
pub fn schema() -> String {
    let mut root = Map::new();
    root.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    root.insert("title".to_owned(), json!("provision manifest"));
    root.insert("description".to_owned(), json!("What a GPU cluster shall be."));
    root.extend(map(TOP, false));
    // What top, groups and nodes may all say is written once.
    let shared = GROUP.iter().map(|field| {
        let mut schema = or_null(&field.shape);
        schema.insert("description".to_owned(), json!(field.about));
        (field.key.to_owned(), Value::Object(schema))
    });
    root.insert("$defs".to_owned(), Value::Object(shared.collect()));
    let mut text = serde_json::to_string_pretty(&Value::Object(root)).unwrap_or_default();
    text.push('\n');
    text
}

/// A map's schema. `whole` is true for things in lists, in which `~` can unset nothing.
fn map(fields: &[Field], whole: bool) -> Map<String, Value> {
    let layer = fields.iter().any(|field| field.key == "packages");
    let whole = whole && !layer;
    let mut properties = Map::new();
    for field in fields {
        if layer && GROUP.iter().any(|shared| shared.key == field.key) {
            properties.insert(field.key.to_owned(), json!({"$ref": format!("#/$defs/{}", field.key)}));
            continue;
        }
        let mut schema = if whole || field.needed { shape(&field.shape, whole) } else { or_null(&field.shape) };
        schema.insert("description".to_owned(), json!(field.about));
        properties.insert(field.key.to_owned(), Value::Object(schema));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    let needed: Vec<&str> = fields.iter().filter(|field| field.needed).map(|field| field.key).collect();
    if !needed.is_empty() {
        schema.insert("required".to_owned(), json!(needed));
    }
    schema
}

fn or_null(wanted: &Shape) -> Map<String, Value> {
    let inner = shape(wanted, false);
    match inner.get("anyOf").and_then(Value::as_array) {
        Some(several) => {
            let mut several = several.clone();
            several.push(json!({"type": "null"}));
            any_of(several)
        }
        None => any_of(vec![Value::Object(inner), json!({"type": "null"})]),
    }
}

fn any_of(several: Vec<Value>) -> Map<String, Value> {
    Map::from_iter([("anyOf".to_owned(), Value::Array(several))])
}

fn shape(wanted: &Shape, whole: bool) -> Map<String, Value> {
    let object = |value: Value| if let Value::Object(map) = value { map } else { Map::new() };
    match wanted {
        Shape::Switch => object(json!({"type": "boolean"})),
        Shape::Text(form) => text(*form),
        Shape::Choice(words) => object(json!({"enum": words})),
        Shape::List(inner) => object(json!({"type": "array", "items": shape(inner, true)})),
        Shape::OneOrMany(inner) => {
            let one = shape(inner, whole);
            let many = json!({"type": "array", "items": shape(inner, true)});
            any_of(vec![Value::Object(one), many])
        }
        Shape::Map(fields) => map(fields, whole),
        Shape::ShortOrMap(fields) => {
            let short = fields.first().map(|first| shape(&first.shape, whole)).unwrap_or_default();
            any_of(vec![Value::Object(short), Value::Object(map(fields, whole))])
        }
        Shape::Free(_, inner) => {
            let inner = if whole { shape(inner, true) } else { or_null(inner) };
            object(json!({"type": "object", "additionalProperties": inner}))
        }
    }
}

/// Versions and most other texts may be written bare, so an editor must take numbers and truth values for text.
fn text(form: Form) -> Map<String, Value> {
    let value = match form {
        Form::Format => json!({"const": 1}),
        Form::Port => json!({"type": "integer", "minimum": 1, "maximum": 65535}),
        Form::Count => json!({"type": "integer", "minimum": 0}),
        Form::Secret => json!({"type": "string", "pattern": "^(\\$\\{(env|file|command|age):[^}]+\\})+$"}),
        Form::NodePath => json!({"type": "string", "pattern": "^/"}),
        Form::Mode => json!({"type": ["string", "integer"]}),
        Form::Any | Form::Content => json!({"type": ["string", "number", "boolean"]}),
        Form::Url | Form::Jump | Form::HostKey | Form::Gpus | Form::Date | Form::Code => json!({"type": "string"}),
        _ => json!({"type": ["string", "number"]}),
    };
    if let Value::Object(map) = value { map } else { Map::new() }
}
