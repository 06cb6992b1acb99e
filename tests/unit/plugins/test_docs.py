"""The code in docs/plugins.md runs as it stands there."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs" / "plugins.md"


def test_the_examples_do_what_they_say():
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    world: dict[str, object] = {}
    plugin, _, test = blocks
    exec(plugin, world)
    exec(test, world)
    (check,) = [value for name, value in world.items() if name.startswith("test_")]
    check()
