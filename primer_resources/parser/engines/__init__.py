"""One file an engine: each turns the files of its formats into a DoclingDocument. They import Docling: import them only in a worker."""
