"""OpenMP and MPI."""

from cases import ALARM, built, hang

OMP, MPI = {}, {}
FLAGS = ("-g", "-O1", "-fno-optimize-sibling-calls")


def program(name, sources, prelude, main, compiler):
    text = prelude + "".join("static void %s(void)\n{%s}\n" % (word, source) if "@" not in source else
                             source.replace("@", "static void %s(void)" % word) + "\n"
                             for word, source in sources.items()) + \
        "int main(int n, char **w)\n{\n\t(void)n;\n" + main + \
        "".join('\tif (!strcmp(w[1], "%s")) %s();\n' % (word, word) for word in sources) + "\treturn 0;\n}\n"
    return built(name, text, *compiler)


def omp(word, title, truth, source, expect, **options):
    OMP[word] = source

    def start(lab):
        path = program("openmp.c", OMP, """
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define KEEP __attribute__((noinline))
static void ready(void) { puts("ready"); fflush(stdout); }
static omp_lock_t a, b;
""", "\tomp_init_lock(&a);\n\tomp_init_lock(&b);\n", ("cc", "-fopenmp", *FLAGS, "-o", "{program}", "{source}"))
        return lab.run(path, word, env={"OMP_NUM_THREADS": "3", "OMP_WAIT_POLICY": "passive"})
    hang("parallel", "OpenMP: " + title, truth, start, expect, **options)


def mpi(word, title, truth, source, expect, rank=0, **options):
    MPI[word] = source

    def start(lab):
        path = program("ranks.c", MPI, """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define KEEP __attribute__((noinline))
/* of Open MPI's mpi.h, which its programs come without */
extern char ompi_mpi_comm_world[], ompi_mpi_char[], ompi_mpi_int[], ompi_mpi_op_sum[];
int MPI_Init(int *, char ***), MPI_Barrier(void *), MPI_Comm_rank(void *, int *), MPI_Comm_size(void *, int *);
int MPI_Recv(void *, int, void *, int, int, void *, void *), MPI_Send(const void *, int, void *, int, int, void *);
int MPI_Allreduce(const void *, void *, int, void *, void *, void *);
#define MPI_COMM_WORLD ((void *)ompi_mpi_comm_world)
#define MPI_CHAR ((void *)ompi_mpi_char)
#define MPI_INT ((void *)ompi_mpi_int)
#define MPI_SUM ((void *)ompi_mpi_op_sum)
#define MPI_STATUS_IGNORE ((void *)0)
static int rank, size;
static char *block;
static void ready(void) { printf("fact rank%d %d\\n", rank, getpid()); fflush(stdout); MPI_Barrier(MPI_COMM_WORLD); usleep(200000); if (!rank) { puts("ready"); fflush(stdout); } }
""", "\tMPI_Init(0, 0);\n\tMPI_Comm_rank(MPI_COMM_WORLD, &rank);\n\tMPI_Comm_size(MPI_COMM_WORLD, &size);\n"
            "\tblock = calloc(1, 10000000);\n\tready();\n",
            ("cc", *FLAGS, "-o", "{program}", "{source}", "-l:libmpi.so.40"))
        lab.run("mpirun", "--allow-run-as-root", "--oversubscribe", "-mca", "btl", "self,vader", "-mca",
                "mpi_yield_when_idle", "1", "-np", "2", path, word)
        return int(lab.facts["rank%d" % rank])
    hang("parallel", "MPI: " + title, truth, start, expect, still=False, **options)


omp("gather", "a barrier that one thread does not reach", "two threads wait in the barrier in step; the third waits for a lock in late that thread 0 holds", """
static KEEP void late(void) { omp_set_lock(&a); }
static KEEP void step(void) {
#pragma omp barrier
}
@ { omp_set_lock(&a); ready();
#pragma omp parallel
	{ if (omp_get_thread_num() == 1) late(); step(); }
}
""", ["late", "step", "barrier", r"omp_set_lock|\block\b"], alarm=ALARM)
omp("pairs", "two locks in opposite order", "thread 0 holds a and wants b in transfer, thread 1 holds b and wants a", """
static KEEP void transfer(omp_lock_t *x, omp_lock_t *y) { omp_set_lock(x);
#pragma omp barrier
	omp_set_lock(y); }
@ { ready();
#pragma omp parallel num_threads(2)
	{ if (omp_get_thread_num()) transfer(&b, &a); else transfer(&a, &b); }
}
""", ["transfer", r"omp_set_lock|\block\b"], alarm=ALARM)
omp("inside", "a critical section in a critical section of that name", "thread 0 waits in inner for the critical section that outer, its caller, is in", """
static KEEP void inner(void) {
#pragma omp critical(x)
	{ ready(); }
}
static KEEP void outer(void) {
#pragma omp critical(x)
	{ ready(); inner(); }
}
@ {
#pragma omp parallel num_threads(2)
	{ outer(); }
}
""", ["inner", "outer", "critical"], alarm=ALARM)
omp("crossing", "two named critical sections in opposite order", "thread 0 is in x and wants y, thread 1 is in y and wants x", """
static KEEP void first(void) {
#pragma omp critical(x)
	{ usleep(100000);
#pragma omp critical(y)
	{ a = b; } } }
static KEEP void second(void) {
#pragma omp critical(y)
	{ usleep(100000);
#pragma omp critical(x)
	{ b = a; } } }
@ { ready();
#pragma omp parallel num_threads(2)
	{ if (omp_get_thread_num()) second(); else first(); }
}
""", ["first", "second", "critical"], alarm=ALARM)
omp("ordered", "a thread that waits for input in a loop", "thread 1 waits in ask for a byte of a pipe; the others wait in the loop's barrier", """
static KEEP void ask(int i) { int p[2]; char c; if (i == 1 && !pipe(p) && read(p[0], &c, 1)) puts("x"); }
static KEEP void loop(void) {
#pragma omp for schedule(static, 1)
	for (int i = 0; i < 3; i++) ask(i);
}
@ { ready();
#pragma omp parallel
	loop();
}
""", ["ask", "pipe", "loop", "barrier"], alarm=ALARM)
mpi("receive", "two ranks that both receive first", "both wait in exchange, in MPI_Recv",
    "static KEEP void exchange(void) { MPI_Recv(block, 1, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }\n@ { exchange(); }",
    ["exchange", "MPI_Recv"])
mpi("send", "two ranks that both send a large block first", "both wait in exchange_large, in MPI_Send",
    "static KEEP void exchange_large(void) { MPI_Send(block, 10000000, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD); }\n@ { exchange_large(); }",
    ["exchange_large", "MPI_Send"])
mpi("absent", "a barrier that one rank does not reach", "rank 0 waits in phase, in MPI_Barrier; rank 1 waits for a pipe",
    "static KEEP void phase(void) { MPI_Barrier(MPI_COMM_WORLD); }\n@ { int p[2]; char c; if (rank && !pipe(p) && read(p[0], &c, 1)) puts(\"x\"); phase(); }",
    ["phase", "MPI_Barrier"])
mpi("wrong", "a collective call that only one rank makes", "rank 0 waits in gather_all, in MPI_Allreduce; rank 1 waits in MPI_Recv",
    "static KEEP void gather_all(void) { int x = 1, y; MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); }\n"
    "@ { if (rank) MPI_Recv(block, 1, MPI_CHAR, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); gather_all(); }",
    ["gather_all", "MPI_Allreduce"])
