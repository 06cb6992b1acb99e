"""The clients `bench.client` compares: `python -m bench.clients NAME URL COUNT WARM_UP_URL`, each in a fresh process of its own.

Each one does the same: lists Pods of all namespaces, watches from there, and keeps what comes in a cache by namespace and
name until it holds COUNT of them. It prints, as one line of JSON, how long that took and what the process grew by. Libraries are
used as their documentation shows; where one can leave out its models, that is measured as well.
"""

import asyncio
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from bench.usage import cpu_seconds, resident_mib

_WARM_UP = 20
#: By name: imports the library, and gives what fills the cache.
Fill = Callable[[str, int], Any]


def argosy_projection() -> Fill:
    """What the controllers keep of a member's Pods."""
    from argosy.fleet.capacity import PodView

    return _argosy(PodView)


def argosy_bytes() -> Fill:
    """Whole objects, undecoded but for their metadata: how the controllers keep their sources."""
    from argosy.kube.objects import Partial

    return _argosy(Partial, keep_raw=True)


def argosy_whole() -> Fill:
    """Whole objects, decoded."""
    from argosy.kube.objects import Metadata

    class Pod(msgspec.Struct):
        metadata: Metadata
        spec: dict[str, Any]
        status: dict[str, Any]

    return _argosy(Pod)


def _argosy(into: type[Any], keep_raw: bool = False) -> Fill:
    import uvloop

    from argosy.kube.client import Client
    from argosy.kube.config import Connection
    from argosy.kube.http import HttpTransport
    from argosy.kube.informer import Informer
    from argosy.kube.resource import Resource

    async def fill(url: str, count: int) -> Any:
        client = Client(HttpTransport(Connection(url)))
        informer: Informer[Any] = Informer(client, Resource("", "v1", "pods", "Pod"), into, keep_raw=keep_raw)
        full = asyncio.Event()

        def seen(change: Any) -> None:
            if len(informer) == count:
                full.set()

        informer.add_handler(seen)
        running = asyncio.create_task(informer.run())
        await full.wait()
        running.cancel()
        await client.close()
        return informer

    return lambda url, count: uvloop.run(fill(url, count))


def kubernetes_models() -> Fill:
    """Its own informer, which keeps its models."""
    from kubernetes import client
    from kubernetes.informer import SharedInformer

    def fill(url: str, count: int) -> Any:
        api = client.CoreV1Api(client.ApiClient(client.Configuration(host=url)))
        informer = SharedInformer(api.list_pod_for_all_namespaces)
        full = threading.Event()
        seen = 0

        def added(pod: Any) -> None:
            nonlocal seen
            seen += 1
            if seen == count:
                full.set()

        informer.add_event_handler("ADDED", added)
        informer.start()
        full.wait()
        informer.stop()
        return informer

    return fill


def kubernetes_dicts() -> Fill:
    """Its watch, told to leave JSON as it is."""
    from kubernetes import client, watch

    def fill(url: str, count: int) -> Any:
        api = client.CoreV1Api(client.ApiClient(client.Configuration(host=url)))
        listed = json.loads(api.list_pod_for_all_namespaces(_preload_content=False).data)
        cache = {_key(item["metadata"]): item for item in listed["items"]}
        if len(cache) < count:
            version = listed["metadata"]["resourceVersion"]
            stream = watch.Watch().stream(api.list_pod_for_all_namespaces, resource_version=version, deserialize=False)
            for event in stream:
                pod = event["object"]
                cache[_key(pod["metadata"])] = pod
                if len(cache) == count:
                    break
        return cache

    return fill


def kubernetes_asyncio_models() -> Fill:
    from kubernetes_asyncio import client, watch

    async def fill(url: str, count: int) -> Any:
        async with client.ApiClient(client.Configuration(host=url)) as session:
            api = client.CoreV1Api(session)
            listed = await api.list_pod_for_all_namespaces()
            cache = {(item.metadata.namespace, item.metadata.name): item for item in listed.items}
            if len(cache) < count:
                version = listed.metadata.resource_version
                async with watch.Watch() as watching:
                    stream = watching.stream(api.list_pod_for_all_namespaces, resource_version=version)
                    async for event in stream:
                        pod = event["object"]
                        cache[pod.metadata.namespace, pod.metadata.name] = pod
                        if len(cache) == count:
                            break
            return cache

    return lambda url, count: asyncio.run(fill(url, count))


def kr8s_objects() -> Fill:
    import kr8s.asyncio

    async def fill(url: str, count: int) -> Any:
        api = await kr8s.asyncio.api(kubeconfig=_kubeconfig(url))
        cache = {}
        async for pod in api.get("pods", namespace=kr8s.ALL):
            cache[pod.namespace, pod.name] = pod
        if len(cache) < count:
            # From whatever is there: its lists do not tell their version.
            async for _, pod in api.watch("pods", namespace=kr8s.ALL):
                cache[pod.namespace, pod.name] = pod
                if len(cache) == count:
                    break
        return cache

    return lambda url, count: asyncio.run(fill(url, count))


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "replay",
        "contexts": [{"name": "replay", "context": {"cluster": "replay", "user": "replay"}}],
        "clusters": [{"name": "replay", "cluster": {"server": url}}],
        "users": [{"name": "replay", "user": {}}],
    }


def _key(metadata: dict[str, Any]) -> tuple[str, str]:
    return metadata["namespace"], metadata["name"]


OURS: dict[str, Callable[[], Fill]] = {
    "argosy, projection": argosy_projection,
    "argosy, whole as bytes": argosy_bytes,
    "argosy, whole decoded": argosy_whole,
}
THEIRS: dict[str, Callable[[], Fill]] = {
    "kubernetes, models": kubernetes_models,
    "kubernetes, dicts": kubernetes_dicts,
    "kubernetes_asyncio, models": kubernetes_asyncio_models,
    "kr8s, objects": kr8s_objects,
}


def main(name: str, url: str, count: int, warm_up: str) -> None:
    fill = (OURS | THEIRS)[name]()
    # Some import much of themselves with the first object only.
    fill(warm_up, _WARM_UP)
    gc.collect()
    me = os.getpid()
    resident, cpu, started = resident_mib(me), cpu_seconds(me), time.perf_counter()
    held = fill(url, count)
    seconds = time.perf_counter() - started
    cpu = cpu_seconds(me) - cpu
    gc.collect()
    grown = resident_mib(me) - resident
    print(json.dumps({"seconds": seconds, "cpu": cpu, "bytes": grown * 2**20}), flush=True)
    assert held is not None
    # Threads of a client that still watches need not be waited for.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
