"""Fetch EnvScaler's RL scenarios, the environments they use and BFCL's multi-turn tasks; verify them; lay the pool out.

Usage: python scripts/prepare_data.py [--origin github|hub] [--base-url URL | --source-dir DIR] [--out data] [--check]
       python scripts/prepare_data.py --from-package bfcl-eval [--source-dir DIR] [--out data] [--check]

What is fetched, from where, and with which size and digest stands in data/manifest.json. A download goes to FILE.part, is resumed
where it stopped, and takes its name only once it is verified: a file that has its name is whole. Prepared are OUT/envscaler
(environments.json with those that have tasks, tasks.json) and, from the repository, OUT/bfcl. `--check` verifies all of it and, where
OUT/envscaler/topologies.jsonl is, that it covers exactly the pool's tasks.

`--from-package bfcl-eval` takes BFCL's four multi-turn subsets, their reference calls and API classes out of that package's wheel into
OUT/bfcl; the package is not installed. Its files are BFCL v4's: the dialogues of v3, corrected since in questions and answers.
"""

import argparse
import hashlib
import json
import shutil
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

from envsched.errors import EnvschedError, PoolError
from envsched.evaluate.wheel import check_taken, read_package, take
from envsched.files import write_atomically, write_json
from envsched.pool import Pool
from envsched.progress import track
from envsched.topology import read_topologies
from envsched.wording import counted

MANIFEST = Path(__file__).parents[1] / "data" / "manifest.json"
CHUNK = 1 << 16
ATTEMPTS = 3
TIMEOUT_SECONDS = 30.0


class DataError(EnvschedError, OSError):
    """A file can't be had, or is not the one it should be."""


@dataclass(frozen=True)
class Wanted:
    """One file: its role, its path below the origin, and what identifies it. ``size`` in bytes; a none is not known yet."""

    role: str
    path: str
    size: int | None
    sha256: str | None
    git_blob: str | None

    @property
    def name(self) -> str:
        return Path(self.path).name


def main(arguments: list[str] | None = None) -> int:
    options = _options().parse_args(arguments)
    try:
        if options.from_package is not None:
            package = read_package(options.manifest, options.from_package)
            if not options.check:
                take(package, options.out, options.source_dir)
            check_taken(package, options.out)
            return 0
        wanted, base_url = read_manifest(options.manifest, options.origin)
        if not options.check:
            source = options.source_dir or (options.base_url or base_url)
            verified = [obtain(file, source, options.out / "downloads" / options.origin) for file in wanted]
            _record(options.manifest, options.origin, verified)
            lay_out(options.out, options.origin, verified)
        check(options.out, options.origin, read_manifest(options.manifest, options.origin)[0])
    except EnvschedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _options() -> argparse.ArgumentParser:
    summary, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(description=summary, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter)
    origins = "whose copies: the repository's or the Hub's, which differ in shape"
    parser.add_argument("--origin", choices=("github", "hub"), default="github", help=origins)
    parser.add_argument("--from-package", metavar="NAME", help="take another data set out of a Python package: bfcl-eval")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--base-url", help="a mirror that has the same paths")
    place.add_argument("--source-dir", type=Path, help="a folder that has the files, by path or by name")
    parser.add_argument("--out", type=Path, default=Path("data"), help="where everything goes (default: data)")
    parser.add_argument("--manifest", type=Path, default=MANIFEST, help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help="verify what is there; fetch nothing")
    return parser


