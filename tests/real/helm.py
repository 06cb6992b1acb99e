"""Real helm, with its files in a folder of the test."""

import asyncio
import os
from pathlib import Path

__all__ = ["Helm", "run"]


async def run(*command: str, env: dict[str, str] | None = None) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=env
    )
    said = (await process.communicate())[0].decode()
    if process.returncode:
        raise RuntimeError(said)
    return said


class Helm:
    def __init__(self, binary: Path, home: Path):
        self._binary = str(binary)
        folders = {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}
        self._env = os.environ | folders | {"HOME": str(home)}

    async def __call__(self, *arguments: str) -> str:
        return await run(self._binary, *arguments, env=self._env)
