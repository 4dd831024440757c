"""Archives: what is indexed of one is the list of the files in it, which are documents of their own."""

from contextlib import closing

from docling_core.types.doc import DocItemLabel, DoclingDocument, DocumentOrigin

from primer_core.failures import DocumentFault, Reason
from primer_core.members import is_litter, member_path
from primer_resources.containers.archives import archive_members
from primer_resources.containers.unpack import MOST_MEMBERS
from primer_resources.parser.engines.source import Converted, Source
from primer_resources.parser.sniffing import sniff_file


def read_archive(source: Source) -> Converted:
    """The names in an archive, as a list. Raises DocumentFault (truncated, corrupt, encrypted, too_large, empty)."""
    mime = sniff_file(source.path, source.name).mime
    document = DoclingDocument(name="document", origin=DocumentOrigin(filename=source.plain_name, mimetype=mime, binary_hash=0))
    names: list[str] = []
    with closing(archive_members(source.path, source.name, mime)) as members:
        for name, _ in members:
            if not is_litter(name):
                names.append(member_path(name))
            if len(names) > MOST_MEMBERS:
                raise DocumentFault(Reason.TOO_LARGE, f"{source.name} holds more than {MOST_MEMBERS:,} files; split it")
    if not names:
        raise DocumentFault(Reason.EMPTY, f"{source.name} is an archive without files")
    document.add_text(label=DocItemLabel.PARAGRAPH, text=f"{len(names)} files")
    listing = document.add_list_group()
    for name in names:
        document.add_list_item(name, parent=listing)
    return Converted(document)