def read_manifest(file: Path, origin: str) -> tuple[list[Wanted], str]:
    """What an origin has, and its base URL.

    Raises:
        DataError: unreadable, or without this origin.
    """
    try:
        entry = json.loads(file.read_text(encoding="utf-8"))["origins"][origin]
        return [Wanted(role, **fields) for role, fields in entry["files"].items()], entry["base_url"]
    except OSError as error:
        raise DataError(f"manifest {file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"manifest {file}: not usable for origin {origin!r} ({type(error).__name__}: {error}); restore it") from None


# -- getting one file


def obtain(file: Wanted, source: str | Path, folder: Path) -> Wanted:
    """The verified file in ``folder``; what was not known of it is filled in.

    Raises:
        DataError: it can't be had, its digest is another, or the folder can't be written.
    """
    target = folder / file.name
    if target.is_file() and _problem(file, target) is None:
        return _completed(file, target)
    part = folder / f"{file.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if part.is_file() and _problem(file, part) is None:
            pass  # a run before this one stopped between the last byte and the name
        elif isinstance(source, Path):
            shutil.copyfile(_local(file, source), part)
        else:
            _download(f"{source.rstrip('/')}/{file.path}", part, file)
        problem = _problem(file, part)
        if problem is not None:
            part.unlink()
            raise DataError(f"{file.name} from {source}: {problem}; it was dropped, get it from the pinned place or another mirror")
        part.replace(target)
    except DataError:
        raise
    except OSError as error:
        raise _unwritable(error, folder) from None
    return _completed(file, target)


def _unwritable(error: OSError, folder: Path) -> DataError:
    return DataError(f"{error.filename or folder}: {error.strerror}; make it writable and give it room, or choose another --out")


def _local(file: Wanted, folder: Path) -> Path:
    for candidate in (folder / file.path, folder / file.name):
        if candidate.is_file():
            return candidate
    raise DataError(f"{folder}: neither {file.path} nor {file.name} is there; give a folder that has it, or leave out --source-dir")


def _download(url: str, part: Path, file: Wanted) -> None:
    """Append to ``part`` until it is whole, in a few attempts."""
    problem = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(attempt)
        start = part.stat().st_size if part.exists() else 0
        try:
            with _open(url, start) as response:
                if start and response.status != 206:
                    start = 0
                expected = _expected(response, start)
                _append(response, part, start, expected, file.name)
        except urllib.error.HTTPError as error:
            if error.code == 416:  # what is there is longer than the file: begin again
                part.unlink()
                problem = "what was there before did not fit"
                continue
            if error.code < 500 and error.code != 429:
                raise DataError(f"{url}: HTTP status {error.code} {error.reason}; check --base-url or give --source-dir") from None
            problem = f"HTTP status {error.code} {error.reason}"
        except (urllib.error.URLError, TimeoutError, ConnectionError, HTTPException) as error:
            problem = str(getattr(error, "reason", error))
        else:
            size = part.stat().st_size
            if expected is None or size == expected:
                return
            problem = f"the body ended after {size} of {expected} bytes"
    kept = part.stat().st_size if part.exists() else 0
    kept_on = f"{kept} bytes are kept, run again to go on"
    raise DataError(f"{url}: {problem} ({ATTEMPTS} attempts); {kept_on}, or give --base-url or --source-dir")


def _open(url: str, start: int) -> HTTPResponse:
    try:
        request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    except ValueError:
        raise DataError(f"{url}: no URL; give --base-url as http(s)://host/path") from None
    return urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)


def _expected(response: HTTPResponse, start: int) -> int | None:
    length = response.headers.get("Content-Length")
    return start + int(length) if length is not None and length.isdigit() else None


