//! Fills the runtime's tables when the library is loaded, as upstream's library does. The first call of a program then
//! doesn't wait for them. On systems without `.init_array` the first use fills them.

#[used]
#[cfg_attr(all(unix, not(target_vendor = "apple")), unsafe(link_section = ".init_array"))]
static FILL: extern "C" fn() = fill;

extern "C" fn fill() {
    // A panic would end the process. The tables are filled without one, and their first use fills them otherwise.
    let _filled = std::panic::catch_unwind(runtime::capi::fill_tables);
}
