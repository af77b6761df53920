"""A mini compiler: turns loops over arrays, written as Python functions, into objects with LLVM (llvmlite).

It knows nothing about the TVM FFI. A kernel is a ``void`` function in C. The caller passes a C type and a name for each
of its parameters.
"""

from __future__ import annotations

import ast

import llvmlite.binding as llvm
from llvmlite import ir

I64 = ir.IntType(64)
#: LLVM types by C types.
C_TYPES = {
    "float": ir.FloatType(),
    "double": ir.DoubleType(),
    "int32_t": ir.IntType(32),
    "int64_t": I64,
    "uint8_t": ir.IntType(8),
}
FLOATS = (ir.FloatType, ir.DoubleType)


class CompileError(SyntaxError):
    """The function uses Python that the language doesn't support."""


def c_type(text: str) -> ir.Type:
    return C_TYPES[text[:-1]].as_pointer() if text.endswith("*") else C_TYPES[text]


class Compiler(ast.NodeVisitor):
    """Compiles the statements and expressions of one function."""

    def __init__(self, name: str, parameters: list[tuple[str, str]]) -> None:
        self.module = ir.Module(name)
        types = [c_type(type) for type, _ in parameters]
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), types), name)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.names: dict[str, ir.Value] = {name: arg for (_, name), arg in zip(parameters, self.function.args)}

    def generic_visit(self, node: ast.AST) -> None:
        raise CompileError(f"line {getattr(node, 'lineno', '?')}: the language has no {type(node).__name__}")

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.generic_visit(node)

    def visit_Pass(self, node: ast.Pass) -> None:
        pass

    def visit_For(self, node: ast.For) -> None:
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=[end])):
                end = self.convert(self.visit(end), I64)
            case _:
                raise CompileError(f"line {node.lineno}: expected `for i in range(n)`")
        builder, before = self.builder, self.builder.block
        head, body, after = (self.function.append_basic_block(part) for part in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(I64, name)
        index.add_incoming(I64(0), before)
        builder.cbranch(builder.icmp_signed("<", index, end), body, after)
        builder.position_at_end(body)
        self.names[name] = index
        for statement in node.body:
            self.visit(statement)
        index.add_incoming(builder.add(index, I64(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(after)

    def visit_Assign(self, node: ast.Assign) -> None:
        [target] = node.targets
        value = self.visit(node.value)
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        else:
            place = self.place(target)
            self.builder.store(self.convert(value, place.type.pointee), place)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        place = self.place(node.target)
        value = self.binary(node, self.builder.load(place), self.visit(node.value))
        self.builder.store(self.convert(value, place.type.pointee), place)

    def visit_Name(self, node: ast.Name) -> ir.Value:
        if node.id not in self.names:
            raise CompileError(f"line {node.lineno}: `{node.id}` is not defined")
        return self.names[node.id]

    def visit_Constant(self, node: ast.Constant) -> ir.Value:
        return I64(node.value) if isinstance(node.value, int) else ir.DoubleType()(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> ir.Value:
        return self.builder.load(self.place(node))

    def visit_BinOp(self, node: ast.BinOp) -> ir.Value:
        return self.binary(node, self.visit(node.left), self.visit(node.right))

    def place(self, node: ast.expr) -> ir.Value:
        if not isinstance(node, ast.Subscript):
            raise CompileError(f"line {node.lineno}: expected an element, such as `x[i]`")
        return self.builder.gep(self.visit(node.value), [self.convert(self.visit(node.slice), I64)])

    def binary(self, node: ast.BinOp | ast.AugAssign, left: ir.Value, right: ir.Value) -> ir.Value:
        is_float = isinstance(left.type, FLOATS) or isinstance(right.type, FLOATS)
        # a constant takes the type of the other operand
        constant = isinstance(right, ir.Constant) or not isinstance(right.type, FLOATS)
        type = left.type if isinstance(left.type, FLOATS) and constant else right.type if is_float else I64
        left, right = self.convert(left, type), self.convert(right, type)
        operations = {
            ast.Add: "add",
            ast.Sub: "sub",
            ast.Mult: "mul",
            ast.Div: "div",
            ast.FloorDiv: "sdiv",
            ast.Mod: "srem",
        }
        name = operations.get(node.op.__class__)
        if name is None or (name == "div" and not is_float) or (name in ("sdiv", "srem") and is_float):
            raise CompileError(f"line {node.lineno}: the language has no such operator here")
        return getattr(self.builder, f"f{name}" if is_float else name)(left, right)

    def convert(self, value: ir.Value, type: ir.Type) -> ir.Value:
        match value.type, type:
            case same, other if same == other:
                return value
            case ir.IntType(), ir.FloatType() | ir.DoubleType():
                return self.builder.sitofp(value, type)
            case ir.FloatType(), ir.DoubleType():
                return self.builder.fpext(value, type)
            case ir.DoubleType(), ir.FloatType():
                return self.builder.fptrunc(value, type)
            case ir.IntType(width=width), ir.IntType(width=wanted):
                return (self.builder.sext if width < wanted else self.builder.trunc)(value, type)
            case _:
                raise CompileError(f"a {value.type} is no {type}")


def _machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(opt=3, reloc="pic", codemodel="default")


_MACHINE = _machine()


def compile_function(function: ast.FunctionDef, name: str, parameters: list[tuple[str, str]]) -> bytes:
    """Compiles a function to an object with the symbol ``name``. Parameters are C types and names."""
    compiler = Compiler(name, parameters)
    for statement in function.body:
        compiler.visit(statement)
    compiler.builder.ret_void()
    module = llvm.parse_assembly(str(compiler.module))
    module.verify()
    return _MACHINE.emit_object(module)
