"""`primer tenant`: tenants, and the drives where their objects are."""

from typing import Annotated

import typer

from primer.cli.output import JsonOption, out, print_json, print_table
from primer.tenant_admin import WantedDrives, add_tenant, change_drives
from primer.workspace import open_workspace
from primer_core.stored_states import DriveKind
from primer_resources.catalog.tenants import Tenant

app = typer.Typer(no_args_is_help=True, help="Add, change and list tenants, and say which are active.")

Name = Annotated[str, typer.Argument(help="The tenant.")]
Intake = Annotated[str | None, typer.Option(help="Where its source bytes are kept: s3://BUCKET/PREFIX or a folder.")]
Pipeline = Annotated[str | None, typer.Option(help="Where what the stages make of them is kept: s3://BUCKET/PREFIX or a folder.")]
Region = Annotated[str | None, typer.Option(help="Region of its buckets.")]
Endpoint = Annotated[str | None, typer.Option(help="Address of an S3 store that is not Amazon's.")]
Credentials = Annotated[str | None, typer.Option(help="Where KEY_ID:SECRET is: env:NAME or file:/PATH. It is never stored.")]


@app.command()
def add(
    name: Name,
    intake: Intake = None,
    pipeline: Pipeline = None,
    region: Region = None,
    endpoint: Endpoint = None,
    credentials: Credentials = None,
    json: JsonOption = False,
) -> None:
    """Add a tenant with its two drives, in folders below PRIMER_HOME unless said otherwise. Each drive is tried out first."""
    with open_workspace() as workspace:
        wanted = WantedDrives(intake, pipeline, region, endpoint, credentials)
        added, is_new = add_tenant(workspace.catalog, workspace.settings, name, wanted)
        workspace.drives.forget(name)
    if json:
        print_json(_shown(added))
    else:
        places = ", ".join(f"{kind} at {spec.url}" for kind, spec in added.drives.items())
        out.print(f"tenant {name} {'added' if is_new else 'is there already'}: {places}", markup=False)


@app.command("set")
def set_tenant(
    name: Name,
    intake: Intake = None,
    pipeline: Pipeline = None,
    region: Region = None,
    endpoint: Endpoint = None,
    credentials: Credentials = None,
    json: JsonOption = False,
) -> None:
    """Change the drives of a tenant: those whose place is given, otherwise both. Objects are not moved: copy them first, while it is
    inactive."""
    with open_workspace() as workspace:
        wanted = WantedDrives(intake, pipeline, region, endpoint, credentials)
        changed = change_drives(workspace.catalog, workspace.settings, name, wanted)
        workspace.drives.forget(name)
    if json:
        print_json(_shown(changed))
    else:
        out.print(f"tenant {name} changed; processes that run take it up within five minutes", markup=False)


@app.command("list")
def list_(json: JsonOption = False) -> None:
    """List the tenants with their drives."""
    with open_workspace() as workspace:
        tenants = workspace.catalog.tenants.all()
    if json:
        print_json([_shown(tenant) for tenant in tenants])
        return
    rows = [
        [
            each.tenant_id,
            "active" if each.active else "inactive",
            *(each.drives[kind].url if kind in each.drives else "none" for kind in DriveKind),
        ]
        for each in tenants
    ]
    print_table(["tenant", "state", *(f"{kind} drive" for kind in DriveKind)], rows)


@app.command()
def activate(name: Name, json: JsonOption = False) -> None:
    """Let the work of a tenant go on. Its sources are listed in full at the next sync."""
    _set_active(name, True, json)


@app.command()
def deactivate(name: Name, json: JsonOption = False) -> None:
    """Stop the work of a tenant: its sources are not read, its tokens and events are refused. Nothing of it is deleted."""
    _set_active(name, False, json)


def _set_active(name: str, active: bool, json: bool) -> None:
    with open_workspace() as workspace:
        changed = workspace.catalog.tenants.set_active(name, active)
        workspace.drives.forget(name)
        tenant = workspace.catalog.tenants.get(name)
    if json:
        print_json(_shown(tenant))
    else:
        state = "active" if active else "inactive"
        out.print(f"tenant {name} is {state}{'' if changed else ' already'}", markup=False)


def _shown(tenant: Tenant) -> dict[str, object]:
    drives = {
        kind.value: {"url": spec.url, "region": spec.region, "endpoint": spec.endpoint, "credentials": spec.credentials_ref}
        for kind, spec in tenant.drives.items()
    }
    return {"tenant": tenant.tenant_id, "active": tenant.active, "drives": drives}
