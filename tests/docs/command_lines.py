"""Looks at a command line without running it: do its programs, subcommands, options and files exist?"""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import click
from pagetext import ROOT

from traingov.cli.main import main as traingov
from traingov_proxy.cli import cli as traingov_proxy
from traingov_sim.cli import main as traingov_sim

GROUPS: dict[str, click.Command] = {
    "traingov": traingov,
    "traingov-sim": traingov_sim,
    "traingov-proxy": traingov_proxy,
}
OURS = (*GROUPS, "traingovd", "make", "pytest", "python", "packaging/ci-system", "packaging/build-deb", "promtool")
_PREFIXES = {"sudo", "nice", "then", "do", "exec"}
_WORD = re.compile(r"[\w./-]+\Z")


def problems(script: str) -> list[str]:
    """What is wrong with the commands of ``script`` that are ours; others are nobody's business here."""
    found = []
    for command in _split(script):
        words = [word for word in command if not re.fullmatch(r"[A-Z_]+=\S*", word)]
        while words and words[0] in _PREFIXES:
            words = words[1:]
        if not words or not _WORD.match(words[0]):
            continue
        name = Path(words[0]).name
        arguments = words[1:]
        if name in GROUPS:
            found += _click(name, GROUPS[name], arguments)
        elif name == "traingovd":
            found += _options("traingovd", arguments, _text_of("daemon/traingov/service.py"))
        elif name == "make":
            targets = re.findall(r"^([\w-]+):", _text_of("Makefile"), re.MULTILINE)
            found += [f"make {word}: no such target" for word in arguments if _WORD.match(word) and word not in targets]
        elif name == "pytest":
            found += _files([word for word in arguments if word.startswith("tests")])
        elif name == "python" and arguments:
            found += _python(arguments)
        elif words[0].startswith(("packaging/", "benchmarks/")):
            found += _files(words[:1])
    return found


def _split(script: str) -> list[list[str]]:
    """Simple commands, as words. Here-documents and comments are left out, brackets of a synopsis taken off."""
    script = re.sub(r"<<'?(\w+)'?.*?\n\1\n?", "\n", script + "\n", flags=re.DOTALL).replace("\\\n", " ")
    commands: list[list[str]] = []
    for line in script.splitlines():
        lexer = shlex.shlex(re.sub(r"[\[\]]", " ", line), posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split = True
        try:
            words = list(lexer)
        except ValueError as error:
            commands.append(["traingov", f"cannot be split: {error}"])
            continue
        commands.append([])
        for word in words:
            if re.fullmatch(r"[|&;()]+", word):
                commands.append([])
            else:
                commands[-1].append(word)
    return [command for command in commands if command]


def _click(name: str, command: click.Command, arguments: list[str]) -> list[str]:
    while isinstance(command, click.Group):
        if not arguments or arguments[0] in ("--help", "--version", "…", "-h"):
            return []
        context = click.Context(command)
        inner = command.get_command(context, arguments[0])
        if inner is None:
            if re.fullmatch(r"[A-Z_]+|WHAT", arguments[0]):
                return []
            return [f"{name}: no command {arguments[0]!r}"]
        name, command, arguments = f"{name} {arguments[0]}", inner, arguments[1:]
    if name == "traingov restore":
        return _options(name, arguments, _text_of("daemon/traingov/cli/restore.py"))
    known = {word for parameter in command.params for word in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "-h"}
    given = [word.split("=")[0] for word in arguments if re.match(r"--?[a-z]", word)]
    return [f"{name}: no option {word}" for word in given if word not in known]


def _python(arguments: list[str]) -> list[str]:
    if arguments[0] == "-m":
        if not arguments[1].startswith("traingov"):
            return []
        folder = {"traingov_sim": "sim", "traingov_proxy": "proxy", "traingov": "daemon"}[arguments[1].split(".")[0]]
        path = ROOT / folder / arguments[1].replace(".", "/")
        file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__main__.py"
    elif arguments[0].endswith(".py") and "/" in arguments[0]:
        file = ROOT / arguments[0]
    else:
        return []
    if not file.exists():
        return [f"python {' '.join(arguments[:2])}: no such file"]
    return _options(str(file.relative_to(ROOT)), arguments, file.read_text())


def _options(name: str, arguments: list[str], source: str) -> list[str]:
    """Long options must stand as text in the program's source: it is argparse that reads them."""
    strings = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    given = [word.split("=")[0] for word in arguments if word.startswith("--") and word != "--"]
    return [f"{name}: no option {word}" for word in given if word not in strings and word != "--help"]


def _files(paths: list[str]) -> list[str]:
    return [f"{path}: no such file" for path in paths if not (ROOT / path.split("::")[0]).exists()]


@cache
def _text_of(path: str) -> str:
    return (ROOT / path).read_text()
