"""A deployment: defaults, file, variables, and errors that name the field."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from reverie.config import Deployment, DeploymentError, Setting


def written(folder: Path, text: str) -> Path:
    file = folder / "deployment.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_default_serves_the_embedded_model_on_this_machine_only() -> None:
    deployment = Deployment.read()
    assert [model.name for model in deployment.pool.models] == ["pocket"]
    assert deployment.pool.mode == "process"
    assert (deployment.server.host, deployment.server.port) == ("127.0.0.1", 8000)
    assert deployment == Deployment()


def test_a_file_sets_what_it_names_and_leaves_the_rest(tmp_path: Path) -> None:
    file = written(tmp_path, "server: {port: 9000}\npool: {mode: inline}\n")
    deployment = Deployment.read(file)
    assert deployment.server.port == 9000
    assert deployment.pool.mode == "inline"
    assert [model.name for model in deployment.pool.models] == ["pocket"]


def test_an_empty_file_is_the_default(tmp_path: Path) -> None:
    assert Deployment.read(written(tmp_path, "# nothing yet\n")) == Deployment()


def test_a_list_in_the_file_replaces_the_default_one(tmp_path: Path) -> None:
    file = written(tmp_path, "pool: {models: [{name: mine, family: 'mine.py:Mine'}]}\n")
    assert [model.family for model in Deployment.read(file).pool.models] == ["mine.py:Mine"]


def test_variables_win_over_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "server: {port: 9000, host: 0.0.0.0}\n")
    deployment = Deployment.read(file, {"REVERIE_SERVER__PORT": "9001", "HOME": "/root"})
    assert (deployment.server.host, deployment.server.port) == ("0.0.0.0", 9001)


def test_a_variable_reaches_into_a_list() -> None:
    deployment = Deployment.read(
        None,
        {
            "REVERIE_POOL__MODELS__0__THREADS": "2",
            "REVERIE_POOL__MODELS__1__NAME": "other",
            "REVERIE_POOL__MODELS__1__FAMILY": "other.py:Other",
        },
    )
    first, second = deployment.pool.models
    assert (first.name, first.threads) == ("pocket", 2)
    assert (second.name, second.family) == ("other", "other.py:Other")


def test_client_variables_are_not_settings() -> None:
    variables = {"REVERIE_URL": "http://worlds.example", "REVERIE_OWNER": "secret"}
    assert Deployment.read(variables=variables) == Deployment.read()


def test_a_variable_can_hold_a_whole_list() -> None:
    deployment = Deployment.read(
        None, {"REVERIE_SERVER__ALLOWED_ORIGINS": "[https://a.example, https://b.example]"}
    )
    assert deployment.server.allowed_origins == ("https://a.example", "https://b.example")


def test_a_variable_can_name_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "server: {port: 9002}\n")
    assert Deployment.read(None, {"REVERIE_CONFIG": str(file)}).server.port == 9002


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("server: {port: 70000}", r"server\.port: .*65535.*set in .*deployment\.yaml"),
        ("server: {prot: 9000}", r"server\.prot: unknown setting; did you mean port\? \(set in"),
        (
            "pool: {models: [{name: wan, parallel: {tensor: none}}]}",
            r"pool\.models\.0\.parallel\.tensor: .*integer",
        ),
        ("servers: {port: 9000}", r"servers: unknown setting; did you mean server\?"),
        ("port: 9000", r"port: unknown setting; did you mean server\.port\?"),
        ("pool: {models: [{name: a, thread: 1}]}", r"models\.0\.thread: .*did you mean threads\?"),
        ("server: {smell: 1}", r"server\.smell: unknown setting \(set in"),
        ("server: {allowed_origins: 'https://a.example'}", r"allowed_origins: should be a list"),
        ("server: {allowed_origins: ['*']}", r"allowed_origins: wildcards are not supported"),
        ("server: {allowed_origins: ['https://*.example']}", r"wildcards are not supported"),
        ("pool: {models: []}", r"pool\.models"),
        ("pool: {models: [{name: a, threads: -1}]}", r"pool\.models\.0\.threads"),
        ("pool: {models: [{name: a}, {name: a}]}", r"pool: .*used twice"),
        ("server: {port: 9000}\nserver: {port: 9001}", r"'server' is given twice"),
        ("server: [", r"cannot read .*deployment\.yaml"),
        ("server: [", r'in ".*deployment\.yaml", line 1'),
        ("server: \x07", r'in ".*deployment\.yaml", position 8'),
        ("- server", r"not list"),
        ("server: 9000", r"server: must be a mapping of settings, .*set in .*deployment\.yaml"),
        ("server: {drain_timeout_s: .nan}", r"server\.drain_timeout_s"),
        ("? [1, 2]\n: 3", r"."),
        ("!!python/object/apply:os.system ['true']", r"cannot read"),
    ],
)
def test_an_error_in_the_file_names_the_field(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(DeploymentError, match=named):
        Deployment.read(written(tmp_path, text))


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"REVERIE_SERVER__PORT": "http"}, r"server\.port: .*set in REVERIE_SERVER__PORT"),
        ({"REVERIE_PORT": "9000"}, r"port: .*set in REVERIE_PORT"),
        ({"REVERIE_SERVER__PORT__X": "1"}, r"REVERIE_SERVER__PORT__X"),
        ({"REVERIE_POOL__MODELS__5__NAME": "x"}, r"REVERIE_POOL__MODELS__5__NAME"),
        ({"REVERIE_POOL__MODELS__NAME": "x"}, r"REVERIE_POOL__MODELS__NAME"),
        ({"REVERIE_SERVER__PORT": "["}, r"cannot read REVERIE_SERVER__PORT"),
        ({"REVERIE_": "1"}, r"REVERIE_"),
        ({"REVERIE_CONFIG": "/nowhere/deployment.yaml"}, r"/nowhere/deployment\.yaml"),
    ],
)
def test_an_error_in_a_variable_names_the_variable(variables: dict[str, str], named: str) -> None:
    with pytest.raises(DeploymentError, match=named):
        Deployment.read(None, variables)


def test_the_command_line_wins_over_variables_and_is_named_in_errors() -> None:
    port = Setting(("server", "port"), 9003, "--port")
    assert Deployment.read(None, {"REVERIE_SERVER__PORT": "1"}, [port]).server.port == 9003
    with pytest.raises(DeploymentError, match=r"server\.port: .*set in --port"):
        Deployment.read(None, None, [Setting(("server", "port"), -1, "--port")])


def test_a_value_where_settings_belong_is_refused_also_when_one_of_them_is_set_elsewhere(
    tmp_path: Path,
) -> None:
    file = written(tmp_path, "server: 5\n")
    port = Setting(("server", "port"), 9003, "--port")
    with pytest.raises(DeploymentError, match=r"server: .*set in .*deployment\.yaml\)"):
        Deployment.read(file, None, [port])


def test_one_wrong_field_of_a_model_is_one_line(tmp_path: Path) -> None:
    file = written(tmp_path, "pool: {models: [{name: a, threads: -1}]}")
    with pytest.raises(DeploymentError) as refused:
        Deployment.read(file)
    assert [line.split(":")[0].strip() for line in str(refused.value).splitlines()[1:]] == [
        "pool.models.0.threads"
    ]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="absent"):
        Deployment.read(tmp_path / "absent.yaml")


def test_a_deployment_does_not_change() -> None:
    with pytest.raises(ValidationError):
        Deployment().server.port = 1
