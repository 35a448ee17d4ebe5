"""Archives that are made to harm: each is refused with its reason, and nothing of the server grows by it."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from scrapy_ext.server.jobs.versions import archives
from scrapy_ext.server.jobs.versions.inspection import Inspector
from tests.support import packed_projects as packed
from tests.support.harmful_archives import ATTACKS
from tests.support.http import Http
from tests.support.servers import RunningServer

#: Bytes: what may be in memory beside an archive's own size.
MORE = 96 * 2**20

#: Inspects files, as the server does; writes the reasons, and the most memory of itself and of a process it started.
INSPECT = """
import asyncio, json, resource, sys
from pathlib import Path
from scrapy_ext.server.jobs.versions.contents import ArchiveError
from scrapy_ext.server.jobs.versions.inspection import Inspector

async def main():
    reasons = {}
    for path in sorted(Path(sys.argv[1]).iterdir()):
        with path.open("rb") as file:
            try:
                reasons[path.name] = str(await Inspector().inspect(file))
            except ArchiveError as error:
                reasons[path.name] = "refused: " + str(error)
    own = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(json.dumps([reasons, int(own.split()[1]) * 1024, child * 1024]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def attacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attacks")
    for name, (make, _) in ATTACKS.items():
        (folder / name).write_bytes(make())
    return folder


@pytest.mark.long
def test_archives_made_to_harm_are_refused_with_a_reason_and_little_memory(attacks: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INSPECT, str(attacks)], capture_output=True, text=True, timeout=500, check=True
    )
    reasons, server, child = json.loads(done.stdout)
    for name, (_, wanted) in ATTACKS.items():
        assert re.match(f"refused: .*({wanted})", reasons[name]), (name, reasons[name])
    assert server < MORE
    assert child < archives.MAX_MEMORY


@pytest.mark.long
async def test_a_server_answers_400_to_them_and_does_not_grow(
    attacks: Path, server: RunningServer, http: Http, project: int
) -> None:
    status, peak = (Path(f"/proc/{server.process.pid}/{name}") for name in ("status", "clear_refs"))
    names = ["long name of 3 GB", "pax header of 3 GB", "file of 4 GB", "zip directory of 900,000"]
    sent = [(attacks / name).read_bytes() for name in names]
    peak.write_text("5")  # from now on
    before = resident(status, "VmRSS")
    answers = await asyncio.gather(
        *(http.post(f"/api/projects/{project}/versions?version={n}.0", body) for n, body in enumerate(sent))
    )
    assert [answer.status for answer in answers] == [400] * 4
    assert "a header in it (type 'L')" in answers[0].json["message"]
    assert resident(status, "VmHWM") - before < MORE
    assert (await http.get(f"/api/projects/{project}/versions")).json == {"versions": []}


def resident(status: Path, name: str) -> int:
    lines = (line.partition(":") for line in status.read_text().splitlines())
    return next(int(value.split()[0]) * 1024 for found, _, value in lines if found == name)


@pytest.mark.parametrize("archive", [packed.folder(), packed.egg(), packed.wheel()], ids=["folder", "egg", "wheel"])
async def test_an_upload_that_is_held_in_memory_keeps_its_place(archive: bytes) -> None:
    with tempfile.SpooledTemporaryFile(2**20) as file:
        file.write(archive)
        file.seek(3)
        await Inspector().inspect(file)  # type: ignore[arg-type]
        assert file.tell() == 3
        file.seek(0)
        assert file.read() == archive


def test_a_tar_file_with_paths_of_any_common_form_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "in" / "a").mkdir(parents=True)
    for path in ("scrapy.cfg", "a/ü" + "n" * 120):
        (tmp_path / "in" / path).write_text("text")
    for form in ("gnu", "pax"):
        subprocess.run(["tar", "-C", "in", f"--format={form}", "-czf", "a.tar.gz", "."], cwd=tmp_path, check=True)
        with (tmp_path / "a.tar.gz").open("rb") as file:
            assert archives.inspect(file).format == archives.FOLDER
        archives.unpack(tmp_path / "a.tar.gz", tmp_path / form)
        made = {str(path.relative_to(tmp_path / form)) for path in (tmp_path / form).rglob("*") if path.is_file()}
        assert made == {"scrapy.cfg", "a/ü" + "n" * 120}
