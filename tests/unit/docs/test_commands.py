"""What documents and --help tell people to type exists: commands, their options and arguments, make's targets and variables.

Every command in a block of code, or an example, is parsed by the command line's own parser, as it stands; commands in running
text may leave something out. `tests/e2e/test_tour.py` runs the README's tour.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from argosy.cli.app import app
from argosy.cli.options.upstream import FLAGS

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
#: What is wrong with a command line, whatever it is.
UsageError: type[Any] = typer.BadParameter.__bases__[0]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_SPACE = re.compile(r"\s+")
_NO_SHELL = {"yaml", "json", "python", "toml", "go", "promql"}
_ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>"}
#: Stands for something that the reader fills in.
_NUMBER = re.compile(r"\b[A-Z]\b")
_PLACEHOLDER = re.compile(r"…|\.\.\.|<[\w/ -]+>")


def without_effect() -> Any:
    """The command line as it is, but whatever is typed, nothing is done."""
    cli: Any = typer.main.get_command(app)
    for command in cli.commands.values():
        command.callback = lambda **_: None
    return cli


PARSED = without_effect()


class Command(msgspec.Struct, frozen=True):
    document: str
    words: tuple[str, ...]
    #: In a block of code, to be typed as it stands.
    whole: bool

    def __str__(self) -> str:
        return f"{self.document}: {shlex.join(self.words)}"


def simple_commands(text: str) -> Iterator[tuple[str, ...]]:
    """The words of each command on a line of shell."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in _ENDS or set(word) <= set("();<>|&"):
            if words:
                yield tuple(words)
            words = []
        else:
            words.append(word)
    if words:
        yield tuple(words)


def ours(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """From the program's name on, if it is one of ours."""
    while words and re.fullmatch(r"\$|[A-Z_]+=\S*|sudo|time|export|kubectl", words[0]):
        if words[0] == "kubectl" and words[1:2] != ("argosy",):
            return None
        words = words[1:]
    if words[:3] in (("python", "-m", "argosy.cli"), (".venv/bin/python", "-m", "argosy.cli")):
        words = ("argosy", *words[3:])
    if words and words[0] in ("argosy", ".venv/bin/argosy", "make"):
        return (words[0].rpartition("/")[2], *words[1:])
    return None


def commands_in(path: Path) -> Iterator[Command]:
    text = path.read_text()
    name = str(path.relative_to(ROOT))
    for language, block in _FENCED.findall(text):
        if language in _NO_SHELL:
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if not re.match(r"\s*(\$ |kubectl argosy|argosy|make|\.venv/bin/|python -m argosy|[A-Z_]+=)", line):
                continue
            for words in simple_commands(line):
                if (found := ours(words)) is not None:
                    yield Command(name, found, whole=True)
    for span in _INLINE.findall(_FENCED.sub("", text)):
        span = _SPACE.sub(" ", span)
        if not re.match(r"(kubectl )?(argosy|make) [\w-]", span):
            continue
        span = _NUMBER.sub("1", _PLACEHOLDER.sub("x", re.sub(r"[\[\]]", "", span)))
        for words in simple_commands(span):
            if (found := ours(words)) is not None:
                yield Command(name, found, whole=False)


def commands_in_help(name: str) -> Iterator[Command]:
    for line in (PARSED.commands[name].help or "").splitlines():
        if re.match(r" +argosy ", line):
            for words in simple_commands(line):
                if (found := ours(words)) is not None:
                    yield Command(f"argosy {name} --help", found, whole=True)


COMMANDS = [command for path in DOCUMENTS for command in commands_in(path)]
COMMANDS += [command for name in sorted(PARSED.commands) for command in commands_in_help(name)]
ARGOSY = [command for command in COMMANDS if command.words[0] == "argosy"]
MAKE = [command for command in COMMANDS if command.words[0] == "make"]


def test_commands_are_found() -> None:
    assert len(ARGOSY) > 40
    assert len(MAKE) > 10
    assert any(command.whole for command in ARGOSY)


@pytest.mark.parametrize("command", ARGOSY, ids=str)
def test_a_command_and_its_options_exist(command: Command) -> None:
    try:
        PARSED.main(list(command.words[1:]), prog_name="argosy", standalone_mode=False)
    except UsageError as error:
        # In running text a command may leave out what it is about.
        if command.whole or type(error).__name__ != "MissingParameter":
            raise AssertionError(error.format_message()) from None


@pytest.mark.parametrize("name", sorted(PARSED.commands))
def test_every_command_has_help_with_an_example(name: str) -> None:
    told = CliRunner().invoke(app, [name, "--help"], prog_name="argosy")
    assert told.exit_code == 0, told.output
    assert any(name in command.words for command in commands_in_help(name))


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("command", MAKE, ids=str)
def test_a_target_exists(command: Command) -> None:
    variables = dict(word.split("=", 1) for word in command.words[1:] if "=" in word)
    named = [word for word in command.words[1:] if "=" not in word and not word.startswith("-")]
    assert set(named) <= targets()
    makefile = (ROOT / "Makefile").read_text()
    for variable in variables:
        assert f"$({variable})" in makefile or f"{variable} ?=" in makefile, f"nobody reads {variable}"
    if command.whole and "bench" in named:
        assert (ROOT / "bench" / f"{variables['NAME']}.py").exists()


_OPTIONS_OF_OTHERS = {
    # kubectl, git, kube-apiserver and its companions, tests and benchmarks of ours
    "--all", "--cascade", "--context", "--replicas", "--timeout", "--type", "--patch-file",
}  # fmt: skip


def options() -> set[str]:
    """Of all commands."""
    every = [PARSED, *PARSED.commands.values()]
    return {name for one in every for parameter in one.params for name in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_an_option_that_is_named_alone_exists(path: Path) -> None:
    text = _FENCED.sub("", path.read_text())
    spans = [span for span in _INLINE.findall(text) if re.match(r"--?[a-z]", span)]
    named = {name for span in spans for name in re.findall(r"(?<![\w-])--[a-z][a-z-]+", span)}
    known = options() | FLAGS | _OPTIONS_OF_OTHERS | declared()
    assert named <= known, f"nothing has {sorted(named - known)}"


def declared() -> set[str]:
    """Options of tests' and benchmarks' own programs, and what we hand to Kubernetes' components."""
    sources = [
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "bench").rglob("*.py"),
        *(ROOT / "src/argosy/testing").rglob("*.py"),
    ]
    return {name for path in sources for name in re.findall(r'"(--[a-z][a-z-]+)[="]', path.read_text())}
