"""The command line: ``mcpsync COMMAND [WORDS] [options] [-- SERVER COMMAND]``.

Options and words may be mixed, what follows ``--`` is never looked at, and what is wrong is said in one line.
"""

from __future__ import annotations

import argparse
import difflib
import os
from typing import Dict, Iterable, List, Mapping, NamedTuple, NoReturn, Optional, Sequence, Tuple

from mcpsync import __version__
from mcpsync.cli.exits import MEANINGS
from mcpsync.errors import ConfigError

__all__ = ["COMMANDS", "Command", "HelpWanted", "Invocation", "closest", "parse"]


class Command(NamedTuple):
    """One command.

    :ivar words: its positional arguments, as the usage line has them
    :ivar least: how many of them there must be
    :ivar most: and how many there may be; None: any number
    """

    words: str
    least: int
    most: Optional[int]
    summary: str


COMMANDS: Dict[str, Command] = {
    "demo": Command("", 0, 0, "show mcpsync at work on a server that comes with it"),
    "tools": Command("", 0, 0, "list the tools"),
    "call": Command("TOOL [KEY=VALUE ...]", 1, None, "call a tool"),
    "resources": Command("", 0, 0, "list the resources and their templates"),
    "read": Command("URI", 1, 1, "read a resource"),
    "prompts": Command("", 0, 0, "list the prompts"),
    "prompt": Command("NAME [KEY=VALUE ...]", 1, None, "have a prompt filled in"),
    "ping": Command("", 0, 0, "ask for a sign of life"),
    "info": Command("", 0, 0, "show what a server says of itself"),
    "servers": Command("", 0, 0, "list the servers of a config file, without starting any"),
    "add": Command("NAME", 1, 1, "add a server to a config file"),
    "remove": Command("NAME", 1, 1, "take a server out of a config file"),
    "import": Command("FILE", 1, 1, "copy the servers of another program's config file"),
    "config": Command("ACTION [FILE]", 1, 2, "check a config file for all that is wrong, or approve one of a project"),
    "status": Command("", 0, 0, "show how each server of a config file is"),
    "doctor": Command("", 0, 0, "look for what is wrong with each server of a config file"),
    "login": Command("SERVER", 1, 1, "sign in: to a URL, or to the server of that name in a config file"),
    "logout": Command("SERVER", 1, 1, "sign out there, for all processes of yours"),
    "auth": Command("status", 1, 1, "show where you are signed in"),
}


_SIGNING = ("login", "logout")
_OF_CONFIGS = ("servers", "add", "remove", "import", "config")
_OF_FILES = ("status", "doctor")
_OF_SERVERS = tuple(name for name in COMMANDS if name not in ("demo", "auth", *_SIGNING, *_OF_FILES, *_OF_CONFIGS))


class Invocation(NamedTuple):
    """A command line, understood.

    :ivar words: the positional arguments
    :ivar server_command: what stood after ``--``
    :ivar env: variables for the server; never shown
    :ivar url: of a server that is reached, in place of a command
    :ivar headers: for that; never shown
    :ivar dialect: the layout of the config file, None where it is to be recognised
    :ivar given_env: of ``add``: variables to write, None for one that is to stay a variable
    """

    command: str
    words: List[str]
    server_command: Optional[List[str]] = None
    config: Optional[str] = None
    server: Optional[str] = None
    json: bool = False
    timeout: Optional[float] = None
    protocol: str = "auto"
    env: Mapping[str, str] = {}
    url: Optional[str] = None
    headers: Mapping[str, str] = {}
    transport: str = "auto"
    verbose: bool = False
    args: Optional[str] = None
    validate: bool = False
    paste: bool = False
    scope: Optional[str] = None
    client_id: Optional[str] = None
    callback_port: Optional[int] = None
    dialect: Optional[str] = None
    given_env: Mapping[str, Optional[str]] = {}
    yes: bool = False

    def __repr__(self) -> str:
        return "Invocation(%r)" % self.command  # no more of it: variables and arguments may be secrets


def closest(word: str, known: Iterable[str]) -> Optional[str]:
    """The known word that is likely meant."""
    near = difflib.get_close_matches(word, list(known), 1)
    return near[0] if near else None


