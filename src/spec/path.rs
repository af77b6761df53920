//! Paths of mistakes: which part of a signature, and which part of that.

use std::fmt;

/// A part of a signature.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Part {
    /// The signature itself.
    Signature,
    /// The parameter of this number, counted from 0; an `EnvStream` counts too.
    Param(usize),
    /// The result.
    Result,
    /// The constraint of this number, counted from 0.
    Constraint(usize),
}

/// A step from a part of a signature, or from a type, to a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// The name of a signature or a parameter.
    Name,
    /// The parameters of a signature, all together.
    Params,
    /// The default of a parameter.
    Default,
    /// The place of a part ([`Place`](super::Place)).
    Place,
    /// The item of a `Tuple`, or the entry of a `Shape`, of this number.
    Item(usize),
    /// The elements of an `Array` or `List`.
    Elements,
    /// The keys of a `Map` or `Dict`.
    Keys,
    /// The values of a `Map` or `Dict`.
    Values,
    /// The sizes of a tensor, all together.
    Shape,
    /// The size of a tensor in the dimension of this number.
    Size(usize),
    /// The strides of a tensor, all together.
    Strides,
    /// The stride of a tensor in the dimension of this number.
    Stride(usize),
    /// The dtype of a tensor.
    DType,
    /// The device of a tensor.
    Device,
    /// The alignment of a tensor.
    Align,
    /// The promise of a tensor that nothing overlaps it.
    NoAlias,
    /// The use that the function makes of a tensor's elements.
    Access,
}

/// The path of a mistake in a signature.
///
/// Its text begins with the part: a parameter's name, or `params[2]` where the name is no identifier or another parameter's; `result`;
/// `where[0]`; nothing for the signature itself. The steps follow as in messages of wrappers: `x.shape[0]`, `cfg[2][0]`, `m.keys()`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Path {
    part: Part,
    /// The name of the parameter, where that tells it from the others.
    name: Option<String>,
    steps: Vec<Step>,
}

impl Path {
    /// The part of the signature.
    pub fn part(&self) -> Part {
        self.part
    }

    /// The name of the parameter, if the path is one's and no other parameter has the name.
    pub fn param_name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The steps from there, from the outside in. No step stands for an `Optional`, and none for the type of a parameter or of the result.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut dot = ".";
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
                Step::Place => write!(f, "{dot}place")?,
                Step::Item(number) => write!(f, "[{number}]")?,
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

/// A path as the checks of a signature go it, step by step, which becomes a [`Path`] where there is a mistake.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub part: Part,
    last: Option<(Step, &'a Way<'a>)>,
}

impl Way<'_> {
    pub(super) fn to(part: Part) -> Self {
        Way { part, last: None }
    }

    /// The way with a step more.
    pub(super) fn then(&self, step: Step) -> Way<'_> {
        Way { part: self.part, last: Some((step, self)) }
    }

    /// The path; `name` is the parameter's, where that tells it from the others.
    pub(super) fn path(&self, name: Option<&str>) -> Path {
        let (mut steps, mut at) = (Vec::new(), self);
        while let Some((step, before)) = at.last {
            steps.push(step);
            at = before;
        }
        steps.reverse();
        Path { part: self.part, name: name.map(str::to_owned), steps }
    }
}
