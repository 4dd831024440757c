"""The geometry of a page: lines, blocks, headings, running lines and table grids as pure rules over boxes with text.

What belongs here takes and gives frozen dataclasses. Reading a PDF and Docling's types belong in primer_resources/parser/pdf.
Coordinates are points, 1/72 inch, from the page's top left corner; y grows downwards.
"""
