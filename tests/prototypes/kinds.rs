//! Signatures with any number of parameters, cycling through all kinds.

use tvm_ffi_codegen::lower::Convention;
use tvm_ffi_codegen::{Device, ParamType, Signature, TensorType};

use crate::support::layout::is_opaque;
use crate::support::sig;
use crate::support::value::Call;
use crate::support::value::parse::parse_call;

/// A signature with a correct call.
pub struct Case {
    pub signature: Signature,
    pub call: Call,
}

impl Case {
    pub fn new(signature: &str, call: &str) -> Self {
        let call = parse_call(call).unwrap_or_else(|e| panic!("{call}\n{e}"));
        Case { signature: sig(signature), call }
    }
}

/// Types, each with an argument. `#` represents the parameter's number.
const KINDS: &[(&str, &str)] = &[
    ("int8", "-#"),
    ("Tensor([n, a#], float32)", "tensor(float32, [3, #], data=0x7#00)"),
    ("uint8", "2#"),
    ("float32", "#.5"),
    ("str", "str(\"text\")"),
    ("Optional[int32]", "none"),
    ("float64", "-#.25"),
    ("Tensor([], int64)", "tensor(int64, [], data=0x7#00)"),
    ("int16", "-300#"),
    ("Any", "str(\"short\")"),
    ("bool", "256"),
    ("dtype", "dtype(bfloat16x4)"),
    ("Tensor([b#, 2, c#, 3, 1], uint16)", "tensor(uint16, [#, 2, 5, 3, 1], strides=[30, 15, 3, 1, 99], data=0x7#00)"),
    ("uint16", "600#"),
    ("Optional[float32]", "#.5"),
    ("device", "device(cuda:3)"),
    ("int32", "-20000000#"),
    ("Tensor([...], float32)", "tensor(float32, [2, 1, 4], data=0x7#00, byte_offset=64)"),
    ("Optional[Tensor([d#, 4], float32)]", "none"),
    ("bytes", "bytes(\"some bytes on the heap\")"),
    ("handle", "ptr(0xfff00000000000#)"),
    ("Shape", "shape([-1, #, 7])"),
    ("uint32", "42949672#"),
    ("Tensor([n], float16, device=\"cuda\")", "tensor(float16, [3], device=cuda:1, data=0x7#00)"),
    ("EnvStream", ""),
    ("Stream", "none"),
    ("Stream", "ptr(0xfff0000000000#)"),
    ("EnvState(\"test.state\")", ""),
    ("Int(3)", "3"),
    ("Array[int64]", "array([1, #, -3])"),
    ("int64", "-90000000000#"),
    ("Optional[str]", "none"),
    ("Tensor([2, 2], any)", "tensor(int8x4, [2, 2], data=0x7#00)"),
    ("Function", "function"),
    (
        "Tuple[int8, float64, Tensor([e#], int8), Optional[uint8], Tuple[bool, str]]",
        "array([-#, 1.5, tensor(int8, [4], data=0x7#00), none, array([true, str(\"in a tuple\")])])",
    ),
    (
        "Record(\"Config\", shape: Tuple[int8, int64], x: Tensor([v#], int8), size: Optional[uint8], name: str)",
        "array([array([-#, 7]), tensor(int8, [4], data=0x7#00), none, str(\"in a record\")])",
    ),
    ("uint64", "-#"),
    ("Optional[bool]", "true"),
    (
        "Tensor([f#, 4], bfloat16, strides=[g#, 2])",
        "tensor(bfloat16, [2, 4], strides=[9, 2], data=0x7#00, byte_offset=64)",
    ),
    ("Object(\"test.Thing\")", "object(sub)"),
    ("None", "none"),
    ("List[Any]", "list([1, none])"),
    ("float64", "#"),
    ("Tensor([h#], uint8, device=\"opencl\")", "tensor(uint8, [#], device=opencl:0, data=0x7#01, byte_offset=3)"),
    ("Map[str, Any]", "map({str(\"a\"): #})"),
    ("Optional[Shape([i#, 4])]", "shape([#, 4])"),
    ("Bool(True)", "true"),
    ("Tensor([2, j#], float64, device=any)", "tensor(float64, [2, #], device=cuda:1, data=0x7#00)"),
    ("Dict[Any, Any]", "dict({1: 2})"),
    ("Optional[dtype]", "none"),
    ("Module", "module"),
    ("float32", "true"),
    ("Tensor([3, 5], float8_e4m3fn, device=\"rocm:any\")", "tensor(float8_e4m3fn, [3, 5], device=rocm:2, data=0x7#00)"),
    ("Optional[device]", "device(cuda:1)"),
    ("Array[Any]", "list([])"),
    ("bool", "false"),
    ("Optional[Function]", "none"),
    ("Tensor([k#, 3], int32, strides=any)", "tensor(int32, [4, 3], strides=[-1, 7], data=0x7#00)"),
    ("Optional[Tuple[int16, Tensor([4], int16), device]]", "none"),
    ("dtype", "str(\"float8_e5m2\")"),
    ("Shape([2, l#])", "array([2, #])"),
    ("Optional[Array[float64]]", "array([1.5, #.5])"),
    ("Tensor([m#], float4_e2m1fn)", "tensor(float4_e2m1fn, [#], data=0x7#00)"),
    ("str", "raw_str(\"from C\")"),
    ("Optional[Int(3)]", "3"),
    ("Tuple[]", "array([])"),
    ("handle", "none"),
    ("bytes", "byte_array(\"\")"),
    ("Optional[Tensor([n, 2], uint32, device=\"cuda\")]", "tensor(uint32, [3, 2], device=cuda:1, data=0x7#00)"),
    ("Optional[Map[str, int64]]", "map({str(\"a\"): #})"),
    ("Tensor([o#], float32x2)", "tensor(float32x2, [#], data=0x7#00)"),
    (
        "Optional[Tuple[int16, Tensor([4], int16), device]]",
        "list([-7, tensor(int16, [4], data=0x7#00), device(cuda:2)])",
    ),
    ("Tensor([r#], bool)", "tensor(bool, [#], data=0x7#01)"),
    ("Optional[bytes]", "bytes(\"b\")"),
    ("Tensor([n, q#], uint64)", "tensor(uint64, [3, #], strides=null, data=0x7#00, byte_offset=8)"),
    ("Optional[Tensor([...], any, device=any)]", "none"),
];

