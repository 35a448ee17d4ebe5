"""The supervisor: a process that starts a program, and stays until the program and all that it has started have ended.
A node runs jobs under it, and a server the builds and checks of deployed versions.

On standard input comes one line, a :class:`SupervisedProgram` as JSON; then the input stays open for as long as its
writer, called the node here, lives. Invariants:

- All processes of the work are below this one, also those that leave its group or become daemons: Linux makes orphans
  children of the nearest *subreaper*, which this is. Other systems have none. There the processes of the work are those
  below this one, those in the group of the program, those that were so when they were listed (every second), and those
  that have the mark of this supervisor in their environment. Only a daemon that leaves the group at once, with another
  environment, escapes.
- When the program has ended, what is left below is killed, and waited for. The same happens at once when the node has
  ended, which shows as the end of standard input.
- Under a confinement, on systems that can, signals of this process reach only processes below it. So it may send one to
  every process, which none escapes by forking.
- The program is in a group of its own, with this process's ID and without this process, which therefore continues when
  that group is stopped.
- If this process is killed, the kernel kills the program; elsewhere than on Linux, the node does.
- It ends as the program has ended: with the same exit status, or by the same signal.
- No code of the work runs here. It runs in another program, which is confined (``scrapy_ext.jobprocess.confinement``)
  before it starts, and this process makes the connections that it may make.

It imports the standard library alone, starts quickly, and takes little memory. It has threads only for connections that
take long, and only after it has forked.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from scrapy_ext.jobprocess import file_trees, handover, ps
from scrapy_ext.jobprocess.confinement import Confinement, system
from scrapy_ext.jobprocess.proc import Process, below, children, send, table

if TYPE_CHECKING:
    from scrapy_ext.jobprocess.confinement.connections import ConnectionBroker

#: Signals from outside.
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: Ended processes that are waited for before the next poll of the input: those that fork and end at once never stop.
_REAPED_AT_ONCE: Final = 1000
#: Seconds for killed processes to end.
_KILL_SECONDS: Final = 10.0
#: Seconds between two lists of processes on a system without a subreaper.
_LIST_SECONDS: Final = 1.0
#: Exit status of a program that could not be started, as in shells.
_NOT_STARTED: Final = 126
#: Variable that marks the processes of the work on a system without a subreaper.
_MARK: Final = "SCRAPY_EXT_SUPERVISOR"
#: Environment variables with the path of the temporary folder.
_FOLDER_VARIABLES: Final = ("TMPDIR", "HOME")
_NEEDED: Final = ("PATH", "TMPDIR", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


class SupervisedProgram(NamedTuple):
    #: Process ID of the node.
    parent: int
    command: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    #: Standard input of the program.
    input: str = ""
    #: Descriptors that the program inherits, and this process does not keep.
    keep: Sequence[int] = ()
    #: Fields of a :class:`Confinement`; None: the program has the rights of the node. A confined one has a temporary
    #: folder of its own as ``TMPDIR`` and ``HOME``.
    confinement: Mapping[str, Any] | None = None
    #: Descriptor of the internal ports of the server (``confinement.addresses``), which the program does not inherit.
    own_ports: int | None = None


def command(module: str = "supervisor") -> list[str]:
    """Return the command line of a supervisor, which neither environment nor installed packages change. ``module``:
    another one of this folder that needs the standard library alone."""
    code = f"import sys; sys.path.append({_ROOT!r}); from scrapy_ext.jobprocess.{module} import main; main()"
    return [sys.executable, "-I", "-S", "-c", code]


def environment() -> dict[str, str]:
    """Return the environment of a supervisor: the variables for temporary folders and for the start of Python."""
    return {name: value for name in _NEEDED if (value := os.environ.get(name)) is not None}


def line_of(program: SupervisedProgram) -> bytes:
    return json.dumps(program._asdict()).encode() + b"\n"


def descriptors(program: SupervisedProgram) -> list[int]:
    return [*program.keep, *([] if program.own_ports is None else [program.own_ports])]


def main() -> NoReturn:
    """Run the program that standard input names; ends this process."""
    system.hide_memory()
    source = os.dup(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    program = SupervisedProgram(**json.loads(_line(source)))
    for descriptor in descriptors(program):
        os.set_inheritable(descriptor, False)
    if os.getppid() != program.parent:
        sys.exit("The node ended before its job began: the job is run again by another one.")
    confinement = None if program.confinement is None else Confinement.of(dict(program.confinement))
    with _temporary_folder(confinement) as temporary:
        if confinement is not None and temporary:
            named = dict.fromkeys(_FOLDER_VARIABLES, temporary)
            program = program._replace(environment={**program.environment, **named})
            confinement = confinement._replace(write=[*confinement.write, temporary])
        supervisor = _split(program, confinement, source)
        supervisor.run()
    supervisor.end()


def _line(source: int) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(source, 65536)
        if not piece:
            sys.exit("The node ended before it sent a program: the job is run again by another one.")
        line += piece
    return line


@contextlib.contextmanager
def _temporary_folder(confinement: Confinement | None) -> Iterator[str]:
    """Create a private folder for a confined program, and remove it when all of its processes have ended."""
    if confinement is None:
        yield ""
        return
    # Imported for confined programs alone, with the libraries of archives: each job has a supervisor.
    import tempfile

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
    """Write a line to the log of the program."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode())


