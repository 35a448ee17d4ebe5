"""Computing with data that users or sites wrote, where it delays no other request: in processes and threads of its own.

A library in C that does not release the interpreter's lock stops the event loop from any thread. What it computes for
data that can make it slow therefore belongs into a process (``processes``), which can be killed. Steps that are short,
or release the lock, run in threads that nothing else waits for (``threads``).
"""
