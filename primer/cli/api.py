"""`primer api` and `primer token`: the HTTP API, and who may use it."""

import ipaddress
from typing import Annotated

import typer

from primer.cli.output import JsonOption, err, out, print_json, print_table
from primer.workspace import open_workspace
from primer_core.failures import PrimerError
from primer_resources.catalog.tokens import Role

token = typer.Typer(no_args_is_help=True, help="Bearer tokens of the HTTP API.")
PORT = 8788


def api(
    host: Annotated[str, typer.Option(help="Address to listen on. Other machines reach only one that is not loopback.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen on.")] = PORT,
) -> None:
    """Serve the HTTP API until Ctrl-C."""
    import uvicorn

    from primer.api.app import make_app

    if not _is_loopback(host):
        err.print(
            f"note: {host} is reached from other machines, and what is sent is not encrypted; put a proxy with TLS before it", markup=False
        )
    with open_workspace() as workspace:
        catalog = workspace.catalog
        if not any(each.revoked_at is None for each in catalog.tokens.all(workspace.settings.tenant)):
            err.print("note: there is no token yet; make one with `primer token add NAME --role operator`", markup=False)
        err.print(f"Primer's API is at http://{host}:{port}, its OpenAPI document at /openapi.json", markup=False)
        config = uvicorn.Config(
            make_app(workspace.settings, catalog),
            host=host,
            port=port,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # whoever asks could name any address as his own
            log_level="warning",
        )
        server = uvicorn.Server(config)
        try:
            server.run()
        except OSError as error:
            raise PrimerError(f"{host}:{port} cannot be listened on ({error.strerror}); choose another --port") from error
        if not server.started:
            raise PrimerError(f"{host}:{port} cannot be listened on; another program may be there: choose another --port")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@token.command("add")
def add_token(
    name: Annotated[str, typer.Argument(help="What the token is for.")],
    role: Annotated[
        Role, typer.Option(help="reader looks; connector asks for syncs, too; operator changes sources and dead letters, too.")
    ],
    json: JsonOption = False,
) -> None:
    """Make a token. It is shown once: only a hash of it is kept."""
    with open_workspace() as workspace:
        workspace.catalog.tenants.get(workspace.settings.tenant)
        made = workspace.catalog.tokens.add(workspace.settings.tenant, name, role)
    if json:
        print_json({"name": name, "role": role, "token": made})
    else:
        out.print(made, markup=False)
        err.print("keep it now: it is not shown again", markup=False)


@token.command("list")
def list_tokens(json: JsonOption = False) -> None:
    """List the tokens, without their secrets."""
    with open_workspace() as workspace:
        tokens = workspace.catalog.tokens.all(workspace.settings.tenant)
    if json:
        names = ("name", "role", "created_at", "revoked_at")
        print_json([{name: getattr(each, name) for name in names} for each in tokens])
        return
    print_table(["name", "role", "made", "revoked"], [[each.name, each.role, each.created_at, each.revoked_at] for each in tokens])


@token.command("revoke")
def revoke_token(name: str, json: JsonOption = False) -> None:
    """End a token; requests with it are refused from now on."""
    with open_workspace() as workspace:
        workspace.catalog.tokens.revoke(workspace.settings.tenant, name)
    if json:
        print_json({"name": name, "revoked": True})
    else:
        out.print(f"token {name} is revoked", markup=False)
