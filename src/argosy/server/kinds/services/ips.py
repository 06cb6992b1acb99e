"""Cluster IPs and node ports: which are in use, and their allocation.

Has state, unlike everything else in this package: one `ServiceAllocator` lives as long as its server, and starts with the
addresses of the stored services. A service gets its addresses before it is validated. The caller of `allocate` releases them
if the write did not happen, and calls `release` for the old object if it did. Not thread-safe: the server calls it from its one
event loop.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence

from argosy.kube import chance
from argosy.server.fielderrors import FieldError, invalid, required
from argosy.server.kinds.services.fields import (
    cluster_ips,
    family_of,
    is_headless,
    needs_cluster_ip,
    needs_health_check,
    needs_node_port,
    validate_cluster_ips,
)
from argosy.server.registry import Object

__all__ = ["Exhausted", "Refused", "ServiceAllocator", "held_by"]

DEFAULT_CIDRS = ("10.96.0.0/16",)
DEFAULT_NODE_PORTS = range(30000, 32768)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Exhausted(Exception):
    """No address or port is left; an internal error to the client, as in Kubernetes."""


class Refused(Exception):
    """The service asks for an address or port that it cannot have."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = errors


class _Taken(ValueError):
    """A request that cannot be satisfied; the message says why."""


class ServiceAllocator:
    """Allocates cluster IPs from one network per family, the first being the default, and node ports from one range."""

    def __init__(self, cidrs: Sequence[str] = DEFAULT_CIDRS, node_ports: range = DEFAULT_NODE_PORTS) -> None:
        networks = [ipaddress.ip_network(cidr) for cidr in cidrs]
        self._ranges = {family_of(str(network.network_address)): _Addresses(network) for network in networks}
        self._ports = _Ports(node_ports)

    def take(self, service: Object) -> None:
        """Marks what a stored service holds as allocated, in range or not, even if it already is."""
        for address in _held_ips(service):
            self._take(address)
        self._ports.taken.update(_held_ports(service))

    def allocate(self, service: Object, old: Object | None = None, *, dry_run: bool = False) -> list[str | int]:
        """Fill in families, addresses and ports, keeping those of `old`; returns the allocations. Raises Refused, Exhausted.

        In a dry run a service without an address of its own gets the network address, which nobody has.
        """
        errors = self._families(service, old)
        if errors:
            raise Refused(errors)
        taken: list[str | int] = []
        try:
            self._allocate_ips(service, old, taken, dry_run=dry_run)
            self._allocate_ports(service, set(_held_ports(old or {})), taken)
        except (Refused, Exhausted):
            self.give_back(taken)
            raise
        return taken

    def release(self, service: Object, kept: Object | None = None) -> None:
        """Release what `service` holds and `kept`, the object that stays, does not."""
        ips, ports = set(_held_ips(service)), set(_held_ports(service))
        if kept is not None:
            ips -= set(_held_ips(kept))
            ports -= set(_held_ports(kept))
        self.give_back([*ips, *ports])

    def give_back(self, held: Iterable[str | int]) -> None:
        for each in held:
            if isinstance(each, int):
                self._ports.taken.discard(each)
            else:
                self._addresses(each).taken.discard(int(ipaddress.ip_address(each)))

    def _take(self, address: str) -> None:
        family = family_of(address)
        if family in self._ranges:
            self._ranges[family].taken.add(int(ipaddress.ip_address(address)))

    def _addresses(self, address: str) -> "_Addresses":
        family = family_of(address)
        return self._ranges.get(family) or next(iter(self._ranges.values()))

    def _families(self, service: Object, old: Object | None) -> list[FieldError]:
        """ipFamilyPolicy and ipFamilies, from the request and this server's networks."""
        spec = service["spec"]
        if not needs_cluster_ip(spec):
            return []
        if spec.get("ipFamilyPolicy") is None:
            spec["ipFamilyPolicy"] = _default_policy(spec, (old or {}).get("spec") or {})
        errors = validate_cluster_ips(spec, cluster_ips((old or {}).get("spec") or {}))
        if errors:
            return errors
        errors = self._asked_families(spec)
        if errors:
            return errors
        families: list[str] = spec.get("ipFamilies") or [next(iter(self._ranges))]
        single = spec["ipFamilyPolicy"] == "SingleStack"
        free = is_headless(spec) and not spec.get("selector")
        if not free:
            errors = self._configured(spec, families)
        if not errors and not single and len(families) == 1 and (free or len(self._ranges) == 2):
            families = [families[0], "IPv6" if families[0] == "IPv4" else "IPv4"]
        spec["ipFamilies"] = families
        return errors

    def _asked_families(self, spec: Object) -> list[FieldError]:
        policy, ips = spec["ipFamilyPolicy"], cluster_ips(spec)
        errors = []
        if policy == "SingleStack":
            for what, values in (("cluster IPs", ips), ("IP families", spec.get("ipFamilies") or [])):
                if len(values) == 2:
                    detail = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                    errors.append(invalid("spec.ipFamilyPolicy", policy, detail))
        if is_headless(spec):
            return errors
        families = list(spec.get("ipFamilies") or [])
        for i, address in enumerate(ips[len(families) :], len(families)):
            family = family_of(address)
            if family in self._ranges:
                families.append(family)
            else:
                detail = f"{family} is not configured on this cluster"
                errors.append(invalid(f"spec.clusterIPs[{i}]", ips, detail))
        if families:
            spec["ipFamilies"] = families
        return errors

    def _configured(self, spec: Object, families: list[str]) -> list[FieldError]:
        errors = []
        if spec["ipFamilyPolicy"] == "RequireDualStack" and len(self._ranges) < 2:
            detail = "this cluster is not configured for dual-stack services"
            errors.append(invalid("spec.ipFamilyPolicy", spec["ipFamilyPolicy"], detail))
        return errors + [
            invalid(f"spec.ipFamilies[{i}]", family, "not configured on this cluster")
            for i, family in enumerate(families)
            if family not in self._ranges
        ]

    def _allocate_ips(self, service: Object, old: Object | None, taken: list[str | int], *, dry_run: bool) -> None:
        spec = service["spec"]
        if not needs_cluster_ip(spec) or is_headless(spec):
            return
        given = cluster_ips(spec)
        if not all(map(_is_address, given)):
            # Nothing to allocate: validation reports the error.
            return
        families: list[str] = spec["ipFamilies"]
        first = _first_to_allocate(spec, (old or {}).get("spec") or {})
        if first == len(families):
            return
        given += [""] * (len(families) - len(given))
        asked = list(given)
        for i in range(first, len(families)):
            addresses = self._ranges[families[i]]
            if dry_run and not asked[i]:
                given[i] = str(addresses.network.network_address)
                continue
            failed = "failed to allocate IP" + (f" {asked[i]}" if asked[i] else "")
            try:
                given[i] = addresses.take(asked[i])
            except _Taken as reason:
                raise Refused([invalid("spec.clusterIPs", asked, f"{failed}: {reason}")]) from None
            taken.append(given[i])
            if not dry_run and not service["metadata"].get("name"):
                # Allocations are recorded by the service's name; without a name only this error is reported.
                why = f'IPAddress.networking.k8s.io "{given[i]}" is invalid: {required("spec.parentRef.name")}'
                raise Refused([invalid("spec.clusterIPs", asked, f"{failed}: {why}")])
        spec["clusterIP"], spec["clusterIPs"] = given[0], given

    def _allocate_ports(self, service: Object, before: set[int], taken: list[str | int]) -> None:
        spec = service["spec"]
        if needs_node_port(spec):
            wanted = spec.get("allocateLoadBalancerNodePorts", True) or spec.get("type") == "NodePort"
            by_port: dict[int, int] = {}
            for i, port in enumerate(spec.get("ports") or ()):
                self._allocate_port(port, f"spec.ports[{i}].nodePort", by_port, before, taken, automatic=wanted)
        if needs_health_check(spec):
            asked = spec.get("healthCheckNodePort") or 0
            spec["healthCheckNodePort"] = self._port(asked, "spec.healthCheckNodePort", before, taken)

    def _allocate_port(
        self,
        port: Object,
        path: str,
        by_port: dict[int, int],
        before: set[int],
        taken: list[str | int],
        *,
        automatic: bool,
    ) -> None:
        """TCP and UDP of the same port share a node port by default."""
        number, asked = port.get("port", 0), port.get("nodePort") or 0
        if not asked and not automatic:
            return
        if number in by_port and asked in (0, by_port[number]):
            port["nodePort"] = by_port[number]
            return
        port["nodePort"] = self._port(asked, path, before, taken)
        by_port.setdefault(number, port["nodePort"])

    def _port(self, asked: int, path: str, before: set[int], taken: list[str | int]) -> int:
        if asked and asked in before:
            return asked
        try:
            port = self._ports.take(asked)
        except _Taken as reason:
            raise Refused([invalid(path, asked, str(reason))]) from None
        taken.append(port)
        return port