class HelpWanted(Exception):
    """Not a command line to run: its text is to be shown."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)


def _exit_codes() -> str:
    return "exit codes:\n" + "\n".join("  %-3d %s" % item for item in MEANINGS.items())


def _overview() -> str:
    """What ``mcpsync --help`` shows."""
    commands = "\n".join(
        "  %-28s %s" % (("%s %s" % (name, command.words)).rstrip(), command.summary)
        for name, command in COMMANDS.items()
    )
    return """usage: mcpsync COMMAND [options] (--config FILE [--server NAME] | --url URL | -- SERVER COMMAND ...)

MCP for code that blocks: a client for servers of the Model Context Protocol.

commands:
%s

options of those for servers (all of them: mcpsync COMMAND --help):
  --config FILE                a config file with servers; --server NAME picks one
  --url URL                    or the URL of a server
  -- COMMAND ...               or the command that starts one, last
  --json                       JSON on stdout, and nothing else there

examples:
  mcpsync demo
  mcpsync tools --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'
  mcpsync tools -- npx -y @modelcontextprotocol/server-everything
  mcpsync call get-sum a=1 b=2 -- npx -y @modelcontextprotocol/server-everything

%s""" % (commands, _exit_codes())


def parse(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> Invocation:
    """Understand a command line that names a command.

    :param argv: the arguments, without the program's name
    :param environ: where ``--env NAME`` finds values
    :raises ConfigError: they are wrong
    :raises HelpWanted: they ask for help, or for the version
    """
    if argv[:1] in (["-h"], ["--help"]):
        raise HelpWanted(_overview())
    if argv[:1] == ["--version"]:
        raise HelpWanted("mcpsync " + __version__)
    own, server_command = _split(argv)
    if not own:
        raise ConfigError("say what to do: one of %s" % ", ".join(COMMANDS))
    name = own[0]
    if name.startswith("-"):
        raise ConfigError("the command comes first, its options after it: mcpsync COMMAND %s" % _without_value(name))
    if name not in COMMANDS:
        raise ConfigError("there is no command %r" % name, nearest=closest(name, COMMANDS))
    command = COMMANDS[name]
    parser = _parser(name, command)
    try:
        options, words = parser.parse_known_args(own[1:])
    except ConfigError as error:
        error.message = "%s: %s" % (name, error.message)
        raise
    if options.help:
        raise HelpWanted(parser.format_help().rstrip())
    _check_words(name, command, words, parser)
    found = {key: value for key, value in vars(options).items() if value is not None and key != "help"}
    if name == "add":  # into a file, variables go as variables
        found["given_env"] = dict(_named(each) for each in found.pop("env", ()))
        found["headers"] = dict(_header(each) for each in found.get("headers", ()))
    else:
        found["env"] = _variables(found.get("env", ()), environ)
        found["headers"] = _headers(found.get("headers", ()), environ)
    invocation = Invocation(name, words, server_command, **found)
    if name in _SIGNING:
        return _with_server(invocation)
    if name in _OF_FILES:
        return _with_file(invocation)
    if name in _OF_CONFIGS:
        _check_config_command(invocation)
        return invocation
    _check_target(invocation)
    return invocation


def _split(argv: Sequence[str]) -> Tuple[List[str], Optional[List[str]]]:
    arguments = list(argv)
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _parser(name: str, command: Command) -> _Parser:
    usage = "mcpsync %s [options]" % ("%s %s" % (name, command.words)).rstrip()
    if name in _OF_SERVERS:
        usage += " (--config FILE [--server NAME] | --url URL | -- COMMAND ...)"
    parser = _Parser(
        prog="mcpsync " + name,
        usage=usage,
        description=command.summary[:1].upper() + command.summary[1:] + ".",
        epilog=_exit_codes(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    add = parser.add_argument
    add("-h", "--help", action="store_true", help="show this")
    if name in _SIGNING:
        add("--config", metavar="FILE", help="with the server of that NAME; by default mcp.json in ~/.mcpsync")
    if name == "login":
        add("--paste", action="store_true",
            help="the browser is on another machine: paste the address that it ends at")  # fmt: skip
        add("--scope", metavar="'A B'", help="to ask for; by default what the server says")
        add("--client-id", metavar="ID", help="of a client that was registered beforehand")
        add("--callback-port", metavar="PORT", type=_port, help="that this client was registered with")
    if name in _OF_CONFIGS:
        add("--config", metavar="FILE", help="the config file; by default mcp.json in ~/.mcpsync")
        whose = "FILE" if name == "import" else "the file"
        add("--dialect", metavar="NAME", help="the layout of %s, if it is not to be recognised" % whose)
    if name == "config":
        add("--yes", action="store_true", help="approve: without asking, for scripts")
    if name == "add":
        add("--url", metavar="URL", help="of a server that is reached over HTTP; else its command goes behind --")
        add("--header", metavar="'NAME: VALUE'", action="append", dest="headers",
            help="for each request to the URL; ${VARIABLE} in the value stays a variable")  # fmt: skip
        add("--transport", choices=("auto", "http", "sse"), help="for the URL")
        add("--env", metavar="NAME[=VALUE]", action="append",
            help="a variable for the server; without a value, that of the environment when it is started")  # fmt: skip
    if name in _OF_FILES:
        add("--config", metavar="FILE", help="with the servers; by default mcp.json in ~/.mcpsync")
        add("--server", metavar="NAME", help="only this one")
    if name in (*_SIGNING, *_OF_FILES, *_OF_CONFIGS, "auth"):
        add("--json", action="store_true", help="JSON on stdout, and nothing else there")
    if name in _OF_SERVERS:
        add("--config", metavar="FILE", help="a config file with servers, as other MCP hosts have them")
        add("--server", metavar="NAME", help="the server of that name in it")
        add("--url", metavar="URL", help="of a server that is reached over HTTP")
        add("--header", metavar="'NAME: VALUE'", action="append", dest="headers",
            help="for each request to the URL; ${VARIABLE} in the value is one of this environment")  # fmt: skip
        add("--transport", choices=("auto", "http", "sse"),
            help="for the URL: find it out, Streamable HTTP, or the HTTP+SSE before it")  # fmt: skip
        add("--json", action="store_true", help="JSON on stdout, and nothing else there")
        add("--env", metavar="NAME[=VALUE]", action="append",
            help="a variable for the server; without a value, the one of this environment")  # fmt: skip
    if name == "call":
        add("--validate", action="store_true",
            help="hold the arguments and the result against the tool's schemas (needs the extra 'schema')")  # fmt: skip
        add("--args", metavar="JSON", help="all arguments as a JSON object; @FILE reads them from a file, - from stdin")
    add("--timeout", metavar="SECONDS", type=_seconds, help="for connecting, and for each request")
    add("--protocol", metavar="REVISION", help="auto, legacy, modern or a revision, as 2025-11-25")
    add("--verbose", action="store_true", help="show on stderr what the server logs, and what happens")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError("must be a number of seconds above 0, not %r" % text)
    return seconds


def _port(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError("must be the number of a port, not %r" % text)
    return int(text)


def _check_words(name: str, command: Command, words: List[str], parser: _Parser) -> None:
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:  # bytes that are no text in this locale
            raise ConfigError("%s: the argument %r is no valid text" % (name, word)) from None
        if word.startswith("-") and word != "-":
            option = _without_value(word)
            known = [string for action in parser._actions for string in action.option_strings if len(string) > 2]
            raise ConfigError("%s: there is no option %s" % (name, option), nearest=closest(option, known))
    if len(words) < command.least:
        raise ConfigError("%s: %s is missing: mcpsync %s %s" % (name, command.words.split()[0], name, command.words))
    if command.most is not None and len(words) > command.most:
        extra = words[command.most]
        place = (
            "a server's URL goes behind --url"
            if "://" in extra
            else "the command that starts the server goes behind --"
        )
        raise ConfigError(
            "%s takes %s and not %r: %s" % (name, command.words or "no further words", extra.partition("?")[0], place)
        )


def _without_value(option: str) -> str:
    return option.partition("=")[0]


def _variables(given: Iterable[str], environ: Mapping[str, str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name:
            raise ConfigError("--env takes NAME=VALUE, or NAME for a variable of this environment")
        if not equals:
            if name not in environ:  # not shown: it may be a value whose name was forgotten
                raise ConfigError("--env takes NAME=VALUE; a bare NAME must be a variable of this environment")
            value = environ[name]
        found[name] = value
    return found


def _named(given: str) -> Tuple[str, Optional[str]]:
    name, equals, value = given.partition("=")
    if not name:
        raise ConfigError("--env takes NAME=VALUE, or NAME for a variable of the environment")
    return name, value if equals else None


def _header(given: str) -> Tuple[str, str]:
    name, colon, value = given.partition(":")
    if not colon or not name.strip():
        raise ConfigError("--header takes 'NAME: VALUE', as 'Authorization: Bearer ${TOKEN}'")
    return name.strip(), value.strip()


def _check_config_command(invocation: Invocation) -> None:
    name = invocation.command
    if name == "config":
        what = invocation.words[0]
        if what not in ("check", "approve"):
            raise ConfigError("config: there is 'mcpsync config check [FILE]' and 'mcpsync config approve FILE'")
        if len(invocation.words) > 1 and invocation.config is not None:
            raise ConfigError("config %s: give FILE or --config FILE, not both" % what)
        if what == "approve" and len(invocation.words) == 1 and invocation.config is None:
            raise ConfigError("config approve: FILE is missing: mcpsync config approve FILE")
        if what == "check" and invocation.yes:
            raise ConfigError("config check: --yes is of 'config approve'")
    if name != "add":
        if invocation.server_command is not None:
            raise ConfigError("%s takes no server command: take away what stands behind --" % name)
        return
    if (invocation.url is None) == (not invocation.server_command):
        raise ConfigError("add: give --url URL, or -- and the command that starts the server")
    if invocation.url is None and (invocation.headers or invocation.transport != "auto"):
        raise ConfigError("add: %s goes with --url" % ("--header" if invocation.headers else "--transport"))
    if invocation.url is not None and invocation.given_env:
        raise ConfigError("add: --env is for a server that is started, and not for --url")


def _headers(given: Sequence[str], environ: Mapping[str, str]) -> Dict[str, str]:
    if not given:
        return {}
    from mcpsync.config.expand import Values, expand

    found: Dict[str, str] = {}
    for each in given:
        name, value = _header(each)
        expanded = expand(value, Values(environ))
        if expanded.missing:
            raise ConfigError("--header %s: the variable %s is not set" % (name, expanded.missing[0]))
        found[name] = expanded.text
    return found


def _with_server(invocation: Invocation) -> Invocation:
    """What to sign in at: a URL, or the name of a server in a config file."""
    name, (word,) = invocation.command, invocation.words
    if invocation.server_command is not None:
        raise ConfigError("%s is for servers that are reached over HTTP: take away what stands behind --" % name)
    if "://" in word:
        if invocation.config is not None:
            raise ConfigError("%s: with a URL, --config is of no use" % name)
        return invocation._replace(url=word)
    config = invocation.config or _own_config()
    if config is None:
        raise ConfigError("%s: give a URL, or --config FILE with the server %r in it" % (name, word))
    return invocation._replace(config=config, server=word)


def _with_file(invocation: Invocation) -> Invocation:
    """Which config file is meant."""
    name = invocation.command
    if invocation.server_command is not None:
        raise ConfigError("%s is for the servers of a config file: take away what stands behind --" % name)
    config = invocation.config or _own_config()
    if config is None:
        raise ConfigError("%s: give --config FILE, or make %s with 'mcpsync add'" % (name, _own_path()))
    return invocation._replace(config=config)


def _own_path() -> str:
    from mcpsync.auth.store import state_folder

    return os.path.join(state_folder(), "mcp.json")


def _own_config() -> Optional[str]:
    path = _own_path()
    return path if os.path.exists(path) else None


def _check_target(invocation: Invocation) -> None:
    name = invocation.command
    if name not in _OF_SERVERS:
        if invocation.server_command is not None:
            own = "demo brings its own server" if name == "demo" else "%s takes no server" % name
            raise ConfigError("%s: take away what stands behind --" % own)
        if name == "auth" and invocation.words != ["status"]:
            raise ConfigError("auth: there is only 'mcpsync auth status'; see login and logout")
        return
    given = [
        what
        for what, value in (
            ("--config", invocation.config),
            ("--url", invocation.url),
            ("a command behind --", invocation.server_command),
        )
        if value is not None
    ]
    if len(given) > 1:
        raise ConfigError("%s: give %s or %s, not both" % (name, given[0], given[1]))
    if not given or invocation.server_command == []:
        raise ConfigError(
            "%s: which server? Give --config FILE, --url URL, or -- and the command that starts it" % name
        )
    if invocation.server is not None and invocation.config is None:
        raise ConfigError("%s: --server picks a server of a config file: give --config FILE too" % name)
    if invocation.url is None and (invocation.headers or invocation.transport != "auto"):
        option = "--header" if invocation.headers else "--transport"
        raise ConfigError("%s: %s goes with --url; in a config file it stands in the server's entry" % (name, option))
    if invocation.url is not None and invocation.env:
        raise ConfigError("%s: --env is for a server that is started, and not for --url" % name)
