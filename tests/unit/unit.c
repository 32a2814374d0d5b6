#include "unit.h"

#include <stdlib.h>

enum { TESTS_MAX = 128 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;
static CMFixtureFunction group_setup;
static CMFixtureFunction group_teardown;

void unit_add(const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
	      CMFixtureFunction teardown)
{
	if (count == TESTS_MAX)
		abort();
	tests[count++] = (struct CMUnitTest){ name, test, setup, teardown, NULL };
}

void unit_set_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	group_setup = setup;
	group_teardown = teardown;
}

int main(void)
{
	if (count == 0)
		abort();
	return _cmocka_run_group_tests("tests", tests, count, group_setup,
				       group_teardown);
}
