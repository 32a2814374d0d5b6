"""What is checked on each kernel: tests of tests/e2e, by what a user would call it. Such a test passes
only if the whole truth about its programs was printed."""

# capability: tests as FILE.CLASS.METHOD
CAPABILITIES = {
    "snap": ["threads.Threads.test_snapshots_are_atomic"],
    "snap without stops": ["auto.Untouched.test_sleepers_are_not_woken"],
    "waits, owners": ["locks.Locks.test_every_wait"],
    "hang": ["hang.Hang.test_deadlock", "hang.Hang.test_idle"],
    "series, diff": ["series.Series.test_deadlock", "diff.Diff.test_blocked"],
    "top": ["top.Top.test_waits_and_owners"],
    "record, report": ["record.Record.test_blocked_threads", "record.Record.test_command"],
    "record --on-cpu": ["on_cpu.OnCpu.test_threads_that_sleep"],
    "trace": ["trace.TraceTest.test_stacks", "trace.TraceTest.test_recording"],
    "trace --alloc": ["trace_alloc.Alloc.test_glibc"],
    "run": ["run.Crashes.test_null_pointer"],
    "core": ["core.Core.test_fault", "core.Core.test_waits"],
    "core --install": ["core_handler_kernel.Kernel.test_crashes",
                       "core_handler_kernel.Kernel.test_other_handler"],
    "Python": ["real.Python.test_python"],
    "Go": ["real.Go.test_stripped"],
    "no call disturbed": ["eintr.Interruptions.test_default_mode", "eintr.Interruptions.test_no_stop",
                          "eintr.Interruptions.test_modes_that_stop",
                          "eintr.Interruptions.test_record"],
    "samples by the kernel": ["record_by_kernel.ByKernel.test_modules_between_ticks"],
    "node": ["real.Node.test_node"],
    "MariaDB": ["real.MariaDb.test_mariadb"],
    "Java": ["java.Standing.test_text"],
    "heap": ["heap.Heap.test_counts"],
}

# What is not tried on another processor: programs that are not in its root directory, or too slow there.
NOT_FOREIGN = {"Go", "Java", "MariaDB", "node"}

# Settings of the kernel, and what there is with them. The last ones stay until the next boot.
_SETTINGS = {
    "Yama's ptrace_scope 1": ["settings.Yama.test_1"],
    "ptrace_scope 2": ["settings.Yama.test_2"],
    "perf_event_paranoid 3 and 4": ["settings.Perf.test_paranoid"],
    "no perf_event_open": ["settings.Perf.test_no_perf"],
    "no bpf": ["settings.Perf.test_no_bpf"],
    "max_user_namespaces 0": ["settings.Namespaces.test_no_user_namespaces"],
    "hidepid=2": ["settings.Namespaces.test_hidden_processes"],
    "cgroup v1": ["settings.Namespaces.test_cgroup_1"],
    "AppArmor": ["settings.SecurityModules.test_apparmor"],
    "unprivileged_bpf_disabled 1": ["settings.Perf.test_unprivileged_bpf"],
    "lockdown=confidentiality": ["settings.SecurityModules.test_lockdown"],
    "ptrace_scope 3": ["settings.Yama.test_3"],
    "ptrace_scope 3, a crash": ["settings.Yama.test_3_handler"],
}

_SYSTEMD = {
    "systemd: core --install": ["booted.Booted.test_pattern"],
    "systemd: stacksnap-hang@": ["booted.Booted.test_unit"],
    "systemd: its own stack": ["booted.Booted.test_first_process"],
}

# The machines: what they are started with, and what is checked there.
BOOTS = [
    ({}, {**CAPABILITIES, **_SETTINGS}),
    ({"root": "bookworm", "init": "/lib/systemd/systemd", "parameters": "systemd.wants=guest.service"},
     _SYSTEMD),
]
SETTINGS = [row for _, table in BOOTS for row in table if row not in CAPABILITIES]
