"""Distil the roles and bindings a stock kube-apiserver creates at its first start into server/auth/bootstrap.json.

Usage: kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o json | python scripts/distill_bootstrap_roles.py
Run it against a fresh kube-apiserver of the newest supported minor; only objects labelled as bootstrap defaults are kept.
"""

import json
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "src/argosy/server/auth/bootstrap.json"
LABEL = "kubernetes.io/bootstrapping"


def distil(items: list[dict]) -> list[dict]:
    kept = []
    for item in items:
        metadata = item["metadata"]
        if LABEL not in (metadata.get("labels") or {}):
            continue
        slim = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if metadata.get(key)}
        entry = {"apiVersion": item["apiVersion"], "kind": item["kind"], "metadata": slim}
        entry |= {key: item[key] for key in ("aggregationRule", "roleRef", "rules", "subjects") if item.get(key)}
        kept.append(entry)
    return sorted(kept, key=lambda o: (o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]))


if __name__ == "__main__":
    objects = distil(json.load(sys.stdin)["items"])
    lines = ",\n".join(json.dumps(o, separators=(",", ":"), sort_keys=True) for o in objects)
    TARGET.write_text(f"[\n{lines}\n]\n")
    print(f"{len(objects)} objects, {TARGET.stat().st_size} bytes")
