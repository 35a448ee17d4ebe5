"""The first process of what is run for others: it starts the one that does the work, and stays until nothing of that is
left. A node runs jobs by it, and a server the builds and checks of deployed versions.

On standard input comes one line, a :class:`Task` as JSON; then the input stays open for as long as the one that gave it
lives. Rules that hold here:

- Whatever the work starts is below this process, also what leaves its group or makes a daemon of itself: Linux hands
  orphans to the nearest *subreaper*, which this is.
- When the work has ended, what is left below is killed, and waited for. The same happens at once when the node is gone,
  which shows as the end of standard input.
- Where the work is confined, and the system can do that, signals of this process reach nobody but what is below it. So
  it may send one to everybody, which no process escapes by forking.
- What does the work is in a group of its own, with this process's ID and without this process, which so goes on when
  that group is stopped.
- Should this process be killed, the kernel kills the one that does the work.
- It ends as the work has ended: with the same exit status, or by the same signal.
- No code of the work runs here. It runs in another program, which is confined (``scrapy_ext.jobprocess.confinement``)
  before it begins, and this process makes the connections that it may make.

It imports the standard library alone, starts quickly, and takes little memory. It has threads only for connections that
take their time, and only after it has forked.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from scrapy_ext.jobprocess import file_trees
from scrapy_ext.jobprocess.confinement import Confinement, system
from scrapy_ext.jobprocess.proc import below, children, send, table

if TYPE_CHECKING:
    from scrapy_ext.jobprocess.confinement.connections import Connections

#: What comes from outside.
_ASKED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: Ended processes that are waited for until the input is looked at again: those that fork and end at once never stop.
_REAPED_AT_ONCE: Final = 1000
#: Seconds for killed processes to be gone.
_PATIENCE: Final = 10.0
#: Exit status of work that could not be started, as shells have it.
_NOT_STARTED: Final = 126
#: In environment variables of a task: the path of its temporary folder.
_FOLDER_VARIABLES: Final = ("TMPDIR", "HOME")
_NEEDED: Final = ("PATH", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
_ROOT: Final = str(Path(__file__).resolve().parents[2])


class Task(NamedTuple):
    """A program to run. ``parent``: process ID of the one that starts it."""

    parent: int
    command: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    #: Standard input of the program.
    input: str = ""
    #: Descriptors that the program inherits, and this process does not keep.
    keep: Sequence[int] = ()
    #: Fields of a :class:`Confinement`; None: the program has the rights of the one that starts it. One that is
    #: confined has a temporary folder of its own as ``TMPDIR`` and ``HOME``.
    confinement: Mapping[str, Any] | None = None
    #: Descriptor of the ports of the server's own (``confinement.own_ports``), which the program does not inherit.
    own_ports: int | None = None


def command(module: str = "supervisor") -> list[str]:
    """The command line of a supervisor: neither the environment nor the packages of anybody change it. ``module``:
    another of this folder that needs the standard library alone."""
    code = f"import sys; sys.path.append({_ROOT!r}); from scrapy_ext.jobprocess.{module} import main; main()"
    return [sys.executable, "-I", "-S", "-c", code]


def environment() -> dict[str, str]:
    """The environment of a supervisor: where temporary folders are, and what a Python needs to start."""
    return {name: value for name in _NEEDED if (value := os.environ.get(name)) is not None}


def line_of(task: Task) -> bytes:
    """The line that a supervisor reads."""
    return json.dumps(task._asdict()).encode() + b"\n"


def descriptors(task: Task) -> list[int]:
    """The descriptors that a supervisor is to inherit."""
    return [*task.keep, *([] if task.own_ports is None else [task.own_ports])]


def main() -> NoReturn:
    """Run the task that standard input names; ends the process."""
    system.hide_memory()
    source = os.dup(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    task = Task(**json.loads(_line(source)))
    for descriptor in descriptors(task):
        os.set_inheritable(descriptor, False)
    if os.getppid() != task.parent:
        sys.exit("The node ended before its job began.")
    confinement = None if task.confinement is None else Confinement.of(dict(task.confinement))
    with _temporary_folder(confinement) as temporary:
        if confinement is not None and temporary:
            named = dict.fromkeys(_FOLDER_VARIABLES, temporary)
            task = task._replace(environment={**task.environment, **named})
            confinement = confinement._replace(write=[*confinement.write, temporary])
        supervisor = _split(task, confinement, source)
        supervisor.run()
    supervisor.end()


def _line(source: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(source, 65536)
        if not piece:
            sys.exit("The node ended before it said what to run.")
        line += piece
    return line


@contextlib.contextmanager
def _temporary_folder(confinement: Confinement | None) -> Iterator[str]:
    """A folder of the work's own, which is removed when nothing of that is left."""
    if confinement is None:
        yield ""
        return
    folder = os.path.realpath(tempfile.mkdtemp(prefix="scrapy-ext-"))
    try:
        if confinement.user is not None and confinement.group is not None:
            os.chown(folder, confinement.user, confinement.group)
        yield folder
    finally:
        try:
            file_trees.remove(folder)
        except OSError as error:
            _report(f"The temporary folder {folder} could not be removed: {error}. Remove it.")


