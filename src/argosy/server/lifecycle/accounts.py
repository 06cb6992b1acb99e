"""Service accounts: every namespace has its `default` account and the CA to trust; old-style token secrets get their token."""

import base64

from prometheus_client import Counter

from argosy.kube.client import Patch
from argosy.kube.errors import AlreadyExists
from argosy.kube.queue import Result
from argosy.kube.resource import Resource
from argosy.server.auth.tokens import ServiceAccountTokens
from argosy.server.lifecycle.loop import Loop
from argosy.server.trusted import StoreEvent, TrustedAccess

__all__ = ["ServiceAccounts"]

_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
_SECRETS = Resource("", "v1", "secrets", "Secret")
_CA_NAME = "kube-root-ca.crt"
#: What every namespace has, by kind.
_FURNISHED = {"serviceaccounts": "default", "configmaps": _CA_NAME}
_TOKEN_TYPE = "kubernetes.io/service-account-token"
_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_ACCOUNT_UID = "kubernetes.io/service-account.uid"
#: Legacy tokens are valid as long as their secret; ten years are equivalent.
_LONG = 10 * 365 * 24 * 3600


class ServiceAccounts(Loop):
    name = "service accounts"

    def __init__(self, access: TrustedAccess, spinning: Counter, tokens: ServiceAccountTokens, ca: bytes):
        super().__init__(access, spinning)
        self._tokens = tokens
        self._ca = ca

    def observe(self, event: StoreEvent) -> None:
        table, _, rest = event.entry.key.partition("/")
        if table != "core":
            return
        kind, _, name = rest.partition("/")
        if kind == "namespaces" and not event.deleted:
            self.queue.add(f"namespace/{name}")
        elif event.deleted and name.rpartition("/")[2] == _FURNISHED.get(kind):
            self.queue.add(f"namespace/{event.entry.namespace}")
        elif kind == "secrets" and not event.deleted and _TOKEN_TYPE.encode() in event.entry.value:
            self.queue.add(f"secret/{name}")
        if kind == "serviceaccounts" and not event.deleted:
            for entry in self.access.entries("core/secrets", event.entry.namespace):
                if _TOKEN_TYPE.encode() in entry.value:
                    self.queue.add(f"secret/{entry.namespace}/{entry.name}")

    async def reconcile(self, key: str) -> Result | None:
        what, _, name = key.partition("/")
        if what == "namespace":
            await self._furnish(name)
        else:
            await self._fill(*name.split("/", 1))
        return None

    async def _furnish(self, namespace: str) -> None:
        entry = self.access.get(f"core/namespaces/{namespace}")
        if entry is None or entry.deleting:
            return
        metadata = {"name": "default", "namespace": namespace}
        if self.access.get(f"core/serviceaccounts/{namespace}/default") is None:
            await self._create(_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        if self.access.get(f"core/configmaps/{namespace}/{_CA_NAME}") is None:
            description = (
                "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
                "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across "
                "distributions of Kubernetes clusters."
            )
            await self._create(
                _CONFIGMAPS,
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "name": _CA_NAME,
                        "namespace": namespace,
                        "annotations": {"kubernetes.io/description": description},
                    },
                    "data": {"ca.crt": self._ca.decode()},
                },
            )

    async def _create(self, resource: Resource, manifest: dict[str, object]) -> None:
        try:
            await self.client.create(resource, manifest)
        except AlreadyExists:
            return

    async def _fill(self, namespace: str, name: str) -> None:
        """Put token, CA and namespace into a service-account-token secret whose account exists."""
        entry = self.access.get(f"core/secrets/{namespace}/{name}")
        if entry is None or entry.deleting:
            return
        secret = entry.decode()
        if secret.get("type") != _TOKEN_TYPE or "token" in (secret.get("data") or {}):
            return
        account_name = (secret["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME)
        account = self.access.get(f"core/serviceaccounts/{namespace}/{account_name}")
        if account_name is None or account is None:
            return
        bound = {"secret": {"name": name, "uid": entry.uid}}
        token, _ = self._tokens.sign(namespace, account_name, account.uid, seconds=_LONG, bound=bound)
        values = {"token": token.encode(), "ca.crt": self._ca, "namespace": namespace.encode()}
        patch = {
            "metadata": {"annotations": {_ACCOUNT_UID: account.uid}, "resourceVersion": str(entry.version)},
            "data": {field: base64.b64encode(value).decode() for field, value in values.items()},
        }
        await self.client.patch(_SECRETS, name, patch, namespace, kind=Patch.MERGE)
