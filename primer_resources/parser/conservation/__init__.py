"""Independent readers: the words of a source file, read without Docling and without the mending that its engines do."""
