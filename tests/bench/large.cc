/* A part of the large program of names.py: templates of the standard library, whose debug
   information is large. work(d) calls itself d times, and waits. */
#include <algorithm>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

using Counts = std::map<std::string, std::vector<int>>;

template <int N> struct Level {
	static int run(Counts &counts, int depth)
	{
		std::unordered_map<std::string, std::map<int, std::string>> seen;
		std::regex pattern("a+b");
		std::smatch match;
		std::string text = "aab";
		std::regex_search(text, match, pattern);
		seen[text][N] = text;
		counts[text].push_back(N);
		std::sort(counts[text].begin(), counts[text].end(),
			  [](int a, int b) { return a % N < b % N; });
		std::function<int(int)> more = [&](int x) {
			return x + N + (int)seen.size();
		};
		if (depth == 0)
			pause();
		return depth > 0 ? Level<N - 1>::run(counts, depth - 1) + more(depth) :
				   more(1);
	}
};

template <> struct Level<0> {
	static int run(Counts &, int)
	{
		return pause();
	}
};

extern "C" int work(int depth)
{
	Counts counts;
	std::ostringstream out;
	std::mt19937 random;
	out << std::filesystem::path("/x");
	auto later = std::async(std::launch::deferred, [] { return 1; });
	return Level<60>::run(counts, depth) + later.get() + (int)random();
}
