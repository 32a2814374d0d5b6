# cmake -DFROM=wait_functions.txt -DTO=wait_functions.c -P embed.cmake: the text as a C array.

file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE ${TO} "#include \"diagnose/wait_table.h\"\n\n"
	"const char ss_wait_functions[] = {${bytes}};\n"
	"const size_t ss_wait_functions_size = sizeof(ss_wait_functions);\n")
