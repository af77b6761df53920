//! Records the operations.

use std::sync::Arc;

use super::trees::{at_path, index, input, integer, part, text, type_name, word};
use super::{Id, Known, Recorder, at, image_names, name_of, named, tree};
use crate::host::Word;
use crate::host::tree::{
    BinaryOp, Block, Closure, Error, Expr as Tree, ExprKind, For, If, Input, LaunchOf, Location, Scoped, StatementKind,
    Try, UnaryOp, While,
};
use crate::image::Image;
use crate::lower::body::args::TensorVars;
use crate::lower::body::calls::{CallArg, CallResult, Owned};
use crate::lower::body::dtype_device::{DTypeValue, DeviceValue};
use crate::lower::body::expr::{Expr, Operand};
use crate::lower::body::launches::LaunchValue;
use crate::lower::body::param::ParamRef;
use crate::lower::body::tensor::TensorRef;
use crate::spec::{CompareOp, HostItems, Launch, LaunchLocal, ParamType, ScalarType, Signature, SourceLocation};

/// The inputs of a loop, which are known before its block.
pub(in crate::lower::body) struct LoopHeader {
    bounds: Vec<Tree>,
    first: Vec<Tree>,
}

/// Arithmetic of numbers.
impl Recorder {
    /// An operation of some values of one type, by the name that its errors have.
    pub(in crate::lower::body) fn numbers(&self, operation: &str, values: &[Expr<'_>]) -> ExprKind {
        let op = match operation {
            "add" => BinaryOp::Add,
            "sub" => BinaryOp::Sub,
            "mul" => BinaryOp::Mul,
            "and" => BinaryOp::BitAnd,
            "or" => BinaryOp::BitOr,
            "xor" => BinaryOp::BitXor,
            "shl" => BinaryOp::Shl,
            "shr" => BinaryOp::Shr,
            "floor_div" => BinaryOp::FloorDiv,
            "floor_rem" => BinaryOp::FloorRem,
            "div" if values[0].ty().is_float() => BinaryOp::Div,
            _ => {
                let name = if operation == "fmod" { "rem" } else { operation };
                let inputs = values.iter().enumerate();
                let inputs =
                    inputs.map(|(number, value)| if number == 0 { self.expr(*value) } else { self.coerced(*value) });
                return match Word::named(name) {
                    Some(name) => word(name, inputs),
                    None => self.unknown(),
                };
            }
        };
        let [left, right] = [self.expr(values[0]), self.coerced(values[1])];
        ExprKind::Chain(left, vec![(at(op), right)])
    }

    pub(in crate::lower::body) fn unary(&self, op: UnaryOp, value: Expr<'_>) -> ExprKind {
        ExprKind::Unary(op, self.expr(value))
    }

    pub(in crate::lower::body) fn compare(&self, operation: &str, left: Expr<'_>, right: Expr<'_>) -> ExprKind {
        let op = match operation {
            "eq" => CompareOp::Eq,
            "ne" => CompareOp::Ne,
            "lt" => CompareOp::Lt,
            "le" => CompareOp::Le,
            "gt" => CompareOp::Gt,
            _ => CompareOp::Ge,
        };
        ExprKind::Compare(self.expr(left), at(op), self.coerced(right))
    }

    pub(in crate::lower::body) fn select(&self, cond: Expr<'_>, then: Expr<'_>, otherwise: Expr<'_>) -> ExprKind {
        word(Word::Select, [self.expr(cond), self.expr(then), self.coerced(otherwise)])
    }

    pub(in crate::lower::body) fn cast(&self, value: Expr<'_>, to: ScalarType) -> ExprKind {
        ExprKind::Cast(to, self.expr(value))
    }

    pub(in crate::lower::body) fn bitcast(&self, value: Expr<'_>, to: ScalarType) -> ExprKind {
        word(Word::Bitcast, [self.expr(value), type_name(to)])
    }
}

/// Parameters, tensors and memory.
impl Recorder {
    /// A value of the function's own parameters.
    pub(in crate::lower::body) fn own_value(&self, value: Expr<'_>, path: &str, ty: Option<&ParamType>) {
        let key = (value.value, value.ty());
        if !self.state.borrow().values.contains_key(&key) {
            let is_other_argument = ty.is_some_and(|ty| !matches!(ty, ParamType::Scalar(_)));
            self.know(key, Known { tree: at_path(path), is_other_argument });
        }
    }

