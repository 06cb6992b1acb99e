"""SchedulingProfile and SchedulerPluginWebhookConfiguration: which plugins schedule, and plugins served over HTTP."""

from typing import Any

import msgspec

from argosy.kube.objects import Metadata

__all__ = [
    "Plugin",
    "PluginConfig",
    "PluginSet",
    "Plugins",
    "SchedulerPluginWebhookConfiguration",
    "SchedulingProfile",
    "SchedulingProfileSpec",
    "WebhookConfigurationSpec",
    "WebhookTLSConfig",
]


class Plugin(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    name: str = ""
    type: str = ""
    #: The plugin's weight as KubeAdmiral spells it; `weight` goes before it.
    wait: int = 0
    weight: int = 0
    #: Of a replicas plugin: the replicasStrategy it divides for; all of them if empty.
    strategy: str = ""


class PluginSet(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    filter: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    select: PluginSet = PluginSet()
    replicas: PluginSet = PluginSet()


class PluginConfig(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    name: str
    args: Any = None


class SchedulingProfileSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class SchedulingProfile(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: SchedulingProfileSpec = SchedulingProfileSpec()


class WebhookTLSConfig(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    insecure: bool = False
    server_name: str = ""
    #: Base64 of PEM.
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""


class WebhookConfigurationSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    payload_versions: tuple[str, ...] = ()
    url_prefix: str = ""
    filter_path: str = ""
    score_path: str = ""
    select_path: str = ""
    http_timeout: str = "5s"
    tls_config: WebhookTLSConfig | None = None


class SchedulerPluginWebhookConfiguration(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Metadata
    spec: WebhookConfigurationSpec = WebhookConfigurationSpec()
