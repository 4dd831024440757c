"""`primer store`: what is on the drives, held against the catalog."""

from typing import Annotated, Any

import typer

from primer.cli.output import DIFFERENCE_EXIT, JsonOption, err, out, print_json, print_table, visible
from primer.workspace import open_reconciler, open_workspace
from primer_core.coherence import DriveCoherence

app = typer.Typer(no_args_is_help=True, help="The objects on the drives of the tenants.")


@app.command()
def reconcile(
    tenant: Annotated[str | None, typer.Option(help="Only the drives of this tenant; otherwise of all that are active.")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Delete orphans. Without it nothing is changed.")] = False,
    json: JsonOption = False,
) -> None:
    """Hold the objects on the drives against the catalog. Names orphans (objects that no row owns, at least an hour old) and missing
    objects (a row owns them, and they are not there). Exit 1 where an object is missing, an orphan is left or a drive fails."""
    with open_workspace() as workspace:
        tenants = workspace.catalog.tenants
        if tenant is not None:
            tenants.require_active(tenant)
        every = tenants.all()
        wanted = [each.tenant_id for each in every if each.active] if tenant is None else [tenant]
        looks = []
        for look in open_reconciler(workspace.catalog, workspace.drives).run(wanted, apply):
            workspace.catalog.coherence.keep(look)
            looks.append(look)
        if tenant is None:
            for each in every:
                if not each.active:
                    err.print(f"note: tenant {each.tenant_id} is inactive; its drives were not looked at", markup=False)
    if json:
        print_json([_shown(look) for look in looks])
    else:
        _print(looks)
    if not all(look.is_coherent for look in looks):
        raise typer.Exit(DIFFERENCE_EXIT)


def _shown(look: DriveCoherence) -> dict[str, Any]:
    plain = look.to_json()
    sample = plain.pop("missing_sample")
    return {"tenant": plain.pop("tenant_id"), "drive": plain.pop("kind"), **plain, "missing": {"count": look.missing, "sample": sample}}


def _print(looks: list[DriveCoherence]) -> None:
    rows = [[look.tenant_id, look.kind.value, *(None if look.fault else each for each in _figures(look))] for look in looks]
    print_table(["tenant", "drive", "objects", "bytes", "orphans", "orphan bytes", "reclaimed", "too young", "freed", "missing"], rows)
    for look in looks:
        where = f"{look.tenant_id} {look.kind}"
        if look.fault:
            err.print(f"{where}: {look.fault}", markup=False)
        reclaimed = set(look.reclaimed.sample)
        for key in look.orphans.sample:
            out.print(f"{'orphan, deleted,' if key in reclaimed else 'orphan'} on {where}: {key}", markup=False)
        for key in look.foreign.sample:
            out.print(f"not Primer's, left alone, on {where}: {visible(key)}", markup=False)
        for gone in look.missing_sample:
            whose = f"document {gone.doc_id}" if gone.doc_id else "no document at present"
            part = f"{gone.part}/{gone.sub_key}" if gone.sub_key else gone.part
            out.print(f"missing on {where}: {gone.object_key}, {part} of content {gone.content_hash} ({whose})", markup=False)
    if any(look.missing for look in looks):
        out.print("missing objects: restore them from a backup of the drive", markup=False)
    if any(look.orphans_left for look in looks):
        out.print("orphans: `primer store reconcile --apply` deletes them", markup=False)


def _figures(look: DriveCoherence) -> tuple[int, ...]:
    counts = (look.objects, look.bytes, look.orphans.count, look.orphans.bytes)
    return (*counts, look.reclaimed.count, look.too_young.count, look.freed.count, look.missing)
