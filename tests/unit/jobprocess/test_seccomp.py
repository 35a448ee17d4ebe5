"""The filters of system calls, as the kernel would run them: on both machines, call by call."""

from __future__ import annotations

import re
import socket
import struct
from pathlib import Path

import pytest

from scrapy_ext.jobprocess.confinement import seccomp
from scrapy_ext.jobprocess.confinement.seccomp import COMPUTING, JOB, NOTIFYING_JOB, Filter

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: Architectures whose calls the same kernels accept: i386, and 32-bit ARM.
NARROW = {"x86_64": 0x40000003, "aarch64": 0x40000028}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
EPERM, ENOSYS, ALLOWED, NOTIFIED = "EPERM", "ENOSYS", "allowed", "notified"
_RESULTS = {0x00050001: EPERM, 0x00050026: ENOSYS, 0x7FFF0000: ALLOWED, 0x7FC00000: NOTIFIED}
FILTERS = {"job": JOB, "notifying job": NOTIFYING_JOB, "computing": COMPUTING}
NEW_USER, NEW_FOLDERS, THREAD, CHILD = 0x10000000, 0x20000, 0x10000, 17
CLOSED_ON_EXEC, NON_BLOCKING = socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK


def outcome(rules: Filter, machine: str, number: int, *arguments: int, architecture: int | None = None) -> str:
    """The result of a filter for a call, by an interpreter of its instructions."""
    data = struct.pack(
        "<IIQ6Q", number & 0xFFFFFFFF, architecture or MACHINES[machine], 0, *arguments, *[0] * (6 - len(arguments))
    )
    steps = [struct.unpack("<HBBI", step) for step in seccomp.program_of(rules, machine)]
    place = word = 0
    while True:
        code, if_true, if_false, value = steps[place]
        place += 1
        match code:
            case 0x20:
                (word,) = struct.unpack_from("<I", data, value)
            case 0x54:
                word &= value
            case 0x06:
                return _RESULTS[value]
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[code]
                place += if_true if holds else if_false
            case _:
                raise AssertionError(f"no instruction {code:#x}")


#: Calls whose result depends on nothing but the filter: the result for jobs, and for computing.
_EVERYWHERE = {
    "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd bpf perf_event_open userfaultfd": (EPERM, EPERM),
    "add_key request_key keyctl": (EPERM, EPERM),
    "init_module finit_module delete_module kexec_load kexec_file_load": (EPERM, EPERM),
    "open_by_handle_at mount umount2 pivot_root setns": (EPERM, EPERM),
    "open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_tree_attr": (EPERM, EPERM),
    "io_uring_setup io_uring_enter io_uring_register clone3": (ENOSYS, ENOSYS),
    "shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl": (ENOSYS, ENOSYS),
    "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr": (ENOSYS, ENOSYS),
    "socketpair bind execve execveat fork vfork": (ALLOWED, EPERM),
    "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal": (ALLOWED, EPERM),
    "setpriority ioprio_set migrate_pages move_pages": (ALLOWED, EPERM),
    "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat": (ALLOWED, EPERM),
    "utime utimes futimesat utimensat": (ALLOWED, EPERM),
    "setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat": (ALLOWED, EPERM),
    "file_setattr inotify_init inotify_init1 fanotify_init": (ALLOWED, EPERM),
}
PLAIN = {name: results for names, results in _EVERYWHERE.items() for name in names.split()}
#: Calls whose arguments decide: the arguments, the result for jobs that notify, and for computing.
DECIDED = [
    ("unshare", (0,), ALLOWED, EPERM),
    ("unshare", (NEW_FOLDERS,), ALLOWED, EPERM),  # the kernel refuses it to a process without capabilities
    ("unshare", (NEW_USER,), EPERM, EPERM),
    ("unshare", (NEW_USER | NEW_FOLDERS,), EPERM, EPERM),
    ("unshare", (NEW_USER | 1 << 40,), EPERM, EPERM),
    ("clone", (CHILD,), ALLOWED, EPERM),
    ("clone", (THREAD,), ALLOWED, ALLOWED),
    ("clone", (THREAD | NEW_USER,), EPERM, ALLOWED),  # the kernel refuses both together
    ("clone", (NEW_USER | CHILD,), EPERM, EPERM),
    ("socket", (socket.AF_UNIX, socket.SOCK_STREAM, 0), ALLOWED, EPERM),
    ("socket", (socket.AF_UNIX, socket.SOCK_DGRAM, 0), ALLOWED, EPERM),
    *(
        ("socket", (family, kind | flags, protocol), ALLOWED, EPERM)
        for family in (socket.AF_INET, socket.AF_INET6)
        for kind, known in ((socket.SOCK_STREAM, socket.IPPROTO_TCP), (socket.SOCK_DGRAM, socket.IPPROTO_UDP))
        for protocol in (0, known)
        for flags in (0, CLOSED_ON_EXEC | NON_BLOCKING)
    ),
    ("socket", (socket.AF_INET, socket.SOCK_STREAM, 132), EPERM, EPERM),  # SCTP
    ("socket", (socket.AF_INET, socket.SOCK_STREAM, 262), EPERM, EPERM),  # multipath TCP
    ("socket", (socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP), EPERM, EPERM),
    ("socket", (socket.AF_INET, socket.SOCK_DGRAM, 136), EPERM, EPERM),  # UDP-Lite
    ("socket", (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP), EPERM, EPERM),
    ("socket", (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6), EPERM, EPERM),
    ("socket", (socket.AF_INET, socket.SOCK_SEQPACKET, 0), EPERM, EPERM),
    ("socket", (16, socket.SOCK_RAW, 0), ALLOWED, EPERM),  # netlink for routes and addresses
    *(("socket", (16, socket.SOCK_RAW, protocol), EPERM, EPERM) for protocol in (4, 9, 12, 15, 16)),
    *(("socket", (family, socket.SOCK_RAW, 0), EPERM, EPERM) for family in (0, 3, 15, 17, 29, 31, 38, 40, 44)),
    ("connect", (3, 4096, 16), NOTIFIED, EPERM),
    ("sendmsg", (3, 4096, 0), NOTIFIED, ALLOWED),
    ("sendmmsg", (3, 4096, 1, 0), NOTIFIED, ALLOWED),
    ("sendto", (3, 4096, 1, 0, 0, 0), ALLOWED, ALLOWED),
    ("sendto", (3, 4096, 1, 0, 4096, 16), NOTIFIED, ALLOWED),
    ("sendto", (3, 4096, 1, 0, 1 << 32, 16), NOTIFIED, ALLOWED),  # with bits in the high half alone
    *((name, (0,), ALLOWED, ALLOWED) for name in ("prlimit64", "sched_setaffinity", "sched_setparam")),
    *((name, (7,), ALLOWED, EPERM) for name in ("prlimit64", "sched_setaffinity", "sched_setparam")),
    *((name, (number,), ALLOWED, result) for number, result in ((0, ALLOWED), (7, EPERM)) for name in
      ("sched_setscheduler", "sched_setattr")),
    *(("fcntl", (1, command), ALLOWED, EPERM) for command in (8, 10, 15)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX
    *(("fcntl", (1, command), ALLOWED, ALLOWED) for command in (0, 1, 2, 3, 4, 9, 11, 16, 1030)),
]  # fmt: skip


@pytest.mark.parametrize("machine", MACHINES)
def test_each_call_has_its_result_whatever_its_arguments(machine: str) -> None:
    for name, (of_job, of_computing) in PLAIN.items():
        if (number := seccomp.number_of(name, machine)) < 0:
            continue
        for arguments in ((), (1,) * 6, (2**64 - 1,) * 6):
            found = {each: outcome(rules, machine, number, *arguments) for each, rules in FILTERS.items()}
            assert found == {"job": of_job, "notifying job": of_job, "computing": of_computing}, (name, arguments)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "arguments", "of_job", "of_computing"), DECIDED)