/// Whether the convention can pass values of the type.
fn is_passed(convention: Convention, ty: &ParamType) -> bool {
    let ranked = |tensor: &TensorType| {
        tensor.shape.rank().is_some()
            && !matches!(tensor.device, Device::Any)
            && !tensor.device.kind().is_some_and(is_opaque)
    };
    let mut passed = true;
    ty.for_each_tensor(&mut |tensor| passed &= convention != Convention::MemRef || ranked(tensor));
    passed
}

/// A signature with `count` parameters. Each count starts with another kind, so every kind occurs in many positions.
pub fn case(convention: Convention, count: usize, result: &str) -> Case {
    let mut kinds: Vec<(&str, &str)> = KINDS.to_vec();
    kinds.retain(|(ty, _)| {
        let text = format!("f(p: {}, x: Tensor([], int8, device=\"cuda\"))", ty.replace('#', ""));
        is_passed(convention, &sig(&text).params()[0].ty)
    });
    let start = 7 * count % kinds.len();
    kinds.rotate_left(start);
    let mut chosen: Vec<(&str, &str)> = kinds.iter().copied().cycle().take(count).collect();
    let has_stream = chosen.iter().any(|(ty, call)| ty.contains("device=\"cuda\"") && *call != "none");
    if !has_stream {
        chosen.iter_mut().filter(|(ty, _)| ty.ends_with("Stream")).for_each(|kind| *kind = KINDS[0]);
    }
    let numbered = |(i, text): (usize, &str)| text.replace('#', &format!("{i:02}"));
    let params = chosen.iter().map(|(ty, _)| *ty).enumerate();
    let params = params.map(|(i, ty)| format!("p{i}: {}", numbered((i, ty)))).collect::<Vec<_>>().join(", ");
    let args = chosen.iter().map(|(_, arg)| *arg).enumerate().filter(|(_, arg)| !arg.is_empty());
    let args = args.map(numbered).collect::<Vec<_>>().join(", ");
    Case::new(&format!("f{count}({params}){result}"), &args)
}
