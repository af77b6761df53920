//! Symbolic values.

use tvm_ffi_codegen::ir::{IntCC, StackSlot};
use tvm_ffi_codegen::runtime::abi::TypeIndex;

/// The number of a reference that the code owns.
pub type Id = u32;

/// Memory of a function and its callees.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Place {
    /// The result of the function.
    Result,
    /// A slot of a function, which is that many calls below the first.
    Slot(usize, StackSlot),
}

/// A value as far as it is known.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Symbol {
    Unknown,
    /// Neither 0 nor NULL.
    NonZero,
    Const(i64),
    Address(Place, i64),
    /// An address in that memory, at a distance that is known only at run time.
    Within(Place),
    /// An entry of a list in the code's own memory.
    Listed,
    /// The type index of a value that isn't an object.
    Plain,
    /// The type index of the value that may hold the reference.
    Index(Id),
    /// The payload of that value.
    Payload(Id),
    /// A pointer to the object, or NULL if there is none.
    Handle(Id),
    /// One value if the object is there, another if it isn't.
    Either(Id, Box<[Symbol; 2]>),
}
use Symbol::{Address, Const, Either, Handle, Index, Listed, NonZero, Payload, Plain, Unknown, Within};

/// A reference with whether its object is there, if a value depends on it.
type Case = Option<(Id, bool)>;

/// The first type index of objects.
const OBJECTS: i64 = TypeIndex::STATIC_OBJECT_BEGIN.0 as i64;

impl Symbol {
    /// A reference on which the value depends.
    pub fn id(&self) -> Option<Id> {
        match self {
            Index(id) | Payload(id) | Handle(id) | Either(id, _) => Some(*id),
            Unknown | NonZero | Const(_) | Address(..) | Within(_) | Listed | Plain => None,
        }
    }

    /// The references that the value may be.
    pub fn held(&self) -> Vec<Id> {
        match self {
            Payload(id) | Handle(id) => vec![*id],
            Either(_, both) => both.iter().flat_map(Symbol::held).collect(),
            Unknown | NonZero | Const(_) | Address(..) | Within(_) | Listed | Plain | Index(_) => Vec::new(),
        }
    }

    /// The value if a reference's object is there, or if it isn't.
    pub fn assuming(&self, id: Id, there: bool) -> Symbol {
        match self {
            Either(other, both) if *other == id => both[usize::from(!there)].assuming(id, there),
            Either(other, both) => either(*other, both.each_ref().map(|symbol| symbol.assuming(id, there))),
            Index(other) if *other == id && !there => Plain,
            Payload(other) if *other == id && !there => Unknown,
            Handle(other) if *other == id && !there => Const(0),
            _ => self.clone(),
        }
    }

    /// The value if the object on which it depends is there.
    pub fn if_object(self) -> Symbol {
        match self {
            Either(_, both) => both[0].clone(),
            symbol => symbol,
        }
    }

    /// The value without a reference, whose object is there and which the code no longer owns.
    pub fn without(&self, id: Id) -> Symbol {
        match self.assuming(id, true) {
            Index(other) | Payload(other) | Handle(other) if other == id => Unknown,
            Either(other, both) => either(other, both.map(|symbol| symbol.without(id))),
            symbol => symbol,
        }
    }

    /// The least and the largest number that it may be.
    fn range(&self, there: Case) -> Option<(i64, i64)> {
        match self {
            Const(value) => Some((*value, *value)),
            Plain => Some((0, OBJECTS - 1)),
            Index(id) if there == Some((*id, true)) => Some((OBJECTS, i64::from(i32::MAX))),
            _ => None,
        }
    }

    fn is_not_zero(&self, there: Case) -> bool {
        match self {
            NonZero | Address(..) | Within(_) => true,
            Payload(id) | Handle(id) => there == Some((*id, true)),
            _ => false,
        }
    }
}

/// The value for both cases.
fn either(id: Id, both: [Symbol; 2]) -> Symbol {
    let [there, not] = &both;
    if there == not { there.clone() } else { Either(id, Box::new(both)) }
}

