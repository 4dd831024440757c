"""PDF files: engines made of rules inside Docling's own StandardPdfPipeline, one file an engine. Imports Docling: only in a worker."""