def _report(text: str) -> None:
    """Write a line to the log of the work."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())


def _split(task: Task, confinement: Confinement | None, source: int) -> _Supervisor:
    """Start the work in a process of its own; this returns in the one that stays. ``source``: where the end of the node
    shows."""
    view, is_enclosed = (-1, False) if confinement is None else _enclose(task, confinement)
    if system.IS_LINUX:
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGCONT)  # one that is stopped must see that the node is gone
    given = _input(task.input)
    parent, group = os.getpid(), os.getpgrp()
    confined, sending = os.pipe()
    waiting, go = os.pipe()
    with contextlib.suppress(PermissionError):  # one that leads a session leads its group
        os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, _ASKED)  # until somebody listens
    work = os.fork()
    if work == 0:
        os.dup2(given, 0)
        os.close(go)
        _begin(task, confinement, view, parent, _Turn(sending, waiting))
    for descriptor in (given, sending, waiting, *task.keep, *([view] if view >= 0 else [])):
        os.close(descriptor)
    with contextlib.suppress(PermissionError):
        os.setpgid(0, group)
    connections = _connections(work, task, confinement, confined) if confinement is not None else None
    os.close(confined)
    os.close(go)
    return _Supervisor(work, source, connections, is_enclosed=is_enclosed)


def _enclose(task: Task, confinement: Confinement) -> tuple[int, bool]:
    """Make the view of the work, and then keep the signals of this process among itself and what it starts. Returns
    the descriptor of the view, or -1, and whether signals are kept. The work, which gives up more, sends none to this
    process."""
    from scrapy_ext.jobprocess.confinement import applying, landlock

    try:
        view = applying.view_of(confinement)
        if applying.SIGNALS not in confinement.defences:
            return view, False
        landlock.enclose_signals()
    except OSError as error:
        _report(f"The process could not be started: {error}")
        sys.exit(_NOT_STARTED)
    # A signal to everybody is sent on the strength of this: believe the kernel's answer, not its version.
    try:
        os.kill(task.parent, 0)
    except PermissionError:
        return view, True
    except ProcessLookupError:
        pass
    return view, False


def _input(text: str) -> int:
    """A descriptor from which a text is read."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("input")
        with open(descriptor, "wb", closefd=False) as file:
            file.write(text.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        return os.dup(file.fileno())


class _Turn(NamedTuple):
    """Of the process of the work: where it reports its listener, and waits until the supervisor has it."""

    sending: int
    waiting: int

    def take(self, descriptor: int) -> None:
        """Report the descriptor, and wait."""
        os.write(self.sending, b"%d" % descriptor)
        os.close(self.sending)
        os.read(self.waiting, 1)


def _begin(task: Task, confinement: Confinement | None, view: int, parent: int, turn: _Turn) -> NoReturn:
    """In the process of the work: execute its program."""
    try:
        for descriptor in task.keep:
            os.set_inheritable(descriptor, True)
        if confinement is not None:
            from scrapy_ext.jobprocess.confinement.applying import confine

            descriptor = confine(confinement, view)
            if system.IS_LINUX:
                system.prctl(system.PR_SET_DUMPABLE, 1)  # else its supervisor may not take the descriptor
            turn.take(descriptor)
        os.chdir(task.folder)
        if system.IS_LINUX:  # set anew: another user has lost it
            system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores, and a program that it starts would
            signal.signal(number, signal.SIG_DFL)
        os.execve(task.command[0], list(task.command), dict(task.environment))  # noqa: S606 - no shell
    except BaseException as error:
        _report(f"The process could not be started: {error}")
        os._exit(_NOT_STARTED)


def _connections(work: int, task: Task, confinement: Confinement, confined: int) -> Connections | None:
    """Take over the connections of the work, once it is confined."""
    text = os.read(confined, 16)
    if not text or int(text) < 0:
        return None
    from scrapy_ext.jobprocess.confinement.connections import Connections, Rules

    rules = Rules(confinement.denied, confinement.denied_ports, task.own_ports)
    return Connections.of(work, int(text), rules, confinement.write)


class _Supervisor:
    """``is_enclosed``: signals of this process reach nobody but what is below it."""

    def __init__(self, work: int, source: int, connections: Connections | None, *, is_enclosed: bool) -> None:
        self._work = work
        self._source = source
        self._connections = connections
        self._is_enclosed = is_enclosed
        self._status: int | None = None

    def run(self) -> None:
        """Wait until nothing of the work is left."""
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda number, _: self._pass_on(number))
        for number in (signal.SIGINT, signal.SIGHUP):  # of the terminal: they are for the node
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ASKED)
        reaped = self._reap()  # the work may have ended before its signal could be noticed
        while self._status is None:
            calls = [] if self._connections is None else [self._connections.descriptor]
            more = reaped == _REAPED_AT_ONCE
            ready, _, _ = select.select([self._source, wake, *calls], [], [], 0 if more else None)
            if self._source in ready and not self._hears_of_node():
                break
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
            if self._connections is not None and ready[-1:] == calls and not self._connections.answer():
                self._connections = None
            reaped = self._reap() if more or wake in ready else 0
        self._kill_all()

    def _pass_on(self, number: int) -> None:
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._work, number)

    def _hears_of_node(self) -> bool:
        try:
            return bool(os.read(self._source, 4096))
        except OSError:
            return False

    def _reap(self) -> int | None:
        """Wait for those who have ended, so many at most; returns how many they were, None when nobody is left."""
        for reaped in range(_REAPED_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return reaped
            if pid == self._work:
                self._status = status
        return _REAPED_AT_ONCE

    def _kill_all(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who ends from now on needs nobody to wait for it
        with contextlib.suppress(OSError):  # root may: many that fork would leave little time to who ends them
            os.setpriority(os.PRIO_PROCESS, 0, -20)
        while (reaped := self._reap()) is not None and time.monotonic() < deadline:
            if self._is_enclosed:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(-1, signal.SIGKILL)  # in one step: who is forking then fails to
            else:
                self._kill_tree()
            if not reaped:
                time.sleep(0.005)

    def _kill_tree(self) -> None:
        """Kill what is below this process now. It is stopped before, so that none of it answers the end of another."""
        # Those that fork and end at once are gone before the table is whole; whoever is left of them is a child.
        send(children(), signal.SIGKILL)
        own = os.getpid()
        tree = [process.pid for process in below([own], table())[own][1:]]
        if not tree and self._status is None:  # a system that does not show its processes
            tree = [self._work]
        send(tree, signal.SIGSTOP)
        send(tree, signal.SIGKILL)

    def end(self) -> NoReturn:
        """End as the work has ended."""
        status = self._status
        if status is None or os.WIFSIGNALED(status):
            number = signal.SIGKILL if status is None else os.WTERMSIG(status)
            with contextlib.suppress(OSError, ValueError):
                import resource

                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one of the work is enough
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            os._exit(128 + number)
        os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
