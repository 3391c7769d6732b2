# musl by the wrapper of Debian's and Ubuntu's package musl-tools. On a system that has no other
# C library, such as Alpine, no toolchain file is needed.
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_CXX_COMPILER CMAKE_CXX_COMPILER-NOTFOUND) # the C++ runtime here is glibc's
# The kernel's headers, for tests: what musl has none of its own of.
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include -idirafter /usr/include/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu")
