#include "cli/command.h"
#include "cli/streams.h"

int main(int argc, char **argv)
{
	ss_streams_prepare();
	return ss_command_run(argc, argv);
}
