"""Buildah and Podman with a storage of their own, and what they need of this machine."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: The storage and the base image stay here for the next run.
FOLDER = ROOT / "build" / "image"
#: Programs and their packages. runc, because crun refuses machines with both versions of control groups.
PROGRAMS = {"buildah": "buildah", "podman": "podman", "mmdebstrap": "mmdebstrap", "runc": "runc"}
#: The oldest Python of the package, with the modules that the Containerfile needs of its base.
BASE_PACKAGES = ("ca-certificates", "python3", "python3-venv")
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


class MissingError(Exception):
    """This machine cannot build or run images; the message says what is missing."""


def prepare() -> None:
    """Install the programs that are missing, as root of a Debian; else raise :class:`MissingError`."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        raise MissingError("make test-image needs root on Linux: it builds a root file system and runs containers.")
    missing = [package for program, package in PROGRAMS.items() if shutil.which(program) is None]
    if missing and shutil.which("apt-get") is None:
        raise MissingError(f"These programs are needed: {', '.join(missing)}. Install them.")
    if missing:
        print(f"── Installing {' '.join(missing)}", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        install = ["apt-get", "install", "--yes", "-qq", "--no-install-recommends", *missing]
        subprocess.run(
            install, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )


class Engine:
    """Images and containers below ``FOLDER``. Containers use the network of this machine."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._storage = [f"--root={FOLDER / 'storage'}", f"--runroot={FOLDER / 'run'}"]

    def podman(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = ["podman", *self._storage, "--runtime=runc", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)}\n{done.stderr}")
        return done

    def has(self, image: str) -> bool:
        return self.podman("image", "exists", image, check=False).returncode == 0

    def make_base(self, image: str) -> None:
        """Make a base image of Debian's own packages, from the sources of this machine."""
        release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
        if release.get("ID") != "debian":
            raise MissingError("make test-image makes its base image of the packages of Debian: run it on Debian.")
        candidates = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d/debian.sources"))
        sources = [str(path) for path in candidates if path.is_file() and path.read_text().strip()]
        file = self._logs / "base.tar"
        packages = f"--include={','.join(BASE_PACKAGES)}"
        command = [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            packages,
            release["VERSION_CODENAME"],
            str(file),
            *sources,
        ]
        self._logged(command, "base.log")
        self.podman("import", "--quiet", str(file), image)
        file.unlink()

    def build(self, image: str, base: str, *arguments: str) -> None:
        """Build the Containerfile. pip is configured as on this machine, by files that are in no layer."""
        configuration = self._logs / "pip.conf"
        _configure_pip(configuration)
        mounted = {configuration: Path("/etc/pip.conf")}
        if CERTIFICATES.exists():
            mounted[CERTIFICATES] = CERTIFICATES
        command = [
            "buildah",
            *self._storage,
            "build",
            "--runtime=runc",
            "--format=docker",
            "--layers",
            "--network=host",
        ]
        command += [f"--volume={path}:{target}:ro" for path, target in mounted.items()]
        command += [f"--build-arg={each}" for each in (f"BASE={base}", *arguments)]
        self._logged(
            [*command, f"--tag={image}", f"--file={ROOT / 'deploy' / 'Containerfile'}", str(ROOT)], "build.log"
        )

    def inspect(self, image: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = json.loads(self.podman("image", "inspect", image).stdout)
        return found[0]

    def run(self, name: str, image: str, words: Sequence[str], options: Sequence[str], network: str = "host") -> None:
        """Start a container as the files of ``deploy/`` do: confined, with a root file system that is read-only."""
        # Podman's own defaults are above the limits of many machines.
        files, processes = (resource.getrlimit(kind)[1] for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC))
        limits = [f"--ulimit=nofile={min(files, 16384)}", f"--ulimit=nproc={min(processes, 8192)}"]
        confined = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp:mode=1777"]
        place = [f"--name={name}", f"--network={network}", "--shm-size=512m"]
        self.podman("run", "--detach", *place, *limits, *confined, *options, image, *words)

    def state(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.podman("container", "inspect", name).stdout)[0]["State"]
        return found

    def remove_containers(self) -> None:
        self.podman("rm", "--all", "--force", "--volumes", "--time=2", check=False)
        # Those of a build that failed, whose file systems stay mounted.
        subprocess.run(["buildah", *self._storage, "rm", "--all"], capture_output=True, check=False)

    def _logged(self, command: Sequence[str], name: str) -> None:
        log = self._logs / name
        with log.open("a") as file:
            done = subprocess.run(command, stdout=file, stderr=file, check=False)
        if done.returncode:
            end = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
            raise AssertionError(f"{' '.join(command)}\n{end}")


def _configure_pip(file: Path) -> None:
    """Write pip's configuration of this machine into a file, without what is in its own folders."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    found = (line.partition("=") for line in listed.stdout.splitlines())
    values = {name.rpartition(".")[2]: value.strip("'\"") for name, _, value in found}
    remote = {name: value for name, value in values.items() if not value.startswith(("/", "file:"))}
    if CERTIFICATES.exists():  # a proxy of this machine may have certificates of its own
        remote["cert"] = str(CERTIFICATES)
    file.write_text("[global]\n" + "".join(f"{name} = {value}\n" for name, value in remote.items()))