/// Applies a function of two values in both cases of each reference that they depend on.
fn in_each_case(a: &Symbol, b: &Symbol, apply: impl Fn(&Symbol, &Symbol, Case) -> Symbol) -> Symbol {
    let Some(id) = a.id().or(b.id()) else { return apply(a, b, None) };
    let case = |there| {
        let [a, b] = [a, b].map(|symbol| symbol.assuming(id, there));
        match (&a, &b) {
            (Either(..), _) | (_, Either(..)) => Unknown,
            _ => apply(&a, &b, Some((id, there))),
        }
    };
    either(id, [case(true), case(false)])
}

/// A comparison.
pub fn compare(cc: IntCC, a: &Symbol, b: &Symbol) -> Symbol {
    in_each_case(a, b, |a, b, there| {
        let truth = match (cc, a, b) {
            (IntCC::Eq | IntCC::Ne, x, Const(0)) | (IntCC::Eq | IntCC::Ne, Const(0), x) if x.is_not_zero(there) => {
                Some(cc == IntCC::Ne)
            }
            _ => a.range(there).zip(b.range(there)).and_then(|(a, b)| compare_ranges(cc, a, b)),
        };
        truth.map_or(Unknown, |truth| Const(i64::from(truth)))
    })
}

/// The comparison of all numbers of one range with all of another, if it is the same for all.
fn compare_ranges(cc: IntCC, (least_a, most_a): (i64, i64), (least_b, most_b): (i64, i64)) -> Option<bool> {
    let decided = |always: bool, never: bool| (always || never).then_some(always);
    match cc {
        IntCC::Eq => {
            decided(least_a == most_a && least_b == most_b && least_a == least_b, most_a < least_b || most_b < least_a)
        }
        IntCC::Ne => compare_ranges(IntCC::Eq, (least_a, most_a), (least_b, most_b)).map(|equal| !equal),
        IntCC::SLt => decided(most_a < least_b, least_a >= most_b),
        IntCC::SLe => decided(most_a <= least_b, least_a > most_b),
        IntCC::SGt => compare_ranges(IntCC::SLt, (least_b, most_b), (least_a, most_a)),
        IntCC::SGe => compare_ranges(IntCC::SLe, (least_b, most_b), (least_a, most_a)),
        IntCC::ULt | IntCC::ULe | IntCC::UGt | IntCC::UGe => None,
    }
}

pub fn and(a: &Symbol, b: &Symbol) -> Symbol {
    in_each_case(a, b, |a, b, _| match (a, b) {
        (Const(0), _) | (_, Const(0)) => Const(0),
        (Const(a), Const(b)) => Const(a & b),
        _ => Unknown,
    })
}

pub fn or(a: &Symbol, b: &Symbol) -> Symbol {
    in_each_case(a, b, |a, b, _| match (a, b) {
        (Const(a), Const(b)) => Const(a | b),
        (Const(0), x) | (x, Const(0)) => x.clone(),
        _ => Unknown,
    })
}

pub fn not(a: &Symbol) -> Symbol {
    compare(IntCC::Eq, a, &Const(0))
}

/// The first value if the condition holds, else the second.
pub fn select(cond: &Symbol, yes: &Symbol, no: &Symbol) -> Symbol {
    match cond {
        _ if yes == no => yes.clone(),
        Const(0) => no.clone(),
        Const(_) | NonZero => yes.clone(),
        Either(id, both) => {
            let case = |there: bool| {
                let cond = &both[usize::from(!there)];
                select(cond, &yes.assuming(*id, there), &no.assuming(*id, there))
            };
            match [case(true), case(false)] {
                // The object is there in one case alone, so this is the value itself.
                [Index(of), Plain] if of == *id => Index(of),
                [Payload(of), Unknown] if of == *id => Payload(of),
                both => either(*id, both),
            }
        }
        _ => Unknown,
    }
}

/// The sum of a number or an address and a number.
pub fn add(a: &Symbol, b: &Symbol) -> Symbol {
    match (a, b) {
        (Const(a), Const(b)) => Const(a.wrapping_add(*b)),
        (Address(place, at), Const(by)) | (Const(by), Address(place, at)) => Address(*place, at.wrapping_add(*by)),
        (Address(place, _) | Within(place), _) => Within(*place),
        _ => Unknown,
    }
}