class _Addresses:
    """One network. Its lower end is reserved for requested addresses, as long as there is room above."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.taken: set[int] = set()
        base, size = int(network.network_address), network.num_addresses
        last = base + size - (2 if network.version == 4 else 1)
        reserved = min(max(16, size // 16), 256) if size > 16 else 0
        self._upper = range(base + max(reserved, 1), last + 1)
        self._lower = range(base + 1, base + max(reserved, 1))

    def take(self, wanted: str) -> str:
        if not wanted:
            number = _free(self._upper, self.taken)
            if number is None:
                number = _free(self._lower, self.taken)
            if number is None:
                raise Exhausted(f"failed to allocate a serviceIP: range is full: {self.network}")
            self.taken.add(number)
            return str(type(self.network.network_address)(number))
        address = ipaddress.ip_address(wanted)
        if address not in self.network:
            raise _Taken("the provided network does not match the current range")
        if int(address) in self.taken:
            raise _Taken("provided IP is already allocated")
        self.taken.add(int(address))
        return wanted


class _Ports:
    def __init__(self, ports: range) -> None:
        self.ports = ports
        self.taken: set[int] = set()

    def take(self, wanted: int) -> int:
        if not wanted:
            port = _free(self.ports, self.taken)
            if port is None:
                raise Exhausted("failed to allocate a nodePort: range is full")
            wanted = port
        elif wanted not in self.ports:
            first, last = self.ports[0], self.ports[-1]
            raise _Taken(f"provided port is not in the valid range. The range of valid ports is {first}-{last}")
        elif wanted in self.taken:
            raise _Taken("provided port is already allocated")
        self.taken.add(wanted)
        return wanted


def _first_to_allocate(spec: Object, before: Object) -> int:
    """The index of the first family that needs an address. A changed address is not allocated: validation refuses it."""
    if not before or not needs_cluster_ip(before):
        return 0
    families = len(spec["ipFamilies"])
    upgraded = not is_headless(before) and families == 2 and len(before.get("ipFamilies") or ()) == 1
    return 1 if upgraded else families


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _free(numbers: range, taken: set[int]) -> int | None:
    """A random free number, so that a released address is not reused at once by another service."""
    size = len(numbers)
    if not size:
        return None
    start = chance.randrange(size)
    # However large the network is, only one more number than are allocated need be checked.
    for step in range(min(size, len(taken) + 1)):
        number = numbers[(start + step) % size]
        if number not in taken:
            return number
    return None


def _default_policy(spec: Object, old: Object) -> str:
    if old.get("ipFamilyPolicy"):
        return str(old["ipFamilyPolicy"])
    # A headless service without a selector may get endpoints of any family.
    return "RequireDualStack" if is_headless(spec) and not spec.get("selector") else "SingleStack"


def held_by(service: Object) -> Iterator[str | int]:
    """The addresses and ports of a service."""
    yield from _held_ips(service)
    yield from _held_ports(service)


def _held_ips(service: Object) -> Iterator[str]:
    spec = service.get("spec") or {}
    if not needs_cluster_ip(spec) or is_headless(spec):
        return
    for address in cluster_ips(spec):
        try:
            ipaddress.ip_address(address)
        except ValueError:
            continue
        yield address


def _held_ports(service: Object) -> Iterator[int]:
    spec = service.get("spec") or {}
    if needs_node_port(spec):
        yield from (port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort"))
    if needs_health_check(spec) and spec.get("healthCheckNodePort"):
        yield spec["healthCheckNodePort"]
