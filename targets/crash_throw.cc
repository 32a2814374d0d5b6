/*
 * A C++ exception that nobody catches: raise and abort and libstdc++ below thrower::act(),
 * main.
 */
#include <stdexcept>
#include <string>

struct thrower {
	virtual ~thrower() = default;
	virtual void act(const std::string &text);
};

__attribute__((noinline)) void thrower::act(const std::string &text)
{
	throw std::runtime_error("not " + text);
}

int main(int argc, char **argv)
{
	thrower t;

	t.act(argc > 1 ? argv[1] : "caught");
	return 0;
}
