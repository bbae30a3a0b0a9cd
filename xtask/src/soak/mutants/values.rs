//! What a function returns whose body is replaced: values by the name of its type.

use syn::{GenericArgument, PathArguments, ReturnType, Type, TypeParamBound};

/// The most values of one type.
const MOST: usize = 4;

/// Types of the array without a `Default`, and their values.
const KNOWN: [(&str, &[&str]); 6] = [
    ("DriveSet", &["levelhead_units::DriveSet::EMPTY"]),
    ("Instant", &["levelhead_units::Instant::ZERO"]),
    ("Lba", &["levelhead_units::Lba::ZERO"]),
    ("Moved", &["crate::Moved::No", "crate::Moved::Yes"]),
    ("Nanos", &["levelhead_units::Nanos::ZERO"]),
    ("Sectors", &["levelhead_units::Sectors::ZERO"]),
];

/// Values that a function with this return type may return.
pub(super) fn of(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".into()],
        ReturnType::Type(_, returned) => of_type(returned),
    }
}

fn of_type(returned: &Type) -> Vec<String> {
    let mut values = match returned {
        Type::Never(_) => Vec::new(),
        Type::Paren(inner) => of_type(&inner.elem),
        Type::Path(path) => of_path(path),
        Type::Tuple(tuple) => {
            let mut all = vec![Vec::new()];
            for each in &tuple.elems {
                let values = of_type(each);
                all = all
                    .iter()
                    .flat_map(|before: &Vec<String>| {
                        values
                            .iter()
                            .map(move |value| [&before[..], std::slice::from_ref(value)].concat())
                    })
                    .collect();
            }
            let one = |values: Vec<String>| match values.len() {
                1 => format!("({},)", values[0]),
                _ => format!("({})", values.join(", ")),
            };
            all.into_iter().map(one).collect()
        }
        Type::Reference(reference) => match &*reference.elem {
            Type::Path(path) if path.path.is_ident("str") => {
                vec!["\"\"".into(), "\"xyzzy\"".into()]
            }
            Type::Slice(slice) => {
                let leaked = |text: String| format!("Vec::leak({text})");
                let one = of_type(&slice.elem).into_iter().map(|value| format!("vec![{value}]"));
                std::iter::once("Vec::new()".to_owned()).chain(one).map(leaked).collect()
            }
            to => {
                let leaked = |value| format!("Box::leak(Box::new({value}))");
                of_type(to).into_iter().map(leaked).collect()
            }
        },
        Type::Array(array) => {
            let only = of_type(&array.elem);
            only.into_iter().map(|value| format!("[{value}; _]")).collect()
        }
        Type::ImplTrait(implied) => {
            let iterated = implied.bounds.iter().find_map(|bound| match bound {
                TypeParamBound::Trait(bound) => bound.path.segments.last(),
                _ => None,
            });
            match iterated {
                Some(last) if last.ident.to_string().ends_with("Iterator") => {
                    vec!["std::iter::empty()".into()]
                }
                _ => vec!["Default::default()".into()],
            }
        }
        _ => vec!["Default::default()".into()],
    };
    values.truncate(MOST);
    values
}

fn of_path(path: &syn::TypePath) -> Vec<String> {
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let inner: Vec<&Type> = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => {
            let types = arguments.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(inner) => Some(inner),
                _ => None,
            });
            types.collect()
        }
        _ => Vec::new(),
    };
    let name = last.ident.to_string();
    let text = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<String>>();
    if let Some((_, values)) = KNOWN.iter().find(|(known, _)| *known == name) {
        return text(values);
    }
    let each = |form: &dyn Fn(String) -> String| -> Vec<String> {
        inner.first().map_or(Vec::new(), |first| of_type(first).into_iter().map(form).collect())
    };
    let (mut values, more) = match name.as_str() {
        "bool" => (text(&["true", "false"]), Vec::new()),
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => (text(&["0", "1"]), Vec::new()),
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => (text(&["0", "1", "-1"]), Vec::new()),
        "f32" | "f64" => (text(&["0.0", "1.0", "-1.0"]), Vec::new()),
        "String" => (text(&["String::new()", "\"xyzzy\".into()"]), Vec::new()),
        "Result" => (Vec::new(), each(&|value| format!("Ok({value})"))),
        "Option" => (text(&["None"]), each(&|value| format!("Some({value})"))),
        "Vec" => (text(&["vec![]"]), each(&|value| format!("vec![{value}]"))),
        "VecDeque" | "BTreeSet" => {
            let one = each(&|value| format!("std::iter::once({value}).collect()"));
            (vec![format!("std::collections::{name}::new()")], one)
        }
        "BTreeMap" => (text(&["std::collections::BTreeMap::new()"]), Vec::new()),
        "Box" | "Rc" | "Arc" => (Vec::new(), each(&|value| format!("{name}::new({value})"))),
        _ => (text(&["Default::default()"]), Vec::new()),
    };
    values.extend(more);
    values
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_value_is_made_for_each_type_by_its_name() {
        let cases: [(&str, &[&str]); 7] = [
            ("-> bool", &["true", "false"]),
            ("-> Option<u64>", &["None", "Some(0)", "Some(1)"]),
            ("-> Result<(), Error>", &["Ok(())"]),
            ("-> Vec<Thing>", &["vec![]", "vec![Default::default()]"]),
            ("-> (bool, u8)", &["(true, 0)", "(true, 1)", "(false, 0)", "(false, 1)"]),
            ("-> impl Iterator<Item = u8> + '_", &["std::iter::empty()"]),
            ("-> !", &[]),
        ];
        for (text, want) in cases {
            assert_eq!(super::of(&syn::parse_str(text).expect("it is a type")), want, "{text}");
        }
    }
}