    /// A dimension variable.
    pub(in crate::lower::body) fn dim(&self, value: Expr<'_>, name: &str, is_param: bool) {
        let key = (value.value, value.ty());
        if !self.state.borrow().values.contains_key(&key) {
            let name_tree = tree(ExprKind::Name(name.to_owned()));
            let needs_word = is_param || crate::host::RESERVED.contains(&name) || name == "result";
            let tree = if needs_word { tree(word(Word::Dim, [name_tree])) } else { name_tree };
            self.know(key, Known { tree, is_other_argument: false });
        }
    }

    /// A value of a parameter or of a result.
    pub(in crate::lower::body) fn param_value(&self, param: ParamRef<'_>, value: Expr<'_>) {
        if self.is_own(param) {
            return self.own_value(value, param.path(), param.ty());
        }
        let is_scalar = matches!(param.ty(), Some(ParamType::Scalar(_)));
        self.silent_value(value, ExprKind::Cast(value.ty(), self.param(param)), is_scalar);
    }

    /// A part of a parameter or of a result: `size`, `given`.
    pub(in crate::lower::body) fn param_part(&self, param: ParamRef<'_>, name: &str, value: Expr<'_>) {
        self.part_of(value, part(self.param(param), name), self.is_own(param));
    }

    /// A part that needs no code.
    fn part_of(&self, value: Expr<'_>, part: Tree, is_own: bool) {
        let key = (value.value, value.ty());
        match is_own {
            true if self.state.borrow().values.contains_key(&key) => {}
            true => self.know(key, Known { tree: part, is_other_argument: false }),
            false => self.silent_value(value, *part.kind, false),
        }
    }

    pub(in crate::lower::body) fn param_tensor(&self, param: ParamRef<'_>, vars: &TensorVars) {
        self.know_tensor(vars, self.param(param));
    }

    pub(in crate::lower::body) fn own_tensor(&self, path: &str, vars: &TensorVars) {
        self.know_tensor(vars, at_path(path));
    }

    pub(in crate::lower::body) fn returned(&self, item: Option<usize>, vars: &TensorVars) {
        let result = tree(ExprKind::Name("result".to_owned()));
        self.know_tensor(vars, item.map_or(result.clone(), |item| index(result, item)));
    }

    /// A size or a stride of a tensor.
    pub(in crate::lower::body) fn tensor_part(&self, tensor: TensorRef<'_>, name: &str, d: usize, value: Expr<'_>) {
        let sizes = part(self.tensor(tensor), name);
        self.part_of(value, index(sizes, d), is_of_params(tensor));
    }

    pub(in crate::lower::body) fn tensor_data(&self, tensor: TensorRef<'_>, value: Expr<'_>) {
        self.part_of(value, part(self.tensor(tensor), "data"), is_of_params(tensor));
    }

    pub(in crate::lower::body) fn element(&self, tensor: TensorRef<'_>, indices: &[Operand<'_>]) -> ExprKind {
        ExprKind::Index(self.tensor(tensor), self.operands(indices))
    }

