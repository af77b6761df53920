//! Paths of errors: a part of a signature, and the steps to a part of it.

use std::fmt;

/// A part of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Part {
    /// The signature itself.
    Signature,
    /// The parameter with this index, counted from 0; an `EnvStream` counts too.
    Param(usize),
    /// The result.
    Result,
    /// The constraint with this index, counted from 0.
    Constraint(usize),
}

/// A step from a part of a signature, or from a type, to a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// The name of a signature or a parameter.
    Name,
    /// The parameters of a signature as a whole.
    Params,
    /// The default of a parameter.
    Default,
    /// The location of a part ([`SourceLocation`](super::SourceLocation)).
    SourceLocation,
    /// The item of a `Tuple`, or the entry of a `Shape`, with this index.
    Item(usize),
    /// The field of a `Record` with this index.
    Field(usize),
    /// The elements of an `Array` or `List`.
    Elements,
    /// The keys of a `Map` or `Dict`.
    Keys,
    /// The values of a `Map` or `Dict`.
    Values,
    /// The sizes of a tensor as a whole.
    Shape,
    /// The size of a tensor in the dimension with this index.
    Size(usize),
    /// The strides of a tensor as a whole.
    Strides,
    /// The stride of a tensor in the dimension with this index.
    Stride(usize),
    /// The dtype of a tensor.
    DType,
    /// The device of a tensor.
    Device,
    /// The alignment of a tensor.
    Align,
    /// A tensor's `noalias` promise.
    NoAlias,
    /// The declared use of a tensor's elements.
    Access,
}

/// The path of an error in a signature.
///
/// As a string it begins with the part: a parameter's name (or `params[2]` if the name isn't an identifier or isn't
/// unique), `result`, `where[0]`, or nothing for the signature itself. The steps follow, in the notation of wrappers'
/// messages: `x.shape[0]`, `cfg[2][0]`, `m.keys()`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    part: Part,
    /// The name of the parameter, if it identifies the parameter.
    name: Option<String>,
    steps: Vec<Step>,
    /// The names of the fields among the steps, in order; fewer if a name isn't an identifier.
    fields: Vec<String>,
}

impl Path {
    /// The part of the signature.
    pub fn part(&self) -> Part {
        self.part
    }

    /// The name of the parameter, if the path is in a parameter and the name identifies it.
    pub fn param_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The steps from that part, outermost first. There is no step for an `Optional`, or for the type of a parameter
    /// or of the result.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut dot = ".";
        let mut fields = self.fields.iter();
        match (self.part, &self.name) {
            (Part::Signature, _) => dot = "",
            (Part::Param(_), Some(name)) => f.write_str(name)?,
            (Part::Param(number), None) => write!(f, "params[{number}]")?,
            (Part::Result, _) => f.write_str("result")?,
            (Part::Constraint(number), _) => write!(f, "where[{number}]")?,
        }
        for step in &self.steps {
            match step {
                Step::Name => write!(f, "{dot}name")?,
                Step::Params => write!(f, "{dot}params")?,
                Step::Default => write!(f, "{dot}default")?,
                Step::SourceLocation => write!(f, "{dot}location")?,
                Step::Item(number) => write!(f, "[{number}]")?,
                Step::Field(number) => match fields.next() {
                    Some(name) => write!(f, "{dot}{name}")?,
                    None => write!(f, "{dot}fields[{number}]")?,
                },
                Step::Elements | Step::Values => f.write_str("[...]")?,
                Step::Keys => write!(f, "{dot}keys()")?,
                Step::Shape => write!(f, "{dot}shape")?,
                Step::Size(number) => write!(f, "{dot}shape[{number}]")?,
                Step::Strides => write!(f, "{dot}strides")?,
                Step::Stride(number) => write!(f, "{dot}strides[{number}]")?,
                Step::DType => write!(f, "{dot}dtype")?,
                Step::Device => write!(f, "{dot}device")?,
                Step::Align => write!(f, "{dot}align")?,
                Step::NoAlias => write!(f, "{dot}noalias")?,
                Step::Access => write!(f, "{dot}access")?,
            }
        }
        Ok(())
    }
}

/// A path that the checks of a signature extend step by step. It becomes a [`Path`] if there is an error.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub part: Part,
    last: Option<(Step, &'a Way<'a>)>,
}

impl Way<'_> {
    pub(super) fn to(part: Part) -> Self {
        Way { part, last: None }
    }

    /// This path with one more step.
    pub(super) fn then(&self, step: Step) -> Way<'_> {
        Way { part: self.part, last: Some((step, self)) }
    }

    /// Converts to a path; `name` is the parameter's name if it identifies the parameter. `field` finds the name of the
    /// field at the end of steps, if it is an identifier.
    pub(super) fn path(&self, name: Option<&str>, field: impl Fn(&[Step]) -> Option<String>) -> Path {
        let (mut steps, mut at) = (Vec::new(), self);
        while let Some((step, before)) = at.last {
            steps.push(step);
            at = before;
        }
        steps.reverse();
        let ends = (1..=steps.len()).filter(|end| matches!(steps[end - 1], Step::Field(_)));
        let fields = ends.map_while(|end| field(&steps[..end])).collect();
        Path { part: self.part, name: name.map(str::to_owned), steps, fields }
    }
}