def _append(response: HTTPResponse, part: Path, start: int, expected: int | None, name: str) -> None:
    chunks = None if expected is None else -(-(expected - start) // CHUNK)
    with part.open("r+b" if start else "wb") as stream:
        stream.seek(start)
        stream.truncate()
        for chunk in track(_chunks(response), name, total=chunks):
            stream.write(chunk)


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    while chunk := response.read(CHUNK):
        yield chunk


# -- what identifies a file


def _problem(file: Wanted, path: Path) -> str | None:
    """Why ``path`` is not the file, or none. Without a SHA-256 the git blob decides."""
    found = _completed(file, path)
    if file.size is not None and found.size != file.size:
        return f"size {found.size}, expected {file.size}"
    if file.sha256 is not None and found.sha256 != file.sha256:
        return f"SHA-256 {found.sha256}, expected {file.sha256}"
    if file.git_blob is not None and found.git_blob != file.git_blob:
        return f"git blob {found.git_blob}, expected {file.git_blob}"
    return None


def _completed(file: Wanted, path: Path) -> Wanted:
    size = path.stat().st_size
    sha256, blob = hashlib.sha256(), hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            sha256.update(chunk)
            blob.update(chunk)
    return replace(file, size=size, sha256=sha256.hexdigest(), git_blob=blob.hexdigest())


def _record(manifest: Path, origin: str, verified: list[Wanted]) -> None:
    """Write down what was not known of verified files, so that the next preparation checks it."""
    content = json.loads(manifest.read_text(encoding="utf-8"))
    files = content["origins"][origin]["files"]
    learnt = [(file, name) for file in verified for name in ("size", "sha256", "git_blob") if files[file.role][name] is None]
    for file, name in learnt:
        files[file.role][name] = getattr(file, name)
    if not learnt:
        return
    try:
        write_json(manifest, content)
        print(f"{manifest}: wrote down {len(learnt)} sizes and digests that were not known", file=sys.stderr)
    except OSError as error:
        print(f"warning: manifest {manifest}: {error.strerror}; sizes and digests that were not known stay so", file=sys.stderr)


# -- the pool


def lay_out(out: Path, origin: str, files: list[Wanted]) -> None:
    """Write OUT/envscaler and OUT/bfcl from verified files.

    Raises:
        DataError: OUT can't be written.
        PoolError: the files hold no pool.
    """
    paths = {file.role: out / "downloads" / origin / file.name for file in files}
    tasks = _items(paths["tasks"], "task_id")
    used = {task.get("env_id") for task in tasks}
    environments = [item for item in _items(paths["environments"], "env_id") if item.get("env_id") in used]
    try:
        for name, content in (("environments", environments), ("tasks", tasks)):
            write_atomically(out / "envscaler" / f"{name}.json", json.dumps(content, ensure_ascii=False) + "\n")
        if "bfcl" in paths:
            write_atomically(out / "bfcl" / paths["bfcl"].name, paths["bfcl"].read_bytes())
    except OSError as error:
        raise _unwritable(error, out) from None


def _items(path: Path, key: str) -> list[dict[str, Any]]:
    """Both public shapes: a list, or a dict by key."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PoolError(f"{path}: not JSON ({error}); the file is the pinned one, so its format has changed") from None
    if isinstance(content, dict):
        content = [{key: name, **item} for name, item in content.items()]
    return content


def check(out: Path, origin: str, wanted: list[Wanted]) -> None:
    """Verify downloads, the laid-out pool, and topologies where there are some; print what is there.

    Raises:
        DataError, PoolError, StateError: the first fault, with the file and the remedy.
    """
    remedy = "run scripts/prepare_data.py without --check"
    for file in wanted:
        path = out / "downloads" / origin / file.name
        if not path.is_file():
            raise DataError(f"{path}: missing; {remedy}")
        problem = _problem(file, path)
        if problem is not None:
            raise DataError(f"{path}: {problem}; {remedy}")
        if file.role == "bfcl" and not _same(path, out / "bfcl" / file.name):
            raise DataError(f"{out / 'bfcl' / file.name}: differs from {path}; {remedy}")
    pool = Pool.from_envscaler(out / "envscaler")
    expected = {task.get("task_id") for task in _items(out / "downloads" / origin / _named(wanted, "tasks"), "task_id")}
    if expected != {task.key for task in pool.tasks}:
        raise DataError(f"{out / 'envscaler'}: its tasks are not those of the download; {remedy}")
    holds = f"{counted(len(pool), 'task')} in {counted(len(pool.environments), 'environment')}"
    print(f"{out / 'envscaler'}: {holds}, fingerprint {pool.fingerprint}")
    topologies = out / "envscaler" / "topologies.jsonl"
    if topologies.is_file():
        print(f"{topologies}: covers the pool, {counted(len(read_topologies(topologies, pool)), 'topology')}")


def _named(wanted: list[Wanted], role: str) -> str:
    return next(file.name for file in wanted if file.role == role)


def _same(one: Path, two: Path) -> bool:
    return two.is_file() and one.read_bytes() == two.read_bytes()


if __name__ == "__main__":
    sys.exit(main())