    pub(in crate::lower::body) fn address(&self, tensor: TensorRef<'_>, indices: &[Operand<'_>]) -> ExprKind {
        word(Word::Address, [tree(self.element(tensor, indices))])
    }

    pub(in crate::lower::body) fn store_element(
        &self,
        tensor: TensorRef<'_>,
        indices: &[Operand<'_>],
        value: Operand<'_>,
    ) -> StatementKind {
        StatementKind::Set(tree(self.element(tensor, indices)), self.operand(value))
    }

    pub(in crate::lower::body) fn load(&self, ty: ScalarType, pointer: Expr<'_>) -> ExprKind {
        word(Word::Load, [type_name(ty), self.expr(pointer)])
    }

    pub(in crate::lower::body) fn store(&self, pointer: Expr<'_>, value: Expr<'_>) -> StatementKind {
        self.done(Word::Store, [self.expr(pointer), self.expr(value)])
    }

    pub(in crate::lower::body) fn store_as(
        &self,
        ty: ScalarType,
        pointer: Expr<'_>,
        value: Operand<'_>,
    ) -> StatementKind {
        let inputs = [self.expr(pointer), self.operand(value)].map(|value| Input { name: None, value });
        let inputs = inputs.into_iter().chain([input("dtype", type_name(ty))]).collect();
        StatementKind::Do(tree(ExprKind::Word(Word::Store, inputs)))
    }

    pub(in crate::lower::body) fn offset(&self, pointer: Expr<'_>, ty: ScalarType, count: Operand<'_>) -> ExprKind {
        word(Word::Offset, [self.expr(pointer), type_name(ty), self.operand(count)])
    }

    pub(in crate::lower::body) fn scratch(&self, bytes: u32, align: u32) -> ExprKind {
        let bytes = Input { name: None, value: integer(bytes) };
        ExprKind::Word(Word::Scratch, vec![bytes, input("align", integer(align))])
    }

    /// A tensor that an operation has made.
    pub(in crate::lower::body) fn made_tensor(&self, tensor: TensorRef<'_>, kind: ExprKind) {
        let id = self.let_(kind);
        if let Some(known) = tensor.known {
            self.know_tensor(known.vars, named(id));
            if let crate::lower::body::args::Origin::Object(any) = known.vars.origin {
                self.know_owned(any, named(id));
            }
        }
    }

    pub(in crate::lower::body) fn alloc(
        &self,
        sizes: &[Operand<'_>],
        strides: Option<&[Operand<'_>]>,
        dtype: DTypeValue<'_>,
        device: DeviceValue<'_>,
    ) -> ExprKind {
        let list = |operands: &[Operand<'_>]| tree(ExprKind::List(self.operands(operands)));
        let ExprKind::Word(name, mut inputs) = word(Word::Alloc, [list(sizes), self.dtype(dtype)]) else {
            return ExprKind::None;
        };
        inputs.extend(strides.map(|strides| input("strides", list(strides))));
        inputs.push(match device {
            DeviceValue::Stated(device) => input("device", text(&device.to_string())),
            DeviceValue::Of(tensor) => input("like", self.tensor(tensor)),
            DeviceValue::Bits(bits) => input("device", self.expr(bits)),
        });
        ExprKind::Word(name, inputs)
    }

    pub(in crate::lower::body) fn slice(
        &self,
        tensor: TensorRef<'_>,
        d: usize,
        [start, len]: [Operand<'_>; 2],
    ) -> ExprKind {
        word(Word::Slice, [self.tensor(tensor), integer(d as u64), self.operand(start), self.operand(len)])
    }

    pub(in crate::lower::body) fn transpose(&self, tensor: TensorRef<'_>, order: &[usize]) -> ExprKind {
        let order = order.iter().map(|d| integer(*d as u64)).collect();
        word(Word::Transpose, [self.tensor(tensor), tree(ExprKind::List(order))])
    }

    pub(in crate::lower::body) fn reshape(&self, tensor: TensorRef<'_>, shape: &[Operand<'_>]) -> ExprKind {
        word(Word::Reshape, [self.tensor(tensor), tree(ExprKind::List(self.operands(shape)))])
    }
}

/// Whether a tensor is a parameter or a result of the function, which no operation can move.
fn is_of_params(tensor: TensorRef<'_>) -> bool {
    use crate::lower::body::args::Origin;
    tensor.known.is_some_and(|known| match known.vars.origin {
        Origin::Argument | Origin::Result => known.vars.life.part_of.is_none(),
        Origin::Object(_) | Origin::Value(_) | Origin::View(_) => false,
    })
}

/// Owned values and calls.
impl Recorder {
    pub(in crate::lower::body) fn result_of(&self, result: CallResult<'_>, kind: ExprKind) {
        let id = self.let_(kind);
        self.know_result(result.param.args, id);
        self.know_owned(result.owned.any, named(id));
    }

    /// The value of a variable as a type. The variable remains the owner.
    pub(in crate::lower::body) fn cast_variable(&self, variable: Owned<'_>, result: CallResult<'_>, ty: ParamType) {
        let id = self.let_(ExprKind::As(self.owned(variable), Box::new(ty)));
        self.know_result(result.param.args, id);
    }

    pub(in crate::lower::body) fn captured(&self, index: usize, param: ParamRef<'_>) {
        let id = self.let_(word(Word::Captured, [integer(index as u64)]));
        self.know_result(param.args, id);
    }

    pub(in crate::lower::body) fn variable(&self, owned: Owned<'_>) {
        let id = self.new_id();
        self.statement(StatementKind::Var(at(name_of(id))));
        self.know_owned(owned.any, named(id));
    }

    pub(in crate::lower::body) fn set(&self, variable: Owned<'_>, value: &CallArg<'_>) -> StatementKind {
        StatementKind::Set(self.owned(variable), self.arg(value))
    }

    pub(in crate::lower::body) fn closure(
        &self,
        owned: Owned<'_>,
        signature: &Signature,
        captures: Vec<(Tree, ParamType)>,
        body: Block,
    ) {
        let captures = captures.into_iter().map(|(value, ty)| (at("_".to_owned()), ty, value)).collect();
        let closure = Closure { captures, signature: signature.clone(), body: Arc::new(body) };
        let id = self.let_(ExprKind::Closure(Box::new(closure)));
        self.know_owned(owned.any, named(id));
    }

    pub(in crate::lower::body) fn launch(
        &self,
        launch: &Launch,
        images: &[Image],
        values: &[(String, LaunchValue<'_>)],
    ) {
        let images = image_names(images, self.images());
        let local = |(name, value): &(String, LaunchValue<'_>)| {
            let value = match value {
                LaunchValue::Scalar(value) => self.expr(*value),
                LaunchValue::Tensor(tensor) => self.tensor(*tensor),
            };
            LaunchLocal { name: name.clone(), value: self.local_name(value), span: 0..0 }
        };
        let values: Vec<LaunchLocal> = values.iter().map(local).collect();
        let items = HostItems { images: Some(images), values: Some(values).filter(|values| !values.is_empty()) };
        self.statement(StatementKind::Launch(Box::new(LaunchOf { launch: launch.clone(), items })));
    }
}

/// Control flow and errors.
impl Recorder {
    /// Ends a conditional with a value.
    pub(in crate::lower::body) fn chosen(&self, cond: Expr<'_>) -> ExprKind {
        let (otherwise, then) = (self.closed(), self.closed());
        ExprKind::Chosen(self.expr(cond), then.scoped(), otherwise.scoped())
    }

    pub(in crate::lower::body) fn if_(&self, cond: Expr<'_>) -> StatementKind {
        let (otherwise, then) = (self.closed().block, self.closed().block);
        let otherwise = Some(otherwise).filter(|block| !block.statements.is_empty());
        StatementKind::If(If { branches: vec![(self.expr(cond), then)], otherwise })
    }

    /// Ends a graph.
    pub(in crate::lower::body) fn graph(&self) -> StatementKind {
        StatementKind::Graph(self.closed().block)
    }

    pub(in crate::lower::body) fn loop_header<'b>(
        &self,
        bounds: impl IntoIterator<Item = Operand<'b>>,
        first: &[Expr<'_>],
    ) -> LoopHeader {
        let bounds = bounds.into_iter().map(|bound| self.operand(bound)).collect();
        LoopHeader { bounds, first: self.exprs(first) }
    }

    /// Names the values of a loop.
    pub(in crate::lower::body) fn loop_names(&self, values: &[Expr<'_>]) -> Vec<String> {
        values.iter().map(|value| self.loop_value(*value).value).collect()
    }

    /// Ends a loop with an index, which has the first of the names.
    pub(in crate::lower::body) fn for_(&self, header: LoopHeader, names: Vec<String>) -> StatementKind {
        let LoopHeader { bounds, first } = header;
        let mut names = names.into_iter().map(at);
        let index = names.next().unwrap_or_else(|| at(String::new()));
        let carried = names.zip(first).collect();
        let mut bounds = bounds.into_iter();
        let (start, end) = (bounds.next(), bounds.next());
        let none = || tree(ExprKind::None);
        let (start, end) = (start.unwrap_or_else(none), end.unwrap_or_else(none));
        let block = self.closed().block;
        StatementKind::For(Box::new(For { index, start, end, step: bounds.next(), carried, block }))
    }

    pub(in crate::lower::body) fn while_(&self, header: LoopHeader, names: Vec<String>) -> StatementKind {
        let carried = names.into_iter().map(at).zip(header.first).collect();
        let block = self.closed().block;
        let condition: Scoped = self.closed().scoped();
        StatementKind::While(Box::new(While { condition, carried, block }))
    }

    /// The next values of a loop.
    pub(in crate::lower::body) fn next(&self, next: &[Operand<'_>]) -> StatementKind {
        StatementKind::Continue(self.operands(next))
    }

    /// Names a caught error.
    pub(in crate::lower::body) fn caught(&self, error: Owned<'_>) -> u32 {
        let id: Id = self.new_id();
        self.know_owned(error.any, named(id));
        id
    }

    pub(in crate::lower::body) fn try_(&self, id: u32) -> StatementKind {
        let (handler, attempt) = (self.closed().block, self.closed().block);
        StatementKind::Try(Box::new(Try { attempt, name: at(name_of(id)), handler }))
    }

    pub(in crate::lower::body) fn is_kind(&self, error: Owned<'_>, kind: &str) -> ExprKind {
        ExprKind::Compare(part(self.owned(error), "kind"), at(CompareOp::Eq), text(kind))
    }

    pub(in crate::lower::body) fn error(&self, kind: &str, message: &str, values: Vec<Tree>) -> Error {
        Error { kind: kind.to_owned(), message: message.to_owned(), values }
    }

    pub(in crate::lower::body) fn raise(&self, kind: &str, message: &str, values: &[CallArg<'_>]) -> StatementKind {
        StatementKind::Raise(self.error(kind, message, self.args(values)), None)
    }

    pub(in crate::lower::body) fn raise_from(
        &self,
        kind: &str,
        message: &str,
        values: &[CallArg<'_>],
        error: Owned<'_>,
    ) -> StatementKind {
        let from = self.local_name(self.owned(error));
        StatementKind::Raise(self.error(kind, message, self.args(values)), Some(at(from)))
    }

    pub(in crate::lower::body) fn raise_again(&self, error: Owned<'_>) -> StatementKind {
        StatementKind::RaiseAgain(at(self.local_name(self.owned(error))))
    }

    pub(in crate::lower::body) fn ensure(
        &self,
        cond: Expr<'_>,
        kind: &str,
        message: &str,
        values: &[CallArg<'_>],
    ) -> StatementKind {
        StatementKind::Ensure(self.expr(cond), self.error(kind, message, self.args(values)))
    }

    pub(in crate::lower::body) fn return_operand(&self, value: Operand<'_>) -> StatementKind {
        StatementKind::Return(Some(self.operand(value)))
    }

    pub(in crate::lower::body) fn return_arg(&self, value: &CallArg<'_>) -> StatementKind {
        StatementKind::Return(Some(self.arg(value)))
    }

    /// An operation without a value.
    pub(in crate::lower::body) fn done(&self, name: Word, inputs: impl IntoIterator<Item = Tree>) -> StatementKind {
        StatementKind::Do(tree(word(name, inputs)))
    }

    pub(in crate::lower::body) fn done_with(&self, name: Word, number: u32) -> StatementKind {
        self.done(name, [integer(number)])
    }

    pub(in crate::lower::body) fn env_state(&self, name: &str) -> ExprKind {
        word(Word::EnvState, [text(name)])
    }

    pub(in crate::lower::body) fn location(&self, file: &str, line: u32, function: &str) -> StatementKind {
        StatementKind::Location(Location::Whole(SourceLocation::new(file, line, function)))
    }

    /// A call that ends the function.
    pub(in crate::lower::body) fn forward(&self, call: ExprKind) -> StatementKind {
        StatementKind::Forward(tree(call))
    }

    /// A call without a result.
    pub(in crate::lower::body) fn run(&self, call: ExprKind) -> StatementKind {
        StatementKind::Do(tree(call))
    }
}
