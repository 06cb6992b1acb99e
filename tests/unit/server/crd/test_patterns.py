from argosy.server.crd.patterns import too_large


def test_the_patterns_of_a_definition_are_bounded_together():
    def schema(count: int) -> dict[str, object]:
        fields = {f"f{n}": {"type": "string", "pattern": f"^{n}[ab]{{900}}$"} for n in range(count)}
        return {"type": "object", "properties": {"spec": {"type": "array", "items": {"anyOf": [fields]}}}}

    assert not too_large([{"schema": schema(400)}])
    assert too_large([{"schema": schema(300)}, {"schema": schema(700)}])
    assert not too_large([{"schema": schema(400)}, {"schema": schema(400)}])  # the same ones
