"""SimulatedFleet: several members in one process, each with its own address, certificates and state.

With a data folder everything survives a restart: objects, certificate authorities, and the ports (in `ports.json`), so that
kubeconfigs written once stay valid.
"""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson

from argosy.server import kubeconfig
from argosy.sim.cluster import Cluster
from argosy.sim.member import Member
from argosy.sim.spec import MemberSpec
from argosy.sim.timings import Timings

__all__ = ["SimulatedFleet"]


class SimulatedFleet:
    def __init__(
        self,
        members: Sequence[MemberSpec],
        data: Path | None = None,
        base_port: int = 0,
        timings: Timings | None = None,
        *,
        accept_data_loss: bool = False,
    ):
        """`base_port` gives the members ports in a row; 0 takes free ones, or those of last time."""
        names = [spec.name for spec in members]
        if len(set(names)) < len(names):
            raise ValueError("two members have the same name")
        self._data = data
        self._timings = timings
        self._accept_data_loss = accept_data_loss
        self._specs = list(members)
        self._base_port = base_port
        self.members: dict[str, Member] = {}

    async def start(self) -> None:
        """All members serve when this returns. If one cannot, everything is closed again and the error raised."""
        known = self._known_ports()
        turns = asyncio.Semaphore(Cluster.TURNS)
        try:
            for index, spec in enumerate(self._specs):
                port = spec.port or (self._base_port + index if self._base_port else known.get(spec.name, 0))
                folder = self._data / "members" / spec.name if self._data is not None else None
                if folder is not None:
                    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                spec = msgspec.structs.replace(spec, port=port)
                member = Member(spec, self._timings, folder, turns, accept_data_loss=self._accept_data_loss)
                await member.open()
                self.members[spec.name] = member
        except BaseException:
            await self.stop()
            raise
        self._keep_ports()

    async def stop(self) -> None:
        members = list(self.members.values())
        self.members.clear()
        await asyncio.gather(*(member.close() for member in members))

    def __getitem__(self, name: str) -> Member:
        return self.members[name]

    def kubeconfig(self) -> dict[str, Any]:
        """For the administrator of all members: one context each, named as the member."""
        return kubeconfig.merged(*(member.kubeconfig() for member in self.members.values()))

    def _known_ports(self) -> dict[str, int]:
        if self._data is None:
            return {}
        try:
            return msgspec.json.decode((self._data / "ports.json").read_bytes(), type=dict[str, int])
        except FileNotFoundError:
            return {}
        except msgspec.MsgspecError as error:
            raise ValueError(f"{self._data / 'ports.json'} is damaged ({error}); remove it to get new ports") from None

    def _keep_ports(self) -> None:
        if self._data is None:
            return
        path = self._data / "ports.json"
        ports = {**self._known_ports(), **{name: member.port for name, member in self.members.items()}}
        temporary = path.with_name(".ports.json.new")
        temporary.write_bytes(orjson.dumps(ports, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
        os.replace(temporary, path)
