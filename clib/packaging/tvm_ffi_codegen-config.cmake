# The targets tvm_ffi_codegen::shared and tvm_ffi_codegen::static, one for each library that the archive has.
get_filename_component(_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

function(_tvm_ffi_codegen_library name kind file)
  if(EXISTS "${file}" AND NOT TARGET tvm_ffi_codegen::${name})
    add_library(tvm_ffi_codegen::${name} ${kind} IMPORTED)
    set_target_properties(tvm_ffi_codegen::${name} PROPERTIES
      IMPORTED_LOCATION "${file}"
      INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include")
  endif()
endfunction()

if(WIN32)
  _tvm_ffi_codegen_library(shared SHARED "${_prefix}/lib/tvm_ffi_codegen.dll")
  if(TARGET tvm_ffi_codegen::shared)
    set_target_properties(tvm_ffi_codegen::shared PROPERTIES
      IMPORTED_IMPLIB "${_prefix}/lib/libtvm_ffi_codegen.dll.a")
  endif()
else()
  _tvm_ffi_codegen_library(shared SHARED
    "${_prefix}/lib/libtvm_ffi_codegen${CMAKE_SHARED_LIBRARY_SUFFIX}")
endif()

_tvm_ffi_codegen_library(static STATIC "${_prefix}/lib/libtvm_ffi_codegen.a")
if(TARGET tvm_ffi_codegen::static)
  if(WIN32)
    set(_system ws2_32 userenv bcrypt ntdll ole32 oleaut32)
  else()
    include(CMakeFindDependencyMacro)
    find_dependency(Threads)
    set(_system m ${CMAKE_DL_LIBS} Threads::Threads)
  endif()
  set_target_properties(tvm_ffi_codegen::static PROPERTIES INTERFACE_LINK_LIBRARIES "${_system}")
endif()
