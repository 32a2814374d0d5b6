# Finds the libraries that stacksnap uses. tests/rules checks which room may use which library.
#
# Output: SS_LIBRARY_INCLUDES, SS_LIBRARY_LIBS (of libstacksnap), SS_TOOL_LIBS and
# SS_TOOL_INCLUDES (of the tool), SS_BUILT_WITH (the versions), and with SS_STATIC: SS_STATIC_LIBS, SS_STATIC_OPTION, SS_STATIC_PIE.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(UNWIND REQUIRED libunwind-generic)
pkg_check_modules(DW REQUIRED libdw libelf)
pkg_check_modules(LZMA REQUIRED liblzma)
pkg_check_modules(ZLIB REQUIRED zlib)
pkg_check_modules(SECCOMP REQUIRED libseccomp)
pkg_check_modules(ZSTD REQUIRED libzstd)
pkg_check_modules(XXHASH REQUIRED libxxhash) # only its header: everything is inlined

# Optional: it decompresses DWARF in half the time of zlib.
pkg_check_modules(DEFLATE libdeflate)
if(SS_STATIC)
	find_library(SS_STATIC_LIB_deflate NAMES libdeflate.a)
	mark_as_advanced(SS_STATIC_LIB_deflate)
	if(NOT SS_STATIC_LIB_deflate)
		set(DEFLATE_FOUND OFF)
		set(DEFLATE_LINK_LIBRARIES)
	endif()
endif()
# Optional: core files compressed with lz4.
pkg_check_modules(LZ4 liblz4)
if(SS_STATIC)
	find_library(SS_STATIC_LIB_lz4 NAMES liblz4.a)
	mark_as_advanced(SS_STATIC_LIB_lz4)
	if(NOT SS_STATIC_LIB_lz4)
		set(LZ4_FOUND OFF)
		set(LZ4_LINK_LIBRARIES)
	endif()
endif()
set(SS_PC_LZ4)
if(LZ4_FOUND)
	set(SS_PC_LZ4 liblz4)
endif()
set(SS_PC_DEFLATE)
if(DEFLATE_FOUND)
	set(SS_PC_DEFLATE libdeflate)
endif()

# libiberty has no pkg-config file. It is in libiberty-dev (Debian), binutils-devel (Fedora),
# binutils-dev (Alpine) or binutils (Arch). Its header may be below libiberty/. Older Debian
# releases have a position-independent library with another name.
find_library(IBERTY_LIBRARY NAMES libiberty_pic.a libiberty.a iberty REQUIRED)
find_path(IBERTY_INCLUDE NAMES demangle.h PATH_SUFFIXES libiberty REQUIRED)

set(SS_LIBRARY_INCLUDES ${UNWIND_INCLUDE_DIRS} ${DW_INCLUDE_DIRS} ${LZMA_INCLUDE_DIRS}
	${SECCOMP_INCLUDE_DIRS} ${ZSTD_INCLUDE_DIRS} ${ZLIB_INCLUDE_DIRS} ${DEFLATE_INCLUDE_DIRS}
	${LZ4_INCLUDE_DIRS} ${XXHASH_INCLUDE_DIRS} ${IBERTY_INCLUDE})
set(SS_LIBRARY_LIBS ${UNWIND_LINK_LIBRARIES} ${DW_LINK_LIBRARIES} ${LZMA_LINK_LIBRARIES}
	${SECCOMP_LINK_LIBRARIES} ${ZSTD_LINK_LIBRARIES} ${ZLIB_LINK_LIBRARIES}
	${DEFLATE_LINK_LIBRARIES} ${LZ4_LINK_LIBRARIES} ${IBERTY_LIBRARY} Threads::Threads)

