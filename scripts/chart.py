"""Make those files of the Helm chart that say what a control plane must hold, from the same manifests `argosy install` uses.

    python scripts/chart.py

A test (tests/unit/deploy) fails when they were not made anew after a change.
"""

from pathlib import Path
from typing import Any

import yaml

from argosy.api.installation import manifests

CHART = Path(__file__).parents[1] / "deploy" / "helm" / "argosy"
#: For Prometheus, whoever runs the controllers.
_ALERTS = Path(__file__).parents[1] / "deploy" / "alerts" / "argosy.yaml"
_HEAD = "# Made by scripts/chart.py from what `argosy install` installs; not to be edited.\n"
#: Objects of these kinds may be anywhere in the fleet: removing the controllers must not take them away.
_KEEP = {"helm.sh/resource-policy": "keep"}


def files() -> dict[str, str]:
    """The content of each file, by its path in the chart."""
    made = manifests()
    kept = [_annotated(manifest, _KEEP) for manifest in made.type_configs]
    found = {f"crds/{manifest['spec']['names']['plural']}.yaml": _text([manifest]) for manifest in made.definitions}
    return found | {
        "files/rights.yaml": _text(made.rights),
        "files/policy.yaml": _text(made.guard),
        "files/caveats.yaml": _text(made.caveats),
        "files/type-configs.yaml": _text(kept),
        "files/alerts.yaml": _ALERTS.read_text(),
    }


def _annotated(manifest: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    metadata = manifest["metadata"]
    return {**manifest, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}}


def _text(documents: list[dict[str, Any]]) -> str:
    dumped = yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)
    return _HEAD + dumped


class _Plain(yaml.CSafeDumper):
    """Without anchors: what two documents share is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def main() -> None:
    wanted = files()
    for stale in {*CHART.glob("crds/*"), *CHART.glob("files/*")} - {CHART / name for name in wanted}:
        stale.unlink()
    for name, text in wanted.items():
        (CHART / name).write_text(text)
    print(f"{len(wanted)} files in {CHART.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
