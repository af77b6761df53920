; For tests/gpu/code_objects.rs: parameters of several sizes, hidden parameters, shared memory, a fixed block size.
target triple = "amdgcn-amd-amdhsa"

@tile = internal addrspace(3) global [1024 x float] poison, align 16

define amdgpu_kernel void @kinds(ptr addrspace(1) %x, ptr addrspace(4) byref({ float, i32, double, ptr }) align 8 %a, i8 %c, i16 %s, i32 %i, double %d) #0 {
  %from = getelementptr float, ptr addrspace(3) @tile, i32 %i
  %value = load volatile float, ptr addrspace(3) %from
  store float %value, ptr addrspace(1) %x
  ret void
}

define amdgpu_kernel void @fixed(ptr addrspace(1) %x) #1 !reqd_work_group_size !0 {
  store float 1.0, ptr addrspace(1) %x
  ret void
}

attributes #0 = { "amdgpu-flat-work-group-size"="1,256" }
attributes #1 = { "amdgpu-flat-work-group-size"="128,128" }

!0 = !{i32 64, i32 2, i32 1}
!llvm.module.flags = !{!1}
!1 = !{i32 1, !"amdhsa_code_object_version", i32 500}
