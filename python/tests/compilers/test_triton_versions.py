"""The metadata of compiled kernels in each version of Triton, as data: no version has to be installed."""

from __future__ import annotations

from types import SimpleNamespace

import pages
import pytest
import tvm_ffi_codegen as tfc
from tvm_ffi_codegen.triton import compiled

#: The fields of all versions.
COMMON = """allowed_dot_input_precisions arch backend_name debug default_dot_input_precision
    deprecated_fp8_dot_operand_dtypes enable_fp_fusion extern_libs hash launch_cooperative_grid
    max_num_imprecise_acc_default name num_ctas num_stages num_warps sanitize_overflow shared supported_fp8_dtypes
    target triton_version"""
#: The fields of CUDA and HIP that each version adds to those of the version before.
CUDA = {
    "3.4.0": """cluster_dims global_scratch_align global_scratch_size ir_override launch_pdl maxnreg ptx_options
        ptx_version tensordesc_meta tmem_size""",
    "3.5.1": "instrumentation_mode profile_scratch_align profile_scratch_size warp_size",
    "3.6.0": "enable_reflect_ftz",
    "3.7.1": "",
    "3.8.0": "",
    "3.9.0": "clc fpsan_homomorphic_casts min_shared_mem sched4reg",
}
HIP = {
    "3.5.1": """allow_flush_denorm cluster_dims instrumentation_mode kpack matrix_instr_nonkdim profile_scratch_align
        profile_scratch_size schedule_hint warp_size waves_per_eu""",
    "3.6.0": "tensordesc_meta",
    "3.7.1": "",
    "3.8.0": "global_scratch_align global_scratch_size llvm_fn_attrs",
    "3.9.0": "base_arch fpsan_homomorphic_casts wgp_cu_mode",
}
#: The values of the fields that decide the launch.
VALUES = {
    "name": "add", "num_warps": 4, "num_ctas": 1, "shared": 0, "cluster_dims": (1, 1, 1), "warp_size": 32,
    "launch_cooperative_grid": False, "launch_pdl": False, "tensordesc_meta": [], "instrumentation_mode": "",
    "global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0, "profile_scratch_align": 1,
}  # fmt: skip


def rows():
    for backend, versions in (("cuda", CUDA), ("hip", HIP)):
        fields = COMMON.split()
        for version, more in versions.items():
            fields = [*fields, *more.split()]
            if version == "3.6.0":
                fields.remove("cluster_dims")
            yield pytest.param(backend, version, fields, id=f"{backend}-{version}")


def kernel_of(backend, fields):
    metadata = {name: VALUES.get(name) for name in fields}
    target = SimpleNamespace(backend=backend, arch=90 if backend == "cuda" else "gfx1100", warp_size=32)
    source = SimpleNamespace(signature={"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, constants={(2,): 64}, attrs={})
    return SimpleNamespace(metadata=SimpleNamespace(**{**metadata, "target": target}), src=source, asm={})


@pytest.mark.parametrize("backend, version, fields", list(rows()))
def test_the_metadata_of_each_version_is_known(backend, version, fields):
    device = "cuda" if backend == "cuda" else "rocm"
    signature = tfc.Signature(f'add(x: Tensor([n], float32, device="{device}"))')
    launch = compiled._launch(kernel_of(backend, fields), signature, "ceil_div(n, BLOCK)", {}, frozenset())
    # Triton 3.4 has no memory for profiles
    scratch = ["null"] if version == "3.4.0" else ["null", "null"]
    assert launch["args"] == ["x", "int32(n)", *scratch]
    assert (launch["grid"], launch["block"]) == (["ceil_div(n, 64)"], 128)
    with pytest.raises(tfc.KernelError, match="metadata that is not known: newer"):
        compiled._launch(kernel_of(backend, [*fields, "newer"]), signature, 1, {}, frozenset())


def test_an_installed_triton_has_no_other_fields():
    triton = pytest.importorskip("triton")
    known = {of.values[1]: of.values[2] for of in rows() if of.values[0] == "cuda"}
    if triton.__version__ not in known:
        pytest.skip(f"Triton {triton.__version__} is not in the table")
    import triton_kernels as kernels

    made = kernels.compiled(kernels.add, kernels.POINTERS, {"BLOCK": 64})
    assert set(made.metadata._asdict()) == set(known[triton.__version__])


def test_the_page(tmp_path):
    pytest.importorskip("triton")
    pages.check("triton", tmp_path)