def test_arguments_decide(machine: str, name: str, arguments: tuple[int, ...], of_job: str, of_computing: str) -> None:
    number = seccomp.number_of(name, machine)
    assert outcome(NOTIFYING_JOB, machine, number, *arguments) == of_job
    assert outcome(JOB, machine, number, *arguments) == (ALLOWED if of_job == NOTIFIED else of_job)
    assert outcome(COMPUTING, machine, number, *arguments) == of_computing


@pytest.mark.parametrize("machine", MACHINES)
def test_the_tables_above_have_every_call_of_the_filters(machine: str) -> None:
    assert {*PLAIN, *(name for name, *_ in DECIDED)} | {"seccomp"} == {*seccomp._CALLS}
    known = {seccomp.number_of(name, machine) for name in seccomp._CALLS} - {-1, seccomp.number_of("seccomp", machine)}
    for rules in FILTERS.values():
        decided = {number for number in range(600) if outcome(rules, machine, number, *[2**63] * 6) != ALLOWED}
        assert decided <= known


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", FILTERS)
def test_calls_of_other_interfaces_of_the_kernel_are_unknown(machine: str, name: str) -> None:
    rules = FILTERS[name]
    for number in (0, 1, 20, 39, 101, 425, 2**30 - 1):
        assert outcome(rules, machine, number, architecture=NARROW[machine]) == ENOSYS
        assert outcome(rules, machine, number | 0x40000000) == ENOSYS
    for other in {*MACHINES} - {machine}:
        assert outcome(rules, machine, 39, architecture=MACHINES[other]) == ENOSYS
    assert outcome(rules, machine, -1) == ENOSYS  # of a tracer that skips a call


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_those_of_the_kernel(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the headers of the kernel are not installed")
    shown = re.findall(r"#define __NR(?:3264)?_(\w+)\s+([0-9]+)$", HEADERS[machine].read_text(), re.MULTILINE)
    of_kernel = {name: int(number) for name, number in shown}
    newest = max(of_kernel.values())
    for name in seccomp._CALLS:
        number = seccomp.number_of(name, machine)
        if number <= newest and (name in of_kernel or number >= 0):
            assert number == of_kernel[name], name


def test_a_program_fits_the_kernel_and_each_of_its_jumps_ends_in_it() -> None:
    for rules in FILTERS.values():
        for machine in MACHINES:
            steps = [struct.unpack("<HBBI", step) for step in seccomp.program_of(rules, machine)]
            assert len(steps) <= 4096
            assert steps[-1][0] == 0x06
            for place, (_, if_true, if_false, _) in enumerate(steps):
                assert place + 1 + max(if_true, if_false) <= len(steps)


def test_a_machine_without_filters_is_reported() -> None:
    with pytest.raises(OSError, match="no filter of system calls for riscv64"):
        seccomp.number_of("ptrace", "riscv64")
    with pytest.raises(OSError, match="no filter of system calls for riscv64"):
        b"".join(seccomp.program_of(JOB, "riscv64"))