def _split(program: SupervisedProgram, confinement: Confinement | None, source: int) -> _Supervisor:
    """Start the program in a child process; returns in the parent. ``source``: input that ends with the node."""
    view, is_enclosed = (-1, False) if confinement is None else _enclose(program, confinement)
    if system.IS_LINUX:
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
        system.prctl(system.PR_SET_PDEATHSIG, signal.SIGCONT)  # a stopped one must see the end of the node
    mark = "" if system.IS_LINUX else f"{os.getpid()}-{os.urandom(8).hex()}"
    if mark:
        program = program._replace(environment={**program.environment, _MARK: mark})
    given = handover.offer(program.input.encode())
    parent, group = os.getpid(), os.getpgrp()
    confined, sending = os.pipe()
    waiting, go = os.pipe()
    with contextlib.suppress(PermissionError):  # the leader of a session leads its group
        os.setpgid(0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until handlers are set
    work = os.fork()
    if work == 0:
        os.dup2(given, 0)
        os.close(go)
        _begin(program, confinement, view, parent, _Listener(sending, waiting))
    for descriptor in (given, sending, waiting, *program.keep, *([view] if view >= 0 else [])):
        os.close(descriptor)
    with contextlib.suppress(PermissionError):
        os.setpgid(0, group)
    broker = _broker(work, program, confinement, confined) if confinement is not None else None
    os.close(confined)
    os.close(go)
    return _Supervisor(work, source, broker, is_enclosed=is_enclosed, mark=mark)


def _enclose(program: SupervisedProgram, confinement: Confinement) -> tuple[int, bool]:
    """Make the view of the program, and then restrict the signals of this process to itself and its descendants.
    Returns the descriptor of the view, or -1, and whether signals are restricted. The program is restricted further,
    and cannot send signals to this process."""
    from scrapy_ext.jobprocess.confinement import applying, landlock

    try:
        view = applying.view_of(confinement)
        if applying.SIGNALS not in confinement.defences:
            return view, False
        landlock.enclose_signals()
    except OSError as error:
        _report(f"The process could not be started: {error}")
        sys.exit(_NOT_STARTED)
    # A signal to every process relies on this: test the kernel, and do not trust its version.
    try:
        os.kill(program.parent, 0)
    except PermissionError:
        return view, True
    except ProcessLookupError:
        pass
    return view, False


class _Listener(NamedTuple):
    """Pipes of the child that pass the descriptor of its filter to the supervisor."""

    sending: int
    waiting: int

    def hand_over(self, descriptor: int) -> None:
        """Report the descriptor, and wait until the supervisor has it."""
        os.write(self.sending, b"%d" % descriptor)
        os.close(self.sending)
        os.read(self.waiting, 1)


def _begin(
    program: SupervisedProgram, confinement: Confinement | None, view: int, parent: int, listener: _Listener
) -> NoReturn:
    """Execute the program, in the child."""
    try:
        for descriptor in program.keep:
            os.set_inheritable(descriptor, True)
        if confinement is not None:
            from scrapy_ext.jobprocess.confinement.applying import confine

            descriptor = confine(confinement, view)
            if system.IS_LINUX:
                system.prctl(system.PR_SET_DUMPABLE, 1)  # else the supervisor may not take the descriptor
            listener.hand_over(descriptor)
        os.chdir(program.folder)
        if system.IS_LINUX:  # set again: a change of user ends it
            system.prctl(system.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, and so by a program that it executes
            signal.signal(number, signal.SIG_DFL)
        os.execve(program.command[0], list(program.command), dict(program.environment))  # noqa: S606 - no shell
    except BaseException as error:
        _report(f"The process could not be started: {error}")
        os._exit(_NOT_STARTED)


def _broker(work: int, program: SupervisedProgram, confinement: Confinement, confined: int) -> ConnectionBroker | None:
    """Return the broker of the connections of the program, once it is confined."""
    text = os.read(confined, 16)
    if not text or int(text) < 0:
        return None
    from scrapy_ext.jobprocess.confinement.addresses import Rules
    from scrapy_ext.jobprocess.confinement.connections import ConnectionBroker

    rules = Rules(confinement.denied, confinement.denied_ports, program.own_ports)
    return ConnectionBroker.of(work, int(text), rules, confinement.write)


class _Supervisor:
    """``is_enclosed``: signals of this process reach only processes below it. ``mark``: value of a variable that the
    processes of the work have."""

    def __init__(
        self, work: int, source: int, broker: ConnectionBroker | None, *, is_enclosed: bool, mark: str = ""
    ) -> None:
        self._work = work
        self._source = source
        self._broker = broker
        self._is_enclosed = is_enclosed
        self._status: int | None = None
        #: Processes of the work on a system that does not keep them below this one.
        self._seen = None if system.IS_LINUX else _SeenProcesses(os.getpid(), mark)
        self._next_list = 0.0

    def run(self) -> None:
        """Wait until the program and all that it has started have ended."""
        wake, woken = os.pipe()
        for end in (wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda number, _: self._pass_on(number))
        for number in (signal.SIGINT, signal.SIGHUP):  # of the terminal: the node handles them
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        reaped = self._reap()  # the program may have ended before the handler of its signal was set
        while self._status is None:
            calls = [] if self._broker is None else [self._broker.descriptor]
            more = reaped == _REAPED_AT_ONCE
            ready, _, _ = select.select([self._source, wake, *calls], [], [], 0 if more else self._pause())
            if self._source in ready and not self._node_lives():
                break
            if wake in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(wake, 4096)
            if self._broker is not None and ready[-1:] == calls and not self._broker.answer():
                self._broker = None
            reaped = self._reap() if more or wake in ready else 0
        self._kill_all()

    def _pause(self) -> float | None:
        """Return the seconds to wait for events at most; None: until the next one."""
        if self._seen is None:
            return None
        # The end of ``ps`` is an event, too.
        if time.monotonic() >= self._next_list:
            self._seen.look()
            self._next_list = time.monotonic() + _LIST_SECONDS
        return _LIST_SECONDS

    def _pass_on(self, number: int) -> None:
        if self._status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._work, number)

    def _node_lives(self) -> bool:
        try:
            return bool(os.read(self._source, 4096))
        except OSError:
            return False

    def _reap(self) -> int | None:
        """Wait for ended processes, a bounded number; returns their number, None when no process is left."""
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
        deadline = time.monotonic() + _KILL_SECONDS
        if self._seen is None:  # ``ps`` is waited for
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # further ended processes need no wait
        with contextlib.suppress(OSError):  # allowed for root: forking processes would leave this one little time
            os.setpriority(os.PRIO_PROCESS, 0, -20)
        if self._seen is not None:
            self._kill_seen(self._seen, deadline)
        while (reaped := self._reap()) is not None and time.monotonic() < deadline:
            if self._is_enclosed:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(-1, signal.SIGKILL)  # in one step: a fork at that time fails
            else:
                self._kill_tree()
            if not reaped:
                time.sleep(0.005)

    def _kill_seen(self, seen: _SeenProcesses, deadline: float) -> None:
        """Kill all processes of the work until none is left. They are stopped first, as below."""
        while (left := [process.pid for process in seen.look(thoroughly=True)]) and time.monotonic() < deadline:
            send(left, signal.SIGSTOP)
            send(left, signal.SIGKILL)
            self._reap()

    def _kill_tree(self) -> None:
        """Kill all processes below this one. They are stopped first, so that none reacts to the end of another."""
        # Those that fork and end at once have ended before the table is complete; the remaining ones are children.
        send(children(), signal.SIGKILL)
        own = os.getpid()
        tree = [process.pid for process in below([own], table())[own][1:]]
        send(tree, signal.SIGSTOP)
        send(tree, signal.SIGKILL)

    def end(self) -> NoReturn:
        """End as the program has ended."""
        status = self._status
        if status is None or os.WIFSIGNALED(status):
            number = signal.SIGKILL if status is None else os.WTERMSIG(status)
            with contextlib.suppress(OSError, ValueError):
                import resource

                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # that of the program is enough
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            os._exit(128 + number)
        os._exit(os.WEXITSTATUS(status))


class _SeenProcesses:
    """The processes that were seen below a supervisor, in the group that it leads, or with its mark. Each remains known
    when its parent ends."""

    def __init__(self, supervisor: int, mark: str) -> None:
        self._supervisor = supervisor
        self._mark = mark
        self._known: set[tuple[int, int]] = set()

    def look(self, *, thoroughly: bool = False) -> list[Process]:
        """List the processes, and return those of the work; ``thoroughly``: also those with the mark."""
        marked = ps.with_variable(_MARK, self._mark) if thoroughly else []
        listed = table()
        members = [
            process.pid
            for process in listed.values()
            if process.group == self._supervisor or (process.pid, process.started) in self._known
        ]
        members += [pid for pid in marked if pid in listed and pid not in members]
        trees = below([self._supervisor, *members], listed)
        found = {process.pid: process for tree in trees.values() for process in tree}
        found.pop(self._supervisor, None)
        self._known = {(process.pid, process.started) for process in found.values()}
        return list(found.values())


if __name__ == "__main__":
    main()