# What "stacksnap --version" names.
string(REPLACE GNU gcc SS_BUILT_WITH "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
string(APPEND SS_BUILT_WITH ", libunwind ${UNWIND_VERSION}, elfutils ${DW_libdw_VERSION}"
	", liblzma ${LZMA_VERSION}, zlib ${ZLIB_VERSION}, libzstd ${ZSTD_VERSION}"
	", libseccomp ${SECCOMP_VERSION}")
if(DEFLATE_FOUND)
	string(APPEND SS_BUILT_WITH ", libdeflate ${DEFLATE_VERSION}")
endif()
if(LZ4_FOUND)
	string(APPEND SS_BUILT_WITH ", lz4 ${LZ4_VERSION}")
endif()

# argp is part of glibc; with musl it is a separate library.
pkg_check_modules(JANSSON REQUIRED jansson)
string(APPEND SS_BUILT_WITH ", jansson ${JANSSON_VERSION}")
set(SS_TOOL_INCLUDES ${JANSSON_INCLUDE_DIRS} ${ZLIB_INCLUDE_DIRS} ${SECCOMP_INCLUDE_DIRS}
	${XXHASH_INCLUDE_DIRS})
set(SS_TOOL_LIBS ${JANSSON_LINK_LIBRARIES} ${ZLIB_LINK_LIBRARIES} ${SECCOMP_LINK_LIBRARIES})
find_library(ARGP_LIBRARY NAMES argp)
if(ARGP_LIBRARY)
	list(APPEND SS_TOOL_LIBS ${ARGP_LIBRARY})
endif()

if(NOT SS_STATIC)
	return()
endif()

set(SS_STATIC_UNWIND "" CACHE PATH "prefix of a position-independent libunwind.a")

# Appends to SS_STATIC_FOUND. Optional libraries, which depend on the build of libdw, may be
# missing.
function(ss_find_static name required)
	find_library(found lib${name}.a HINTS ${SS_STATIC_UNWIND}/lib NO_CACHE)
	if(found)
		set(SS_STATIC_FOUND ${SS_STATIC_FOUND} ${found} PARENT_SCOPE)
	elseif(required)
		message(FATAL_ERROR "SS_STATIC needs lib${name}.a, and there is none")
	endif()
endfunction()

set(SS_STATIC_FOUND)
foreach(name unwind-generic unwind dw elf lzma z zstd seccomp jansson)
	ss_find_static(${name} ON)
endforeach()
if(DEFLATE_FOUND)
	ss_find_static(deflate ON)
endif()
if(LZ4_FOUND)
	ss_find_static(lz4 ON)
endif()
foreach(name bz2 eu)
	ss_find_static(${name} OFF)
endforeach()
set(SS_STATIC_LIBS -Wl,--start-group ${SS_STATIC_FOUND} ${IBERTY_LIBRARY} -Wl,--end-group
	Threads::Threads)
if(ARGP_LIBRARY)
	list(APPEND SS_STATIC_LIBS ${ARGP_LIBRARY})
endif()

# Tries to link everything, each time anew: libunwind.a may have been replaced. unw_init_remote()
# needs the parts of libunwind that the tool needs, and dwarf_begin_elf() what Debian 13's elfutils lacks.
include(CheckCSourceCompiles)
function(ss_check_static result)
	set(CMAKE_REQUIRED_INCLUDES ${SS_LIBRARY_INCLUDES})
	set(CMAKE_REQUIRED_LIBRARIES ${SS_STATIC_LIBS})
	set(CMAKE_REQUIRED_LINK_OPTIONS ${ARGN})
	if("-static-pie" IN_LIST ARGN)
		set(CMAKE_REQUIRED_FLAGS -fPIE)
	endif()
	unset(${result} CACHE)
	check_c_source_compiles("
		#include <elfutils/libdw.h>
		#include <libunwind.h>
		int main(void) { unw_cursor_t cursor; dwarf_begin_elf(0, 0, 0); return unw_init_remote(&cursor, 0, 0); }
		" ${result})
endfunction()
ss_check_static(SS_STATIC_PIE -static-pie)
set(SS_STATIC_OPTION -static-pie)
if(NOT SS_STATIC_PIE)
	ss_check_static(SS_STATIC_FIXED -static -no-pie)
	set(SS_STATIC_OPTION -static -no-pie)
	if(SS_STATIC_FIXED)
		message(WARNING "libunwind.a is not position independent: "
			"static/stacksnap will be static, and loaded at a fixed address")
	else()
		message(WARNING "no static binary: the static libraries cannot be linked "
			"(libelf.a and libdw.a of Debian 13 are not whole)")
		set(SS_STATIC OFF)
	endif()
endif()
