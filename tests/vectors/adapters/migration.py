"""Custom and auto migration."""

from typing import Any

import orjson

from argosy.api import keys
from argosy.kube.objects import decode
from argosy.plan.migration_config import MigrationConfigError, applied_migration, text_of
from argosy.plan.unit import AppliedMigration

#: Of a workload with replicas, where a vector names none.
_TEMPLATE = {"spec": {"replicas": 1}}


def migration_config(vector: dict[str, Any]) -> dict[str, Any]:
    template, path = vector.get("template", _TEMPLATE), vector.get("replicas_path", "spec.replicas")
    match vector["kind"]:
        case "validate":
            try:
                applied_migration(orjson.dumps(vector["migration_config"]).decode(), template, path)
            except MigrationConfigError as error:
                return {"error": str(error)}
            return {"error": None}
        case "convert":
            applied = applied_migration(orjson.dumps(vector["migration_config"]).decode(), template, path)
            return {"applied": orjson.loads(text_of(applied))}
        case "serialise":
            return {"applied_json": text_of(applied_migration(vector["migration_config_json"], template, path))}
        case _:
            text = vector["annotations"][keys.APPLIED_MIGRATION_CONFIGURATION]
            return {"applied": orjson.loads(text_of(decode(text.encode(), AppliedMigration)))}


ADAPTERS = {"scheduler_migration_config": migration_config}
