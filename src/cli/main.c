#include "cli/dispatch.h"
#include "cli/file_limit.h"
#include "cli/streams.h"

int main(int argc, char **argv)
{
	ss_streams_prepare();
	ss_file_limit_raise();
	return ss_dispatch(argc, argv);
}
